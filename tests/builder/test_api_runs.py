"""The API: runs and approvals, in the shapes that the description promises."""

from __future__ import annotations

import pytest

from runtime.models import Attempt, AuditEntry, Dispatch, Run, StepResult, Team, Wait, Workflow
from tests.builder import factories
from tests.builder.program import Program, problems, published

pytestmark = pytest.mark.django_db


@pytest.fixture
def program() -> Program:
    return Program()


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
