"""Whom approvals may name: people and teams of another team do not exist for a flow, in no field and in no words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from builder import drafts
from builder.board import Board
from builder.flowmaking import make_flow
from builder.tokens import make_token
from runtime.models import AuditEntry, Team, Version, Workflow
from runtime.publish import publish
from tests.builder import factories

pytestmark = pytest.mark.django_db


def asks(*approvers: str, off: bool = False) -> dict[str, Any]:
    config = {"approvers": ["dana@example.com"], "subject": "Go?", "expires": "3d", "escalate_after": "1d", "escalate_to": list(approvers)}
    steps = [
        {"id": "ok", "type": "approval", "config": {"approvers": list(approvers), "subject": "Go?", "expires": "3d"}},
        {"id": "others", "type": "approval", "config": config},
    ]
    return {"format": 1, "name": "A", "triggers": [], "steps": [{**step, "off": off} for step in steps]}


@pytest.fixture
def ours() -> Team:
    return factories.team("Ours")


@pytest.fixture
def theirs() -> Team:
    team = factories.team("Theirs")
    factories.user("admin", of=team, name="spy")
    return team


@pytest.fixture
def ines(ours):
    return factories.user("builder", of=ours, name="ines")


@pytest.fixture
def client(ines) -> Client:
    client = Client()
    client.force_login(ines, "django.contrib.auth.backends.ModelBackend")
    return client


def found(flow: Workflow) -> list[tuple[str, str, str]]:
    return [(one.step, one.field, one.message) for one in Board.of(flow).blocking]


def test_a_draft_says_which_step_and_field_and_not_whether_somebody_else_has_them(ours, theirs, ines):
    flow = make_flow(ours, "A", user=ines)

    def told(*approvers: str, off: bool = False) -> list[tuple[str, str, str]]:
        drafts.save(flow, asks(*approvers, off=off), revision=None)
        return found(flow)

    for wrong, unknown in (("@spy", "@none"), ("team:Theirs", "team:None"), ("team:theirs", "team:None")):
        problems = told(wrong)
        assert [problem[:2] for problem in problems] == [("ok", "config.approvers"), ("others", "config.escalate_to")]
        assert [text.replace(wrong, "…") for _, _, text in problems] == [text.replace(unknown, "…") for _, _, text in told(unknown)]
    assert "Name a member of the flow's team, or write an address." in told("@spy")[0][2]
    factories.user("viewer", of=ours, name="kim"), factories.user("operator", of=ours, name="lee")
    assert not told("@kim", "@Lee", "team:ours", "{{ trigger.body.who }}", "anybody@example.com") and not told("@spy", off=True)
    Team.objects.filter(pk=theirs.pk).update(asked_by_others=True)
    assert not told("team:Theirs") and told("@spy")


def test_it_is_published_by_no_page_program_or_older_version(ours, theirs, ines, client):
    flow = make_flow(ours, "A", user=ines, definition=asks("@spy"))
    answer = client.post(reverse("flow_publish", args=[flow.pk]), {"revision": 1})
    assert answer.status_code == 422
    headers = {"Authorization": f"Bearer {make_token(ines, 'test')[1]}"}
    address = f"/api/v1/workflows/{flow.pk}/publish"
    answer = client.post(address, json.dumps({"note": ""}), "application/json", headers=headers)
    assert answer.status_code == 422
    assert [(one["step"], one["field"]) for one in answer.json()["error"]["problems"]] == [
        ("ok", "config.approvers"), ("others", "config.escalate_to"),
    ]  # fmt: skip
    old = publish(flow, asks("@spy"))  # as it was while they were a member
    publish(flow, asks("dana@example.com"))
    client.post(reverse("flow_version_live", args=[flow.pk, old.number]))
    flow.refresh_from_db()
    assert flow.live_version != old and Version.objects.filter(workflow=flow).count() == 2


def test_only_a_team_s_administrators_let_others_ask_it(theirs):
    address, client = reverse("team_asked", args=[theirs.pk]), Client()
    for role, may in (("operator", False), ("admin", True)):
        client.force_login(factories.user(role, of=theirs), "django.contrib.auth.backends.ModelBackend")
        client.post(address, {"others": "1"})
        assert Team.objects.get(pk=theirs.pk).asked_by_others == may
    assert "checked" in client.get(reverse("team", args=[theirs.pk])).content.decode()
    client.post(address, {})
    assert not Team.objects.get(pk=theirs.pk).asked_by_others
    assert [one.detail for one in AuditEntry.objects.filter(action="let_ask").order_by("pk")] == [{"others": True}, {"others": False}]


def test_no_team_comes_along_under_another_s_name(theirs):
    """Names are read in either case."""
    with pytest.raises(IntegrityError), transaction.atomic():
        Team.objects.create(name="THEIRS")
