"""A flow that would start itself, through whatever others: refused wherever it would come to be, with the steps named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from builder import drafts, examples
from builder.board import Board
from builder.circles import circles
from builder.flowmaking import make_flow
from builder.tokens import make_token
from runtime.models import Version, Workflow
from runtime.publish import publish
from tests.builder import factories

pytestmark = pytest.mark.django_db


def runs(name: str, *flows: str) -> dict[str, Any]:
    """A flow that runs others, the last one inside a lane of a loop."""
    steps = [{"id": f"s{n}", "type": "workflow", "name": f"Run {flow}", "config": {"flow": flow}} for n, flow in enumerate(flows)]
    inner = {"id": "each", "type": "loop", "config": {"items": "[1]"}, "steps": steps[-1:]}
    return {"format": 1, "name": name, "triggers": [], "steps": [*steps[:-1], inner]}


@pytest.fixture
def team():
    return factories.team()


def live(team, name: str, *flows: str) -> Workflow:
    """Published past every check, as it is while nothing is wrong with it yet."""
    flow = Workflow.objects.create(team=team, name=name)
    publish(flow, runs(name, *flows))
    return flow


def told(ines: Client) -> str:
    return " ".join(str(message) for message in ines.get(reverse("flows")).context["messages"])


WAY = "itself: A, step “Run B” → B, step “Run C” → C, step “Run A” → A."


def test_no_file_brings_one_in(team, ines):
    live(team, "B", "C"), live(team, "C", "A")
    file = SimpleUploadedFile("a.json", json.dumps(runs("A", "B")).encode())
    ines.post(reverse("flow_import"), {"file": file, "team": team.pk})
    said = told(ines)
    assert "Nothing was imported." in said and WAY in said
    assert not Workflow.objects.filter(name="A").exists()
    file = SimpleUploadedFile("d.json", json.dumps(runs("D", "B")).encode())
    ines.post(reverse("flow_import"), {"file": file, "team": team.pk})
    assert Workflow.objects.filter(name="D").exists()


def test_no_template_is_one(team, ines, monkeypatch):
    live(team, "B", "A")
    monkeypatch.setattr("builder.views.flows.example", lambda name: runs("Example", "B"))
    ines.post(reverse("flow_new"), {"example": "any", "name": "A", "team": team.pk})
    assert "step “Run B” → B, step “Run A” → A" in told(ines) and not Workflow.objects.filter(name="A").exists()
    ines.post(reverse("flow_new"), {"example": "any", "name": "Other", "team": team.pk})
    assert Workflow.objects.filter(name="Other").exists()


def test_the_examples_are_none(team):
    for one in examples.examples():
        assert not list(circles(one.definition, team.pk))


def test_it_is_not_published_by_the_builder(team, ines):
    live(team, "B", "C"), live(team, "C", "A")
    flow = make_flow(team, "A", user=None)
    drafts.save(flow, runs("A", "B"), revision=None, label="Put")
    [problem] = [one for one in Board.of(flow).blocking if "start itself" in one.message]
    assert (problem.step, problem.field) == ("s0", "config.flow") and WAY in problem.message
    revision = drafts.load(flow).revision
    answer = ines.post(reverse("flow_publish", args=[flow.pk]), {"revision": revision})
    assert answer.status_code == 422 and not Version.objects.filter(workflow=flow).exists()
    page = ines.get(reverse("flow", args=[flow.pk])).content.decode()
    assert "would start itself" in page


def test_no_drawing_is_kept_of_before_another_flow_closed_the_circle(team):
    """They are kept by the draft's revision, which does not change by that."""
    flow = make_flow(team, "A", user=None)
    draft = drafts.save(flow, runs("A", "B"), revision=None, label="Put").draft
    before = Board.of(flow).drawing
    live(team, "B", "A")
    board = Board.of(flow)
    assert board.drawing_before(draft.revision, draft.definition) == board.drawing != before


def test_nor_by_the_api(team):
    token = make_token(factories.user("builder", of=team), "test")[1]
    headers = {"Authorization": f"Bearer {token}"}
    flow = make_flow(team, "A", user=None)
    live(team, "B", "A")
    draft = drafts.save(flow, runs("A", "B"), revision=None, label="Put").draft
    shown = Client().get(f"/api/v1/workflows/{flow.pk}/draft", headers=headers).json()
    assert any("start itself" in one["message"] for one in shown["problems"])
    answer = Client().post(
        f"/api/v1/workflows/{flow.pk}/publish", json.dumps({"revision": draft.revision}), "application/json", headers=headers
    )
    assert answer.status_code == 422 and not Version.objects.filter(workflow=flow).exists()


def test_an_older_version_that_closes_it_does_not_go_live(team, ines):
    flow = live(team, "A", "B")
    publish(flow, runs("A", "Elsewhere"))
    live(team, "B", "A")
    ines.post(reverse("flow_version_live", args=[flow.pk, 1]))
    flow.refresh_from_db()
    assert flow.live_version.number == 2
    assert "Nothing was changed" in told(ines)


def test_a_step_without_a_name_is_called_as_the_canvas_calls_it(team):
    mine, theirs = runs("A", "B"), runs("B", "A")
    for definition in (mine, theirs):
        del definition["steps"][0]["steps"][0]["name"]
    publish(Workflow.objects.create(team=team, name="B"), theirs)
    [problem] = circles(mine, team.pk)
    assert "A, step “Sub-flow” → B, step “Sub-flow” → A." in problem.message


def test_a_flow_is_known_by_its_former_name_and_by_no_other_team_s(team):
    flow = live(team, "A", "Elsewhere")
    live(team, "B", "A")
    live(factories.team("Theirs"), "C", "New name")
    publish(flow, runs("New name", "Elsewhere"))
    assert [problem.step for problem in circles(runs("New name", "B"), team.pk, flow.pk)] == ["s0"]
    assert not list(circles(runs("New name", "C"), team.pk, flow.pk))


def test_flows_that_go_round_without_it_are_no_reason(team):
    live(team, "B", "C"), live(team, "C", "B")
    assert not list(circles(runs("A", "B"), team.pk))
    assert [problem.step for problem in circles(runs("A", "Elsewhere", "A"), team.pk)] == ["s1"]


@pytest.mark.parametrize("flow", [None, 7, ["A"], {"a": 1}, ""])
def test_what_names_no_flow_is_no_circle(team, flow):
    definition = runs("A", "B")
    definition["steps"][0]["steps"][0]["config"]["flow"] = flow
    assert not list(circles(definition, team.pk))
    definition["steps"][0]["steps"][0]["config"] = flow
    assert not list(circles(definition, team.pk))
