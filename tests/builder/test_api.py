"""The API: what programs can do, in the shapes that the description promises."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from builder import drafts
from builder.api import api
from builder.tokens import make_token
from builder.views.api import described
from runtime.models import Attempt, AuditEntry, Dispatch, Run, StepResult, Team, Version, Wait, Workflow
from runtime.publish import publish
from tests.builder import factories

pytestmark = pytest.mark.django_db

KEEP = {"id": "keep", "type": "set", "config": {"values": {"seen": "{{ trigger.body.company }}"}}}
SOON = {"id": "wait", "type": "delay", "config": {"for": "soon"}}
FLOW = {
    "format": 1,
    "name": "Lead qualification",
    "triggers": [{"id": "program", "type": "api", "config": {}}, {"id": "person", "type": "manual", "config": {}}],
    "steps": [KEEP],
}


class Program:
    """Calls the API with the token of somebody in a team."""

    def __init__(self, role: str | None = "admin", *, of: Team | None = None, **more: Any):
        self.person = factories.user(role, of=of, **more)
        self.token = make_token(self.person, "test")[1]

    def __call__(self, method: str, path: str, body: Any = None, **headers: str):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {
            "Authorization": f"Bearer {self.token}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        kind = given.pop("Content-Type", "application/json")
        return Client(enforce_csrf_checks=True).generic(method, f"/api/v1{path}", data, kind, headers=given)


@pytest.fixture
def program() -> Program:
    return Program()


def published(program: Program, definition: dict = FLOW) -> int:
    made = program("POST", "/workflows/import", {"definition": definition})
    assert made.status_code == 201, made.content
    workflow = made.json()["id"]
    assert program("POST", f"/workflows/{workflow}/publish", {}).status_code == 201
    return workflow


def problems(response) -> list[tuple[str, str]]:
    return [(one["step"], one["field"]) for one in response.json()["error"]["problems"]]


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
        steps = [{"id": f"s{n}", "type": "workflow", "config": {"flow": flow, **more}} for n, flow in enumerate(flows)]
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
    assert "itself: A, step “s2” → B, step “s0” → C, step “s0” → A." in words and "itself: A, step “s3” → A." in words
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


# Runs


def test_a_run_is_started_with_its_input(program, settings):
    workflow = published(program)
    response = program("POST", f"/workflows/{workflow}/runs", {"input": {"company": "Halden"}})
    assert response.status_code == 201
    run = Run.objects.get()
    assert response.json() == {"run": run.pk, "url": f"{settings.HOLDFAST_PUBLIC_URL}/runs/{run.pk}/", "created": True}
    assert (run.input, run.trigger_key, run.started_by) == ({"body": {"company": "Halden"}}, "program", program.person)
    assert Dispatch.objects.filter(run=run, state="ready").exists()


def test_an_idempotency_key_starts_one_run(program):
    workflow = published(program)
    asked = {"input": {"a": 1, "b": 2}, "idempotency_key": "order-1"}
    first, again = (
        program("POST", f"/workflows/{workflow}/runs", asked),
        program("POST", f"/workflows/{workflow}/runs", asked),
    )
    reordered = program(
        "POST", f"/workflows/{workflow}/runs", b'{"idempotency_key": "order-1", "input": {"b": 2, "a": 1}}'
    )
    assert (first.status_code, again.status_code, reordered.status_code) == (201, 200, 200)
    assert first.json()["run"] == again.json()["run"] == reordered.json()["run"]
    assert again.json()["created"] is False
    other = program("POST", f"/workflows/{workflow}/runs", {**asked, "input": {"a": 2}})
    key = asked["idempotency_key"]
    assert (other.status_code, other.json()["error"]["message"]) == (409, f"The idempotency key “{key}” was used with another input.")
    assert program("POST", f"/workflows/{workflow}/runs", {**asked, "trigger": "person"}).status_code == 201, (
        "unique per trigger"
    )
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b'{"input": NaN}', 400, "body.input"),
        (rb'{"input": {"a": "\u0000"}}', 400, "body.input.a"),
        (b'{"input": {"a": 1, "a": 2}}', 400, "body.input"),
        (b'{"input": %s}' % (b"9" * 5000), 400, "body.input"),
        (b'{"input": %s1%s}' % (b"[" * 65, b"]" * 65), 422, "body.input" + "[0]" * 64),
        (b'{"input": 1, "idempotencykey": "k"}', 422, "body.idempotencykey"),
        (b'{"input": 1, "idempotency_key": ""}', 422, "body.idempotency_key"),
        (b'{"input": 1, "trigger": "nope"}', 422, "body.trigger"),
        (b'{"input": ', 400, "body"),
        (b"[1]", 422, "body.data"),
    ],
)
def test_what_cannot_be_an_input_is_refused_and_named(program, body, status, field):
    workflow = published(program)
    response = program("POST", f"/workflows/{workflow}/runs", body)
    assert (response.status_code, problems(response)) == (status, [("", field)])
    assert not Run.objects.exists()


def test_large_and_compressed_and_multipart_bodies_are_refused(program):
    workflow = published(program)
    at = f"/workflows/{workflow}/runs"
    assert program("POST", at, {"input": "x" * 1024 * 1024}).status_code == 413
    refused = program("POST", at, {"input": "x" * 3 * 1024 * 1024})
    assert refused.status_code == 413 and "2,097,152 bytes" in refused.content.decode()
    assert program("POST", at, {}, **{"Content-Encoding": "gzip"}).status_code == 415
    assert program("POST", at, {}, **{"Content-Type": "multipart/form-data; boundary=x"}).status_code == 415
    assert not Run.objects.exists()


def test_what_is_not_live_starts_nothing(program):
    workflow = program("POST", "/workflows", {"name": "Leads"}).json()["id"]
    assert program("POST", f"/workflows/{workflow}/runs", {}).status_code == 409
    live = published(program)
    Workflow.objects.filter(pk=live).update(paused=True)
    assert program("POST", f"/workflows/{live}/runs", {}).status_code == 409
    assert not Run.objects.exists()


def test_runs_are_listed_and_filtered(program):
    version = factories.version()
    runs = [factories.run(version, state=state) for state in ("open", "failed", "succeeded")]
    elsewhere = factories.run()
    assert [one["id"] for one in program("GET", "/runs").json()["items"]] == [
        elsewhere.pk,
        *(run.pk for run in runs[::-1]),
    ]
    assert [
        one["id"] for one in program("GET", f"/runs?workflow={version.workflow_id}&state=failed").json()["items"]
    ] == [runs[1].pk]
    assert program("GET", "/runs?test=true").json()["items"] == []
    assert program("GET", "/runs?state=happy").status_code == 422


def test_a_run_tells_where_it_stands(program):
    run = factories.run()
    wait = factories.wait(run, "hot/yes/approve_vip", "approval", 5, due=3600)
    shown = program("GET", f"/runs/{run.pk}").json()
    assert (shown["state"], shown["version"], shown["trigger"], shown["cost"]) == ("open", 7, "lead", None)
    assert shown["input"] == {"body": {"company": "Halden Robotics"}}
    assert [(one["id"], one["path"], one["kind"]) for one in shown["waits"]] == [
        (wait.pk, "hot/yes/approve_vip", "approval")
    ]


def test_a_run_that_cost_nothing_cost_0(program):
    run = factories.run(state="succeeded", cost="0.00000000")
    factories.attempt(run, "qualify", 1, 0, 1, cost="0.00410000")
    assert program("GET", f"/runs/{run.pk}").json()["cost"] == "0"
    assert program("GET", "/runs").json()["items"][0]["cost"] == "0"
    (step,) = program("GET", f"/runs/{run.pk}/steps").json()["items"]
    assert [one["cost"] for one in step["attempts"]] == ["0.0041"]


def test_steps_come_in_pages_with_their_attempts(program):
    run = factories.run()
    factories.result(run, "qualify", 0, 1, output={"score": 82})
    factories.attempt(run, "qualify", 1, 0, 0.4, outcome="refused")
    factories.attempt(run, "qualify", 2, 0.5, 1)
    for n in range(3):
        factories.result(run, f"each[{n}]/add", n, n + 1)
    factories.frame(run, "each", total=4, cursor=4, open=[3], succeeded=3)
    factories.attempt(run, "each[3]/add", 1, 4, None)
    found, cursor = [], ""
    for _ in range(10):
        page = program("GET", f"/runs/{run.pk}/steps?limit=2{cursor}").json()
        found += page["items"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert [(one["path"], one["state"]) for one in found] == [
        ("qualify", "succeeded"),
        ("each[0]/add", "succeeded"),
        ("each[1]/add", "succeeded"),
        ("each[2]/add", "succeeded"),
        ("each[3]/add", "running"),
    ]
    assert found[0]["output"] == {"score": 82}
    assert [one["outcome"] for one in found[0]["attempts"]] == ["refused", "answered"]
    assert len(found) == StepResult.objects.count() + 1 and Attempt.objects.count() == 3
    for cursor in ("x", "W10=", "WyIiLCJhIiwiYiJd", "é"):
        assert program("GET", f"/runs/{run.pk}/steps?cursor={cursor}").status_code == 422


def test_cancelling_and_requeueing_twice_does_nothing_the_second_time(program):
    run = factories.run()
    cancel = [program("POST", f"/runs/{run.pk}/cancel", {"why": "A mistake"}).json() for _ in range(2)]
    assert cancel == [{"changed": True, "state": "cancelled"}, {"changed": False, "state": "cancelled"}]
    failed = factories.run(state="failed")
    requeue = [program("POST", f"/runs/{failed.pk}/requeue").json() for _ in range(2)]
    assert requeue == [{"changed": True, "state": "open"}, {"changed": False, "state": "open"}]
    assert AuditEntry.objects.filter(action="requeue", subject=f"run:{failed.pk}").count() == 1


def test_a_viewer_may_look_and_not_touch():
    viewer, run = Program("viewer"), factories.run(state="failed")
    assert viewer("GET", f"/runs/{run.pk}").status_code == 200
    for path in (f"/runs/{run.pk}/requeue", f"/runs/{run.pk}/cancel"):
        assert viewer("POST", path, {}).status_code == 403
    run.refresh_from_db()
    assert run.state == "failed"


# Approvals


@pytest.fixture
def asked() -> Wait:
    wait = factories.wait(factories.run(), "approve_vip", "approval", 1, due=10**9)
    factories.approval(wait)
    return wait


def test_an_approver_sees_and_answers_what_asks_them(asked):
    dana = Program(None, email="Dana@example.com")
    (shown,) = dana("GET", "/approvals?mine=true").json()["items"]
    assert (shown["id"], shown["run"], shown["approvers"]) == (
        asked.pk,
        asked.run_id,
        ["dana@example.com", "marcus@example.com"],
    )
    decided = dana("POST", f"/approvals/{asked.pk}/decision", {"answer": "approve", "comment": "Fine"})
    assert decided.status_code == 200
    assert (decided.json()["state"], decided.json()["answer"]) == ("decided", "approve")
    again = dana("POST", f"/approvals/{asked.pk}/decision", {"answer": "reject"})
    assert again.status_code == 409
    assert "dana@example.com" in again.json()["error"]["message"]
    assert dana("GET", "/approvals").json()["items"] == []
    (closed,) = dana("GET", "/approvals?state=resolved").json()["items"]
    assert closed["decisions"][0]["comment"] == "Fine"


def test_viewers_see_approvals_and_operators_answer_them(asked):
    viewer, operator = Program("viewer"), Program("operator")
    assert len(viewer("GET", f"/approvals?run={asked.run_id}").json()["items"]) == 1
    assert viewer("GET", "/approvals?mine=true").json()["items"] == []
    assert viewer("POST", f"/approvals/{asked.pk}/decision", {"answer": "approve"}).status_code == 403
    assert operator("POST", f"/approvals/{asked.pk}/decision", {"answer": "approve"}).status_code == 200


def test_strangers_do_not_see_approvals(asked):
    stranger = Program("admin", of=Team.objects.create(name="Other"))
    assert stranger("GET", "/approvals").json()["items"] == []
    assert stranger("POST", f"/approvals/{asked.pk}/decision", {"answer": "approve"}).status_code == 404


def test_a_person_without_an_address_is_asked_nothing(asked):
    nobody = Program(None, email="")
    assert nobody("GET", "/approvals").json()["items"] == []


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
