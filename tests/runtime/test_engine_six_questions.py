"""The six questions that a first review asks of a durable runtime."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import warnings
from collections.abc import Iterator

import psycopg
import pytest

from runtime import acts, approvals, waits
from runtime.models import Approval, Decision, Dispatch, Worker
from tests.runtime.engine import ROOT, Zygote, eventually


def called(crm, run: int) -> list[dict]:
    return [row for row in crm.ledger() if row["path"] == f"/deals/{run}"]


def deal(crm, **more) -> dict:
    config = {"method": "POST", "url": crm.url + "/deals/{{ run.id }}", "json": {"size": 3}}
    return {"id": "deal", "type": "http", "config": config, **more}


# 1. A worker dies before a step


@pytest.mark.parametrize("place", ["claim.after", "attempt.before:2", "attempt.after:2"])
def test_a_worker_dies_before_a_step_and_another_goes_on_there(engine, place):
    run = engine.start(engine.publish([{"id": f"s{n}", "type": "probe", "config": {"value": n}} for n in range(3)]))
    engine.dies(engine.worker(failpoint=place))
    assert engine.state(run) == "open"
    finished = engine.results(run)
    engine.worker()
    engine.ends(run)
    called = [line["path"] for line in engine.ledger()]
    assert list(dict.fromkeys(called)) == ["s0", "s1", "s2"]
    assert all(called.count(path) == 1 for path in finished), "a finished step ran again"
    assert len({line["key"] for line in engine.ledger()}) == 3, "a repeat does not carry its key"


# 2. A worker dies after the effect and before the mark


def test_a_call_that_may_be_repeated_is_repeated_under_its_key(engine, crm):
    run = engine.start(engine.publish([deal(crm, on_interrupted="repeat")]))
    assert engine.worker(failpoint="call.after", lease_seconds=3).ended() == -9  # and nobody helps: its lease runs out
    engine.worker()
    engine.ends(run)
    first, second = called(crm, run)
    assert first["key"] == second["key"] and first["key"]
    assert (first["effect"], second["effect"]) == (True, False)
    assert engine.output(run, "deal")["body"]["id"] == first["id"]
    assert [attempt.outcome for attempt in engine.attempts(run)] == ["unknown", "answered"]


def test_a_call_that_may_not_be_repeated_waits_for_a_person(engine, crm):
    run = engine.start(engine.publish([deal(crm), {"id": "after", "type": "probe"}]))
    engine.dies(engine.worker(failpoint="call.after"))
    engine.worker()
    wait = engine.wait(run, "deal", "person")
    eventually(lambda: engine.state(run) == "attention")
    assert len(called(crm, run)) == 1
    assert acts.answer(wait.pk, "happened", output={"body": {"id": 7}}, user=None)
    assert not acts.answer(wait.pk, "again")
    engine.ends(run)
    assert engine.output(run, "deal") == {"body": {"id": 7}}
    assert len(called(crm, run)) == 1


# 3. A deployment during a wait of days


@pytest.mark.fault(3, 10)
def test_a_deployment_replaces_all_workers_during_a_wait_of_days(engine, clock):
    steps = [
        {"id": "before", "type": "probe"},
        {"id": "days", "type": "delay", "config": {"for": "3d"}},
        {"id": "after", "type": "probe"},
    ]
    run = engine.start(engine.publish(steps))
    old = [engine.worker(env={"HOLDFAST_CODE_VERSION": "old"}) for _ in range(2)]
    engine.parked(run)
    assert [worker.stop() for worker in old] == [0, 0]
    clock.advance(days=2, hours=23)
    new = engine.worker(env={"HOLDFAST_CODE_VERSION": "new"})
    eventually(lambda: Worker.objects.filter(pid=new.pid, code_version="new").exists())
    other = engine.start(engine.publish([{"id": "only", "type": "probe"}]))
    engine.ends(other)
    assert "after" not in engine.results(run), "the wait was early"
    clock.advance(hours=1)
    engine.ends(run, seconds=10)
    assert [line["path"] for line in engine.ledger(run)] == ["before", "after"]
    wait = engine.wait(run, "days", state="resolved")
    assert wait.resolved_at >= wait.due_at


@pytest.fixture(scope="module")
def previous(zygote, tmp_path_factory) -> Iterator[Zygote]:
    """Workers of the commit before this one; of this code where there is no history to take it from, which is said."""
    folder = tmp_path_factory.mktemp("previous")
    try:
        archive = subprocess.run(["git", "archive", "HEAD~1"], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as wrong:
        said = getattr(wrong, "stderr", b"") or str(wrong).encode()
        warnings.warn(f"Old and new workers are of the same code: {said.decode(errors='replace').strip()}", stacklevel=1)
        yield zygote
        return
    tarfile.open(fileobj=io.BytesIO(archive)).extractall(folder, filter="data")
    os.environ["HOLDFAST_STEP_MODULES"] = "tests.runtime.engine_steps"
    try:
        started = Zygote(folder)
    finally:
        del os.environ["HOLDFAST_STEP_MODULES"]
    yield started
    started.close()


def test_the_code_is_replaced_in_the_middle_of_a_delay_an_approval_and_a_loop(engine, clock, previous):
    delay = [{"id": "days", "type": "delay", "config": {"for": "3d"}}, {"id": "after", "type": "probe"}]
    call = {"id": "call", "type": "probe", "config": {"hold": "item-{{ loop.index }}"}}
    loop = [{"id": "each", "type": "loop", "config": {"items": "[1, 2, 3, 4]", "collect": "loop.item"}, "steps": [call]}]
    waiting, asked, looping = (engine.start(engine.publish(steps)) for steps in (delay, approval_flow(), loop))
    old = [engine.worker(zygote=previous, env={"HOLDFAST_CODE_VERSION": "old"}) for _ in range(2)]
    engine.parked(waiting), engine.parked(asked)
    engine.release("item-0")
    eventually(lambda: len(engine.ledger(looping)) == 2, what=lambda: engine.told(looping))
    # Side by side: each takes its part of what is new.
    new = engine.worker(env={"HOLDFAST_CODE_VERSION": "new"}, concurrency=5)
    small = engine.publish([{"id": "x", "type": "probe"}])
    finished = Worker.objects.filter(finished__gt=0)

    def both() -> bool:
        engine.ends(engine.start(small))
        return {"old", "new"} <= set(finished.values_list("code_version", flat=True))

    eventually(both)
    assert [worker.stop() for worker in old] == [0, 0]
    for n in range(1, 4):
        engine.release(f"item-{n}")
    assert engine.ends(looping) and engine.output(looping, "each") == {
        "count": 4, "succeeded": 4, "failed": 0, "results": [1, 2, 3, 4]
    }  # fmt: skip
    keys = [line["key"] for line in engine.ledger(looping)]
    assert len(set(keys)) == 4, "the call that was in flight is made again by its key"
    assert len(keys) <= 4 + len(old), "and once for each worker that was replaced while it held the run"
    question = Approval.objects.get(run_id=asked)
    assert approvals.decide(question, "approve", recipient=question.recipients.first()).state == "decided"
    clock.advance(days=3)
    engine.ends(waiting), engine.ends(asked)
    assert new.status() is None


# 4. Duplicate wake signals


@pytest.mark.fault(1)
def test_a_wait_is_woken_many_times_and_goes_on_once(engine, database_url):
    steps = [{"id": "call", "type": "callback", "config": {"expires": "7d"}}, {"id": "after", "type": "probe"}]
    run = engine.start(engine.publish(steps))
    for _ in range(2):
        engine.worker()
    engine.parked(run)
    with psycopg.connect(database_url, autocommit=True) as doorbell:
        for _ in range(20):
            doorbell.execute("select pg_notify('holdfast', %s)", [str(run)])
            doorbell.execute("select pg_notify('holdfast', '')")
    assert waits.signal(run, "call", {"n": 1}, "event-1")
    assert not waits.signal(run, "call", {"n": 1}, "event-1")
    waits.signal(run, "call", {"n": 2}, "event-2")
    engine.ends(run)
    assert not waits.signal(run, "call", {"n": 3}, "event-3"), "a signal to a run that has ended"
    assert engine.output(run, "call") == {"n": 1}
    assert len(engine.ledger(run)) == 1


# 5. An approval is submitted twice


def approval_flow(**config) -> list[dict]:
    given = {
        "approvers": ["dana@example.com", "lee@example.com"],
        "subject": "Go on?",
        "on_rejected": "go_on",
        **config,
    }
    return [{"id": "ok", "type": "approval", "config": given}, {"id": "after", "type": "probe"}]


def test_an_approval_submitted_twice_advances_once(engine):
    run = engine.start(engine.publish(approval_flow()))
    engine.worker()
    engine.parked(run)
    approval = Approval.objects.get(run_id=run)
    dana, lee = approval.recipients.order_by("address")
    assert approvals.decide(approval, "approve", recipient=dana).state == "decided"
    assert approvals.decide(approval, "approve", recipient=dana).state == "already"
    late = approvals.decide(approval, "reject", recipient=lee)
    assert (late.state, late.by, late.answer) == ("closed", "dana@example.com", "approve")
    engine.ends(run)
    assert approvals.decide(approval, "reject", recipient=dana).state == "already"
    assert engine.output(run, "ok")["decision"] == "approved"
    assert Decision.objects.count() == 1
    assert len(engine.ledger(run)) == 1


# 6. The definition changes while a run is in flight


@pytest.mark.fault(28)
def test_a_run_ends_on_the_version_that_it_began_with(engine, clock):
    steps = [{"id": "first", "type": "probe"}, {"id": "day", "type": "delay", "config": {"for": "1d"}},
             {"id": "second", "type": "probe", "config": {"note": "v{{ workflow.version }}"}}]  # fmt: skip
    version = engine.publish(steps)
    run = engine.start(version)
    engine.worker()
    engine.parked(run)
    changed = engine.publish(
        [{"id": "second", "type": "stop", "config": {"outcome": "failed"}}], workflow=version.workflow
    )
    assert changed.number == 2
    version.workflow.deleted_at, version.workflow.live_version = clock.now(), None
    version.workflow.save()
    for statement in ("delete from version where id = %s", "update version set definition = '{}' where id = %s"):
        with pytest.raises(Exception, match="version"):
            engine.sql(statement, version.pk)
    clock.advance(days=1)
    engine.worker()
    engine.ends(run)
    assert [line["note"] for line in engine.ledger(run)] == ["", "v1"]
    assert not Dispatch.objects.exists()
