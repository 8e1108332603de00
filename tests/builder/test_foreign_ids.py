"""Numbers and names of another team's things inside what is sent: in forms, bodies, definitions, filters and searches. The
addresses themselves are walked in `test_access.py`; here the address is one's own, and only something in it is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from builder import drafts
from builder.models import Sample
from builder.tokens import make_token
from runtime import credentials
from runtime.models import Alert, Credential, Decision, Job, Membership, Recipient, Run, Team, Workflow
from runtime.publish import publish
from runtime.signals import send
from tests.builder import factories

pytestmark = pytest.mark.django_db
THEIRS = "Their secret merger"


class Side:
    """One team's flow, run, question, connection and person."""

    def __init__(self, name: str) -> None:
        self.team = factories.team(name)
        self.flow = Workflow.objects.create(team=self.team, name=THEIRS if name == "Theirs" else "Ours")
        steps = [{"id": "one", "type": "set", "name": "One", "config": {"values": {"a": "{{ trigger.body }}"}}}]
        self.version = publish(self.flow, {"format": 1, "name": self.flow.name, "triggers": [], "steps": steps})
        self.run = factories.run(self.version, state="failed", title=self.flow.name, input={"body": {"secret": self.flow.name}})
        factories.result(self.run, "one", 1, 2, output={"secret": self.flow.name})
        self.wait = factories.wait(factories.run(self.version, title=self.flow.name), "one", "approval", 1)
        self.approval = factories.approval(self.wait, (f"{name.lower()}@example.com",), subject=self.flow.name)
        self.connection = credentials.seal(
            Credential(team=self.team, name=f"{name} CRM", kind="bearer", hosts=["crm.example"]), {"token": f"secret of {name}"}
        )
        self.person = factories.user("admin", of=self.team, name=f"person of {name}")


@pytest.fixture
def ours() -> Side:
    return Side("Ours")


@pytest.fixture
def theirs() -> Side:
    return Side("Theirs")


@pytest.fixture
def client(ours, theirs) -> Client:
    client = Client()
    client.force_login(ours.person, "django.contrib.auth.backends.ModelBackend")
    session = client.session
    session["proved_at"] = 1e12
    session.save()
    return client


@pytest.fixture
def program(ours):
    headers = {"Authorization": f"Bearer {make_token(ours.person, 'test')[1]}"}

    def ask(method: str, path: str, body: Any = None):
        return Client().generic(method, f"/api/v1{path}", json.dumps(body) if body is not None else "", "application/json", headers=headers)

    return ask


def everything() -> list[Any]:
    """What none of these may change of theirs."""
    theirs = Team.objects.get(name="Theirs")
    return [
        list(Run.objects.filter(workflow__team=theirs).order_by("pk").values()),
        list(Workflow.objects.filter(team=theirs).values()), list(Credential.objects.filter(team=theirs).values()),
        Decision.objects.count(), Recipient.objects.count(), Alert.objects.count(), theirs.memberships.count(),
        Sample.objects.filter(workflow__team=theirs).count(),
    ]  # fmt: skip


def sent(ours: Side, theirs: Side) -> dict[str, tuple[str, dict[str, Any]]]:
    """What it is -> (address, what is posted): ours in the address, theirs in the body."""
    flow, run, page = ours.flow.pk, theirs.run.pk, reverse
    connection = {"name": "New", "token": "x", "hosts": "crm.example", "team": theirs.team.pk}
    operation = {"op": "configure", "step": "one", "set": {"config.values": {"b": 1}}}
    return {
        "acts on runs": (page("runs_act"), {"act": "requeue", "run": [run]}),
        "acts on a filter": (page("runs_act"), {"act": "cancel", "all": "1", "flow": theirs.flow.pk}),
        "an export": (page("runs_act"), {"act": "export_jsonl", "run": [run, ours.run.pk], "once": "k"}),
        "a wait": (page("run_wait", args=[ours.run.pk, theirs.wait.pk]), {"act": "fire"}),
        "an uncertain call": (page("run_answer", args=[ours.run.pk, theirs.wait.pk]), {"answer": "happened"}),
        "several decisions": (page("approvals_decide"), {"answer": "approve", "approval": [theirs.approval.pk]}),
        "an approver": (page("approval_reassign", args=[ours.wait.pk]), {"recipient": theirs.approval.recipients.get().pk, "address": "me@example.com"}),
        "sample data": (page("flow_samples", args=[flow]), {"from": "run", "run": run}),
        "a pinned output": (page("flow_pin", args=[flow]), {"step": "one", "run": run}),
        "a long number": (page("flow_pin", args=[flow]), {"step": "one", "run": f"{ours.run.pk:018}{run}"}),
        "a replay": (page("flow_test_run", args=[flow]), {"replay": run}),
        "a new flow": (page("flow_new"), {"name": "Mine", "team": theirs.team.pk}),
        "a connection": (f"{page('connection_create')}?kind=bearer", connection),
        "an alert": (page("alerts"), {"kind": "failed", "threshold": 1, "team": theirs.team.pk, "address": "me@example.com", "quiet_minutes": 5}),
        "a member": (page("member_role", args=[ours.team.pk, theirs.person.pk]), {"role": "viewer"}),
        "a member to remove": (page("member_remove", args=[ours.team.pk, theirs.person.pk]), {}),
        "a team in a form": (page("team_rename", args=[ours.team.pk]), {"name": "Ours still", "team": theirs.team.pk, "pk": theirs.team.pk}),
        "a row in a form": (page("connection", args=[ours.connection.pk]), {"hosts": "crm.example", "token": "", "id": theirs.connection.pk, "team": theirs.team.pk}),
        "an edit": (page("flow_edit", args=[flow]), {"operation": json.dumps(operation), "revision": 1, "workflow": theirs.flow.pk, "pk": theirs.flow.pk}),
    }  # fmt: skip


def test_nothing_of_another_team_is_reached_by_what_is_sent(client, ours, theirs):
    before, shown = everything(), []
    for what, (address, data) in sent(ours, theirs).items():
        answer = client.post(address, data)
        assert answer.status_code < 500, what
        if answer.status_code != 404 and THEIRS in answer.content.decode():
            shown.append(what)
        assert everything() == before, what
    assert not shown
    assert all(set(job.runs) <= {ours.run.pk, ours.wait.run_id} for job in Job.objects.all())
    assert [row.team_id for row in Credential.objects.exclude(pk=theirs.connection.pk)].count(theirs.team.pk) == 0


def test_nor_by_who_only_looks_at_what_the_other_team_does(client, ours, theirs, program):
    """An administrator of one team, in the other a viewer: lists, filters, forms and bodies ask for the role there."""
    Membership.objects.create(user=ours.person, team=theirs.team, role="viewer")
    before = everything()
    for what, (address, data) in sent(ours, theirs).items():
        assert client.post(address, data).status_code < 500, what
        assert everything() == before, what
    assert all(set(job.runs) <= {ours.run.pk, ours.wait.run_id} for job in Job.objects.all())
    for name in ("operations", "waits", "sent_mail", "alerts", "connections", "audit", "jobs"):
        text = b"".join(client.get(reverse(name))).decode()
        assert "Theirs CRM" not in text and not (name != "connections" and THEIRS in text), name
    for path, body in ((f"/approvals/{theirs.approval.pk}/decision", {"answer": "approve"}), (f"/runs/{theirs.run.pk}/requeue", {}),
                       (f"/runs/{theirs.run.pk}/cancel", {}), (f"/workflows/{theirs.flow.pk}/publish", {}),
                       (f"/workflows/{theirs.flow.pk}/runs", {"input": 1}), ("/signals", {"name": "x", "key": "y", "team": "Theirs"})):  # fmt: skip
        assert program("POST", path, body).status_code in (403, 404) and everything() == before, path


READ = (
    "/?q=merger", "/runs/?q=merger", "/runs/?flow={flow}", "/runs/?key=x&flow={flow}&tests=1", "/approvals/?all=1&q=merger",
    "/approvals/?all=1&flow={flow}", "/operations/", "/operations/waits/", "/operations/mail/", "/audit/?subject=run:{run}",
    "/search/?q=merger", "/search/?q={run}", "/flows/{mine}/test/result/?run={run}&step=one", "/flows/{mine}/test/watch/?run={run}",
    "/flows/{mine}/test/run/?replay={run}", "/flows/{mine}/compare/?from={version}&to=draft", "/flows/{mine}/replay/?run={run}",
    "/runs/{own}/step/?step=one&test={run}", "/audit/export/?subject=workflow:{flow}",
)  # fmt: skip


def test_nothing_of_another_team_is_seen_by_what_is_asked(client, ours, theirs):
    known = {
        "flow": theirs.flow.pk, "run": theirs.run.pk, "mine": ours.flow.pk, "own": ours.run.pk, "version": theirs.version.pk,
    }  # fmt: skip
    for address in READ:
        answer = client.get(address.format(**known))
        text = b"".join(answer).decode()
        assert answer.status_code in (200, 204, 404), address
        assert THEIRS not in text and "Theirs CRM" not in text, address


def test_nor_by_programs(program, ours, theirs):
    before = everything()
    asked = [
        ("GET", f"/runs?workflow={theirs.flow.pk}", None),
        ("GET", f"/approvals?run={theirs.wait.run_id}&state=open", None),
        ("POST", "/workflows", {"name": "Mine", "team": "Theirs"}),
        ("POST", "/workflows/import", {"definition": {"format": 1, "name": "Mine", "steps": []}, "team": "Theirs"}),
        ("POST", "/signals", {"name": "x", "key": "y", "team": "Theirs"}),
        ("POST", f"/approvals/{theirs.approval.pk}/decision", {"answer": "approve"}),
        ("POST", f"/workflows/{ours.flow.pk}/runs", {"input": 1, "workflow": theirs.flow.pk}),
        ("PUT", f"/workflows/{ours.flow.pk}/draft", {"definition": {"format": 1, "name": "x", "steps": []}, "workflow_id": theirs.flow.pk, "team": "Theirs"}),
    ]  # fmt: skip
    for method, path, body in asked:
        answer = program(method, path, body)
        assert answer.status_code in (200, 403, 404, 422), path
        assert answer.status_code != 200 or answer.json()["items"] == [], path
        assert THEIRS not in answer.content.decode() and everything() == before, path


def test_a_definition_names_only_what_its_own_team_has(ours, theirs, program):
    """A connection and a flow of another team are, by their names, not there."""
    steps = [{"id": "call", "type": "http", "config": {"url": "https://crm.example/", "connection": "Theirs CRM"}},
             {"id": "sub", "type": "workflow", "config": {"flow": THEIRS}}]  # fmt: skip
    drafts.save(ours.flow, {"format": 1, "name": "Ours", "steps": steps}, revision=None)
    client = Client()
    client.force_login(ours.person, "django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("flow", args=[ours.flow.pk])).content.decode()
    assert "no connection “Theirs CRM”" in page
    panel = client.get(reverse("flow_panel", args=[ours.flow.pk]), {"step": "call"}).content.decode()
    assert "Ours CRM" in panel and panel.count("Theirs CRM") <= page.count("Theirs CRM") + 3
    shown = client.post(reverse("flow_test_step", args=[ours.flow.pk]), {"step": "call"}).content.decode()
    assert "There is no connection" in shown and "secret of" not in shown


def test_a_signal_wakes_nobody_elsewhere(ours, theirs):
    assert send(ours.team.pk, "paid", "7", {}, "k") == "kept"
    assert send(theirs.team.pk, "paid", "7", {}, "k") == "kept", "and theirs is one of its own"
