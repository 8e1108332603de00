"""What people, other systems and models wrote is shown as text: one hostile string in every field, and every page opened."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from runtime.audit import record
from runtime.models import Credential, Decision, LogLine, OutboxMessage
from tests.builder import factories
from tests.builder.test_access import NAMED, Visitor, _belongings, url_of

pytestmark = pytest.mark.django_db

HOSTILE = """'"></title></textarea></script><img src=x onerror=alert(1)>{{ 7777*7 }}{% now %}"""
LIVE = re.compile(r"<img src=x|</textarea></script>|onerror=alert\(1\)>(?!&)")
TEXTS = ("name", "label", "title", "note", "subject", "message", "body", "prompt", "details")


def hostile_definition() -> dict[str, Any]:
    """The usual flow with the string in each of its texts."""

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {inner: changed(item, inner) for inner, item in value.items()}
        if isinstance(value, list):
            return [changed(item, key) for item in value]
        return HOSTILE.replace("{{ 7777*7 }}", "") if key in TEXTS and isinstance(value, str) else value

    return changed(copy.deepcopy(factories.LEAD))


@pytest.fixture
def belongings() -> dict[str, Any]:
    """A run that did a little of everything, and whatever else pages show."""
    team = factories.team(HOSTILE)
    version = factories.version(hostile_definition(), of=team)
    run = factories.run(version, state="attention", title=HOSTILE, input={"body": {HOSTILE: [HOSTILE]}, "headers": {"x-a": HOSTILE}})
    factories.result(run, "qualify", 1, 2, output={HOSTILE: {"deep": [HOSTILE]}}, input={"prompt": HOSTILE})
    failed = {"step": "hot", "name": HOSTILE, "path": "hot", "field": HOSTILE, "message": HOSTILE}
    factories.result(run, "hot", 2, 3, state="failed", error=failed)
    factories.attempt(run, "qualify", 1, 1, 2, request={"url": HOSTILE, "headers": {HOSTILE: HOSTILE}}, response={"body": HOSTILE}, error=HOSTILE)
    LogLine.objects.create(run_id=run.pk, path="qualify", text=HOSTILE, data={HOSTILE: HOSTILE}, at=factories.at(1))
    wait = factories.wait(run, "approve_vip", "approval", 3, data={"reason": HOSTILE})
    factories.wait(run, "deal", "person", 3, data={"reason": "uncertain", "error": HOSTILE, "attempt": 1})
    form = [{"id": "why", "label": HOSTILE, "type": "choice", "help": HOSTILE, "choices": [HOSTILE]}]
    approval = factories.approval(
        wait, subject=HOSTILE, message=HOSTILE, details=[{"label": HOSTILE, "value": HOSTILE}], form=form, effects={"approve": HOSTILE, "reject": HOSTILE}, policy="all", needed=2,
    )  # fmt: skip
    asked = approval.recipients.first()
    Decision.objects.create(approval=approval, recipient=asked, decided_by=HOSTILE, answer="approve", comment=HOSTILE, form={"why": HOSTILE})
    credential = Credential.objects.create(team=team, name=HOSTILE[:64], kind="bearer", secret=b"", hosts=[HOSTILE], config={"base_url": HOSTILE})
    payload = {"to": [HOSTILE], "subject": HOSTILE, "text": HOSTILE, "html": "<p>Hello</p>"}
    mail: OutboxMessage = factories.mail(run, HOSTILE, payload=payload, error=HOSTILE, state="failed")
    factories.worker(host=HOSTILE, cluster=HOSTILE, code_version=HOSTILE)
    member = factories.user("builder", of=team, first_name=HOSTILE[:60], last_name=HOSTILE[:60])
    record("publish", HOSTILE, actor=member, team_id=team.pk, detail={"note": HOSTILE})
    return _belongings(team) | {
        "pk": run.workflow_id, "workflow_id": run.workflow_id, "version_id": version.pk, "run_id": run.pk, "wait_id": wait.pk,
        "approval_id": approval.pk, "user_id": member.pk, "credential_id": credential.pk, "message_id": mail.pk, "mail_id": mail.pk,
        "token": factories.token_of(asked), "object_id": run.pk, "id": member.pk, "app_label": "runtime",
    }  # fmt: skip


def test_one_hostile_string_in_every_field_is_text_on_every_page(belongings):
    visitor = Visitor(get_user_model().objects.create_superuser("root", "", "pw"))
    opened, wrong, seen = 0, [], 0
    for address in NAMED:
        url = url_of(address, belongings)
        response = visitor.ask("GET", url)
        assert response.status_code < 500, url
        if response.status_code == 200 and response["Content-Type"].startswith("text/html"):
            text = b"".join(response).decode()
            opened, seen = opened + 1, seen + ("alert(1)" in text)
            wrong += [f"{url}: …{text[max(0, found.start() - 80) : found.end() + 40]}…" for found in LIVE.finditer(text)]
            assert "54439" not in text
    assert not wrong, "\n".join(wrong)
    assert opened > 40 and seen > 15, f"{opened} pages, {seen} with the string: too few to prove anything"
