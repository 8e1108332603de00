"""The API: flows, in the shapes that the description promises, and the description itself."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from builder import drafts
from builder.api import api
from builder.views.api import described
from runtime.models import AuditEntry, Team, Version, Workflow
from runtime.publish import publish
from tests.builder import factories
from tests.builder.program import FLOW, KEEP, Program, problems, published

pytestmark = pytest.mark.django_db

SOON = {"id": "wait", "type": "delay", "config": {"for": "soon"}}


@pytest.fixture
def program() -> Program:
    return Program()


def test_who_the_token_belongs_to(program):
    assert program("GET", "/me").json() == {"user": program.person.username, "teams": {"Sales": "admin"}}


# Workflows


def test_a_workflow_is_made_edited_published_and_exported(program, settings):
    made = program("POST", "/workflows", {"name": "Leads"})
    assert made.status_code == 201
    workflow = made.json()
    assert (workflow["team"], workflow["live_version"]) == ("Sales", None)
    assert workflow["url"] == f"{settings.HOLDFAST_PUBLIC_URL}/flows/{workflow['id']}/"
    base = f"/workflows/{workflow['id']}"

    draft = program("GET", f"{base}/draft").json()
    saved = program("PUT", f"{base}/draft", {"definition": FLOW, "revision": draft["revision"]})
    assert (saved.status_code, saved.json()["problems"]) == (200, [])
    assert saved.json()["revision"] > draft["revision"]
    assert program("GET", f"{base}/export").status_code == 404

    version = program("POST", f"{base}/publish", {"note": "First"})
    assert version.status_code == 201
    assert (version.json()["number"], version.json()["note"]) == (1, "First")
    assert program("GET", base).json()["live_version"] == 1
    for which in ("", "?version=live", "?version=1", "?version=draft"):
        assert program("GET", f"{base}/export{which}").json() == FLOW
    assert program("GET", f"{base}/export?version=2").status_code == 404
    assert program("GET", f"{base}/export?version=x").status_code == 422
    assert AuditEntry.objects.filter(
        action="publish", subject=f"workflow:{workflow['id']}", actor=program.person
    ).exists()


def test_what_is_exported_can_be_imported_again_exactly(program):
    definition = deepcopy(factories.LEAD)
    definition["steps"][0]["config"]["schema"] = {"type": "object", "properties": {"score": {"type": "integer"}}}
    first = program("POST", "/workflows/import", {"definition": definition}).json()["id"]
    exported = program("GET", f"/workflows/{first}/export?version=draft").json()
    second = program("POST", "/workflows/import", {"definition": exported}).json()["id"]
    assert program("GET", f"/workflows/{second}/export?version=draft").json() == exported == definition


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"steps": [{"id": "a", "type": "nope"}, SOON]}, [("a", "type"), ("wait", "config.for")]),
        ({"steps": [{**KEEP, "config": {"values": {"x": "{{ steps.gone.output }}"}}}]}, [("keep", "config.values.x")]),
        ({"format": 2}, [("", "")]),
        ({"surprise": 1}, [("", "surprise")]),
    ],
)  # fmt: skip
def test_an_import_with_problems_lists_them_all_and_saves_nothing(program, change, expected):
    response = program("POST", "/workflows/import", {"definition": {**FLOW, **change}})
    assert response.status_code == 422
    assert problems(response) == expected
    assert all(one["message"] for one in response.json()["error"]["problems"])
    assert not Workflow.objects.exists()


def test_an_import_that_would_start_itself_and_refers_to_nothing_is_told_both_and_saves_nothing(program):
    def runs(name: str, *flows: str, **more: Any) -> dict[str, Any]:
        steps = [
            {"id": f"s{n}", "type": "workflow", "name": f"Run {flow}", "config": {"flow": flow, **more}} for n, flow in enumerate(flows)
        ]
        return {**FLOW, "name": name, "steps": steps}

    for name, flow in (("B", "C"), ("C", "A"), ("D", "D")):
        made = program("POST", "/workflows", {"name": name}).json()["id"]
        publish(Workflow.objects.get(pk=made), runs(name, flow))
    before = Workflow.objects.count()
    response = program("POST", "/workflows/import", {"definition": runs("A", "Elsewhere", "D", "B", "A", input="{{ steps.gone.output }}")})
    assert response.status_code == 422 and Workflow.objects.count() == before
    told = [(one["step"], one["field"]) for one in response.json()["error"]["problems"]]
    assert told == [*[(f"s{n}", "config.input") for n in range(4)], ("s2", "config.flow"), ("s3", "config.flow")]
    words = " ".join(one["message"] for one in response.json()["error"]["problems"])
    assert "itself: A, step “Run B” → B, step “Run C” → C, step “Run A” → A." in words and "itself: A, step “Run A” → A." in words
    assert program("POST", "/workflows/import", {"definition": runs("E", "B", "D")}).status_code == 201


def test_an_import_of_too_many_steps_is_refused_as_such(program):
    steps = [{"id": f"s{n}", "type": "set", "config": {"values": {}}} for n in range(10_001)]
    response = program("POST", "/workflows/import", {"definition": {**FLOW, "steps": steps}})
    assert response.status_code == 422
    assert "at most 10,000 steps" in response.json()["error"]["problems"][0]["message"]
    assert not Workflow.objects.exists()


def test_a_definition_of_the_greatest_depth_passes_and_a_bottomless_one_does_not(program):
    def nested(levels: int) -> list:
        inner: list = [{"id": "leaf", "type": "set", "config": {"values": {}}}]
        for n in range(levels):
            inner = [{"id": f"l{n}", "type": "loop", "config": {"items": "[1]"}, "steps": inner}]
        return inner

    assert program("POST", "/workflows/import", {"definition": {**FLOW, "steps": nested(20)}}).status_code == 201
    bottomless = json.dumps({"definition": FLOW})[:-2].encode() + b',"x":' + b"[" * 5000 + b"]" * 5000 + b"}}"
    assert program("POST", "/workflows/import", bottomless).status_code == 400


def test_a_draft_with_problems_is_kept_and_not_published(program):
    workflow = program("POST", "/workflows", {"name": "Leads"}).json()["id"]
    broken = {**FLOW, "steps": [SOON]}
    saved = program("PUT", f"/workflows/{workflow}/draft", {"definition": broken})
    assert saved.status_code == 200
    assert saved.json()["problems"][0]["step"] == "wait"
    refused = program("POST", f"/workflows/{workflow}/publish", {})
    assert (refused.status_code, problems(refused)) == (422, [("wait", "config.for")])
    assert not Version.objects.exists()


def test_a_change_on_an_old_revision_is_told_so_and_changes_nothing(program):
    workflow = published(program)
    draft = program("GET", f"/workflows/{workflow}/draft").json()
    drafts.save(
        Workflow.objects.get(pk=workflow), {**FLOW, "description": "theirs"}, revision=None, user=program.person
    )
    stale = program("PUT", f"/workflows/{workflow}/draft", {"definition": FLOW, "revision": draft["revision"]})
    assert stale.status_code == 409
    assert program("GET", f"/workflows/{workflow}/draft").json()["definition"]["description"] == "theirs"
    assert program("POST", f"/workflows/{workflow}/publish", {"revision": draft["revision"]}).status_code == 409


def test_somebody_in_several_teams_says_which(program):
    other = Team.objects.create(name="Support")
    factories.Membership.objects.create(user=program.person, team=other, role="builder")
    undecided = program("POST", "/workflows", {"name": "A"})
    assert (undecided.status_code, problems(undecided)) == (422, [("", "body.team")])
    assert program("POST", "/workflows", {"name": "A", "team": "Support"}).json()["team"] == "Support"
    Team.objects.create(name="Secret")
    assert program("POST", "/workflows", {"name": "A", "team": "Secret"}).status_code == 404


def test_lists_come_in_pages_that_stay_right_while_rows_come_in(program):
    made = [program("POST", "/workflows", {"name": f"Flow {n}"}).json()["id"] for n in range(5)]
    first = program("GET", "/workflows?limit=2").json()
    program("POST", "/workflows", {"name": "Meanwhile"})
    second = program("GET", f"/workflows?limit=2&cursor={first['next']}").json()
    third = program("GET", f"/workflows?limit=2&cursor={second['next']}").json()
    assert [one["id"] for page in (first, second, third) for one in page["items"]] == made[::-1]
    assert third["next"] is None
    for cursor in ("x", "-1", "1e9", "٣", "9" * 21):
        assert program("GET", f"/workflows?cursor={cursor}").status_code == 422


# The description


def test_the_description_covers_every_operation_and_its_errors(program):
    schema = Client().get("/api/v1/openapi.json").json()
    described = {operation["operationId"] for item in schema["paths"].values() for operation in item.values()}
    registered = {
        op.operation_id
        for _, router in api._routers
        for view in router.path_operations.values()
        for op in view.operations
    }
    assert described == registered and len(described) >= 15
    assert all(path.startswith("/api/v1/") for path in schema["paths"])


def test_the_description_is_made_once_and_not_sent_to_who_has_it(program):
    first, second = (Client().get("/api/v1/openapi.json") for _ in range(2))
    etag = first["ETag"]
    assert first["Content-Type"] == "application/json" and first.content == second.content and second["ETag"] == etag
    assert described()[1] is described()[1] and first.content == described()[1]
    again = Client().get("/api/v1/openapi.json", headers={"If-None-Match": f'"other", {etag}'})
    assert again.status_code == 304 and not again.content and again["ETag"] == etag
    assert Client().get("/api/v1/openapi.json", headers={"If-None-Match": '"other"'}).status_code == 200


def test_the_page_about_the_api_loads_nothing_from_elsewhere():
    client = Client()
    client.force_login(factories.user("viewer"), "django.contrib.auth.backends.ModelBackend")
    response = client.get(reverse("api_docs"))
    text = response.content.decode()
    assert response.status_code == 200
    assert "/api/v1/workflows/{workflow_id}/runs" in text and "idempotency_key" in text
    assert "or the part of it for which it was made: start runs, or read only" in text
    assert "http://" not in text.replace("http://www.w3.org", "") and "cdn" not in text
    assert Client().get("/api/v1/openapi.json").status_code == 200


def test_what_is_not_there_is_said_in_json():
    response = Client().get("/api/v1/nothing/here")
    assert (response.status_code, response["Content-Type"]) == (404, "application/json")


def test_a_wrong_method_is_refused_in_json():
    response = Client().delete("/api/v1/runs")
    assert (response.status_code, response["Allow"]) == (405, "GET")
    assert response.json()["error"]["message"] == "DELETE is not possible here, but GET is."
