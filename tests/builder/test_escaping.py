"""What people, other systems and models wrote is shown as text: one hostile string in every field, and every page opened."""

from __future__ import annotations

import copy
import re
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import CharField, JSONField, TextField

from builder import drafts
from builder.models import Identity, Pin, Revision, Sample, SavedFilter
from builder.tokens import make_token
from runtime.audit import record
from runtime.models import (
    Alert, AuditEntry, Blob, Credential, Decision, FlowLimit, FormerName, FrameChunk, FrameValue, Job, JobPart, LogLine, NamedSignal,
    OutboxMessage, Pause, Recipient, Run, RunSearch, Signal, StepFile, Team, Trigger, Version, Worker, Workflow,
)  # fmt: skip
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
        wait, (HOSTILE, "marcus@example.com"), subject=HOSTILE, message=HOSTILE, details=[{"label": HOSTILE, "value": HOSTILE}], form=form, effects={"approve": HOSTILE, "reject": HOSTILE}, policy="all", needed=2,
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


CLOSED = {
    "action", "answer", "dedupe", "failure_flow", "figures", "format", "hash", "input_hash", "key_id", "kind", "level", "message_id",
    "nonce", "on_expired", "open", "operation", "outcome", "password", "path", "policy", "prefix", "priority", "rules", "scope",
    "slot_key", "state", "step", "token", "token_hash", "type", "Act.key", "Attempt.seed", "Job.key", "RateLimit.key", "Revision.key",
    "StepFile.key", "Trigger.key", "Permission.name", "Permission.codename", "Group.name", "Wait.outcome",
}  # fmt: skip
"""Columns that nobody writes: the product's own words, numbers as text, and ids of an alphabet of its own."""


@pytest.fixture
def root():
    return get_user_model().objects.create_superuser("root", "", "pw")


@pytest.fixture
def filled(belongings, root) -> dict[str, Any]:
    """With the string in every column of every table that takes what people, other systems and models write."""
    run, flow, team = Run.objects.get(pk=belongings["run_id"]), Workflow.objects.get(pk=belongings["pk"]), Team.objects.get(pk=belongings["team_id"])
    make_token(root, HOSTILE[:100])
    SavedFilter.objects.create(user=root, name=HOSTILE[:60], query=HOSTILE)
    job = Job.objects.create(key="h", action="export", format="csv", user=root, runs=[run.pk], teams=[team.pk], total=1, about=HOSTILE)
    JobPart.objects.create(job=job, n=0, text=HOSTILE)
    Identity.objects.create(user=root, issuer=HOSTILE, subject=HOSTILE)
    Alert.objects.update(address=HOSTILE, url=HOSTILE, workflow=flow)
    Pause.objects.create(why=HOSTILE)
    FormerName.objects.create(workflow=flow, team_id=team.pk, name=HOSTILE)
    FlowLimit.objects.create(workflow=flow, key=HOSTILE)
    form = {"title": HOSTILE, "intro": HOSTILE, "thanks": HOSTILE, "fields": [{"id": "a", "label": HOSTILE, "help": HOSTILE}]}
    other = factories.version(hostile_definition(), of=team).workflow  # that one is paused
    trigger = Trigger.objects.create(workflow=other, key="form", type="form", config=form)
    drafts.load(flow)
    Revision.objects.update(label=HOSTILE)
    Sample.objects.create(workflow=flow, kind="pasted", trigger={"body": {HOSTILE: HOSTILE}})
    Pin.objects.create(workflow=flow, step="deal", output={HOSTILE: HOSTILE})
    RunSearch.objects.create(run_id=run.pk, value=HOSTILE.lower())
    factories.frame(run, "each", total=1, cursor=1, open=[0])
    FrameChunk.objects.create(run_id=run.pk, path="each", take=1, n=0, items=[HOSTILE])
    FrameValue.objects.create(run_id=run.pk, path="each", take=1, index=0, value={"item": HOSTILE})
    factories.result(run, "study", 3, 4, output={"status": 200, "body": {"filename": HOSTILE, "type": HOSTILE, "size": 1, "file": "k"}})
    StepFile.objects.create(run_id=run.pk, path="study", take=1, key="k", content=b"x")
    factories.result(run, "nurture", 3, 4, output={"x": 1}, output_size=300_000)
    Blob.objects.create(run_id=run.pk, path="nurture", take=1, content=HOSTILE)
    Signal.objects.create(run_id=run.pk, path="later", dedupe="d", payload={HOSTILE: HOSTILE})
    NamedSignal.objects.create(team=team, name=HOSTILE[:100], key=HOSTILE, dedupe="d", payload=HOSTILE)
    Recipient.objects.filter(address="marcus@example.com").update(handed_to=HOSTILE)
    Version.objects.filter(workflow=flow).update(note=HOSTILE)
    Worker.objects.update(unable={HOSTILE: HOSTILE})
    people = get_user_model().objects.filter(pk=belongings["user_id"])
    people.update(username=HOSTILE, email=HOSTILE)
    AuditEntry.objects.create(action="publish", subject=f"workflow:{flow.pk}", actor_name=HOSTILE, team_id=team.pk)
    Workflow.objects.filter(pk=flow.pk).update(paused=True, paused_why=HOSTILE, folder=HOSTILE[:80])
    error = {"message": HOSTILE, "name": HOSTILE, "path": "hot", "step": "hot", "kind": "0" * 16, "field": HOSTILE}
    broken = factories.run(run.version, state="failed", trigger_key=HOSTILE[:64], idempotency_key=HOSTILE, output={HOSTILE: HOSTILE}, error=error)
    return belongings | {"form": trigger.token, "job_id": job.pk, "broken": broken.pk}


def test_every_column_that_somebody_may_write_has_it(filled):
    """A new one is filled above, or named as closed."""
    without = []
    for model in apps.get_models():
        for field in model._meta.get_fields() if model._meta.app_label in ("runtime", "builder", "auth") else ():
            own = f"{model.__name__}.{field.name}"
            if not isinstance(field, (CharField, TextField, JSONField)) or field.choices or {own, field.name} & CLOSED:
                continue
            if not any("onerror" in str(value).lower() for value in model.objects.values_list(field.name, flat=True)):
                without.append(own)
    assert without == []


MORE = (
    "/runs/{run_id}/?step={step}&tab={tab}", "/flows/{pk}/?step={step}", "/flows/{pk}/panel/?step={step}", "/flows/{pk}/panel/?settings",
    "/flows/{pk}/picker/?after={step}", "/runs/{run_id}/step/?step={step}", "/runs/{run_id}/retry/?step={step}",
    "/runs/{run_id}/skip/?step={step}", "/runs/{run_id}/output/?step=nurture",
)  # fmt: skip
STEPS, TABS = ("qualify", "hot", "approve_vip", "deal", "each", "study", "nurture", "lead"), ("input", "output", "attempts", "log")


def addresses(filled: dict[str, Any]) -> list[str]:
    """Every page, every step and tab of those that have some, and lists that are narrowed by the string itself."""
    found = [url_of(address, filled) for address in NAMED]
    found += list(dict.fromkeys(each.format(**filled, step=step, tab=tab) for each in MORE for step in STEPS for tab in TABS))
    asked = quote(HOSTILE)
    found += [f"/runs/?q={asked}&key={asked}&trigger={asked}", f"/?q={asked}", f"/search/?q={asked}", f"/audit/?who={asked}&subject={asked}"]
    return [*found, f"/runs/{filled['broken']}/", f"/forms/{filled['form']}/", f"/approvals/?all=1&q={asked}", f"/login/?next={asked}"]


@pytest.mark.parametrize("fragment", [False, True])
def test_one_hostile_string_in_every_field_is_text_on_every_page(filled, root, fragment):
    visitor = Visitor(root)
    visitor.client.defaults |= {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": "http://testserver/"} if fragment else {}
    opened, wrong, seen = 0, [], 0
    for url in addresses(filled):
        response = visitor.ask("GET", url)
        assert response.status_code < 500 or "healthz" in url, url
        if response["Content-Type"].startswith("text/html"):
            text = b"".join(response).decode()
            opened, seen = opened + 1, seen + ("alert(1)" in text)
            wrong += [f"{url}: …{text[max(0, found.start() - 80) : found.end() + 40]}…" for found in LIVE.finditer(text)]
            assert "54439" not in text
    assert not wrong, "\n".join(wrong)
    assert opened > 100 and seen > 60, f"{opened} pages, {seen} with the string: too few to prove anything"
