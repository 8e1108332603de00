"""Who comes first wins, the others are told, nothing is lost or done twice: over real connections, at one instant."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection

from runtime import acts, approvals, waits
from runtime.models import Approval, AuditEntry, Decision, Dispatch, Run, Signal, Wait, Workflow
from runtime.starts import IdempotencyConflict, start
from tests.runtime.engine import ROOT, WAITING_FOR_A_LOCK, at_once, eventually

CALLBACK = [{"id": "reply", "type": "callback"}, {"id": "after", "type": "probe"}]


def approval(**config) -> list[dict]:
    given = {
        "approvers": ["dana@example.com", "lee@example.com"],
        "subject": "?",
        "on_rejected": "go_on",
        "on_expired": "go_on",
    }
    return [{"id": "ok", "type": "approval", "config": {**given, **config}}, {"id": "after", "type": "probe"}]


def test_signals_race_with_the_registration_of_their_waits(engine):
    version = engine.publish(CALLBACK)
    runs = [engine.start(version) for _ in range(60)]
    for _ in range(2):
        engine.worker()
    eventually(lambda: Wait.objects.exists())
    third = len(runs) // 3
    groups = [runs[:third], runs[third : 2 * third], runs[2 * third :]]
    at_once(
        *(lambda group=group: [waits.signal(run, "reply", run, "1") for run in reversed(group)] for group in groups)
    )
    for run in runs:
        engine.ends(run)
        assert engine.output(run, "reply") == run
    assert Signal.objects.filter(wait__isnull=False).count() == len(runs)


@pytest.mark.fault(5)
def test_a_signal_during_a_registration_waits_for_it(engine, database_url):
    """The owner's batch has looked for early signals and is not committed yet: a signal must not slip in beside it."""
    run = engine.start(engine.publish(CALLBACK))
    with (
        psycopg.connect(database_url) as owner,
        psycopg.connect(database_url, autocommit=True) as sees,
        ThreadPoolExecutor(1) as thread,
    ):
        owner.execute(waits.LOCK, [run])
        owner.execute(
            """insert into wait (run_id, scope, path, take, kind, n, state, data, created_at)
               values (%s, '', 'reply', 1, 'callback', 1, 'open', '{}', now())""",
            [run],
        )
        told = thread.submit(lambda: at_once(lambda: waits.signal(run, "reply", "x", "1")))
        eventually(lambda: sees.execute(WAITING_FOR_A_LOCK).fetchone() or told.done())
        assert not told.done(), "it did not wait for the run's lock"
        owner.commit()
        assert told.result() == [True]
    wait = Wait.objects.get(run_id=run)
    assert (wait.state, wait.outcome["payload"]) == ("resolved", "x")


def test_the_same_signal_at_one_instant_counts_once(engine):
    run = engine.start(engine.publish(CALLBACK))
    engine.worker()
    engine.parked(run)
    told = at_once(*[lambda: waits.signal(run, "reply", "x", "same")] * 8)
    assert sorted(told) == [False] * 7 + [True]
    engine.ends(run)
    assert len(engine.ledger(run)) == 1


def test_approve_reject_and_expiry_at_one_instant_give_one_answer(engine, clock):
    version = engine.publish(approval(expires="1h"))
    runs = [engine.start(version) for _ in range(6)]
    engine.worker()
    for run in runs:
        engine.wait(run, "ok")

    def decide(run: int, who: int, answer: str):
        question = Approval.objects.get(run_id=run)
        recipient = question.recipients.order_by("address")[who]
        return lambda: approvals.decide(question, answer, recipient=recipient).state

    by_run = {run: (decide(run, 0, "approve"), decide(run, 1, "reject")) for run in runs}
    last = runs[-1]
    for run, (yes, no) in by_run.items():
        first, second, *_ = at_once(yes, no, *([lambda: clock.advance(hours=1)] if run == last else []))
        assert {first, second} <= {"decided", "closed", "expired"}
        engine.ends(run)
        decision = engine.output(run, "ok")["decision"]
        answers = list(Decision.objects.filter(approval__run_id=run).values_list("answer", flat=True))
        assert {"approved": ["approve"], "rejected": ["reject"], "expired": []}[decision] == answers
        assert [first, second].count("decided") == len(answers)
        assert len(engine.ledger(run)) == 1


@pytest.mark.fault(32)
def test_a_cancel_races_with_the_end(engine):
    version = engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "go-{{ run.id }}"}}])
    runs = [engine.start(version) for _ in range(12)]
    engine.worker()
    eventually(lambda: len(engine.ledger()) == len(runs))
    for run in runs:
        _, cancelled = at_once(lambda run=run: engine.release(f"go-{run}"), lambda run=run: acts.cancel(run))
        eventually(lambda run=run: engine.state(run) != "open")
        assert engine.state(run) == ("cancelled" if cancelled else "succeeded")
        assert not Dispatch.objects.filter(run_id=run).exists()
    eventually(lambda: not [attempt for run in runs for attempt in engine.attempts(run) if attempt.outcome is None])


def test_a_signal_and_the_time_out_at_one_instant_give_one_outcome(engine, clock):
    reply = {"id": "reply", "type": "callback", "config": {"expires": "1h"}, "on_error": "continue"}
    version = engine.publish([reply, {"id": "after", "type": "probe"}])
    runs = [engine.start(version) for _ in range(10)]
    for _ in range(2):
        engine.worker()
    for run in runs:
        engine.parked(run)
    told = at_once(lambda: clock.advance(hours=1), *(lambda run=run: waits.signal(run, "reply", run, "1") for run in runs))[1:]
    for run, taken in zip(runs, told, strict=True):
        engine.ends(run)
        outcome = Wait.objects.get(run_id=run, kind="callback").outcome
        assert outcome["by"] in ("signal", "due") and (taken or outcome["by"] == "due"), outcome
        if outcome["by"] == "signal":
            assert engine.output(run, "reply") == run
        assert len(engine.ledger(run)) == 1


def test_starts_while_a_version_is_published_are_of_the_old_or_the_new_one_and_end_on_it(engine):
    def steps(note: str) -> list[dict]:
        return [{"id": "a", "type": "probe", "config": {"note": note}}, {"id": "b", "type": "probe", "config": {"note": note}}]

    old = engine.publish(steps("1"))
    workflow = old.workflow

    def begin() -> int:
        live = Workflow.objects.select_related("live_version").get(pk=workflow.pk).live_version
        return engine.start(live)

    def publish_next() -> str:
        return str(engine.publish(steps("2"), workflow=Workflow.objects.get(pk=workflow.pk)).pk)

    engine.worker()
    told = at_once(publish_next, *[begin] * 12)
    runs = [one for one in told if isinstance(one, int)]
    assert len(runs) == 12, told
    for run in runs:
        engine.ends(run)
        version = Run.objects.get(pk=run).version
        assert [line["note"] for line in engine.ledger(run)] == [str(version.number)] * 2


def test_publishing_twice_at_one_instant_gives_two_numbers_and_one_live_version(engine):
    workflow = engine.publish([{"id": "a", "type": "probe"}]).workflow

    def publish_again() -> int:
        return engine.publish([{"id": "a", "type": "probe"}], workflow=Workflow.objects.get(pk=workflow.pk)).number

    made = at_once(*[publish_again] * 5)
    assert sorted(made) == [2, 3, 4, 5, 6]
    workflow.refresh_from_db()
    assert workflow.live_version.number in made


@pytest.mark.parametrize("turn", range(4))
def test_a_cancelled_wait_takes_no_signal(engine, turn):
    run = engine.start(engine.publish(CALLBACK))
    engine.worker()
    engine.parked(run)
    cancelled, taken = at_once(lambda: acts.cancel(run), lambda: waits.signal(run, "reply", None, "1"))
    eventually(lambda: engine.state(run) != "open")
    assert engine.state(run) == ("cancelled" if cancelled else "succeeded") and (cancelled or taken)
    assert Wait.objects.get(run_id=run).state == ("resolved" if taken else "cancelled")
    assert Signal.objects.filter(run_id=run).count() == taken, "what came after the end is told so, and not kept"
    assert taken or not engine.results(run)


def test_a_requeue_at_one_instant_counts_once(engine):
    run = engine.start(engine.publish([{"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False}}]))
    engine.worker()
    engine.ends(run, "failed")
    told = at_once(*[lambda: acts.requeue(run)] * 4)
    assert {type(one) for one in told} == {bool}, told
    assert told.count(True) in (1, 2)  # a second one, when the run had failed again in between
    engine.ends(run, "failed")
    assert [attempt.take for attempt in engine.attempts(run)] == list(range(1, told.count(True) + 2))
    assert AuditEntry.objects.filter(action="requeue").count() == told.count(True)


def test_a_requeue_in_the_middle_of_a_force_fail_is_no_error(engine):
    run = engine.start(engine.publish(CALLBACK))
    assert acts.force_fail(run)

    def requeue_before_the_end(execute, sql, params, many, context):
        if "update run" in sql and engine.state(run) == "failed":
            assert at_once(lambda: acts.requeue(run)) == [True]
        return execute(sql, params, many, context)

    with connection.execute_wrapper(requeue_before_the_end):
        assert acts.force_fail(run)
    assert engine.state(run) == "failed" and not Dispatch.objects.filter(run_id=run).exists()
    assert Wait.objects.filter(run_id=run, state="open").count() == 0


def test_one_key_twenty_times_at_one_instant_starts_one_run(engine):
    version = engine.publish([{"id": "x", "type": "probe"}])

    def once():
        return start(version, trigger_key="hook", input={"body": 1}, idempotency_key="event-1", input_hash="h")

    started = at_once(*[once] * 20)
    assert len({one.run_id for one in started}) == 1
    assert [one.created for one in started].count(True) == 1
    with pytest.raises(IdempotencyConflict):
        start(version, trigger_key="hook", input={"body": 2}, idempotency_key="event-1", input_hash="other")
    assert Run.objects.count() == Dispatch.objects.count() == 1


def test_repeats_of_a_key_use_up_no_run_numbers(engine):
    version = engine.publish([{"id": "x", "type": "probe"}])
    again = [start(version, trigger_key="hook", input={}, idempotency_key="event-1") for _ in range(3)]
    assert [one.created for one in again] == [True, False, False] and len({one.run_id for one in again}) == 1
    assert start(version, trigger_key="hook", input={}, idempotency_key="event-2").run_id == again[0].run_id + 1
    assert start(version, trigger_key="hook", input={}).run_id == again[0].run_id + 2


def test_many_workers_claim_each_run_once(engine):
    version = engine.publish([{"id": "x", "type": "probe"}])
    runs = [engine.start(version) for _ in range(150)]
    for _ in range(3):
        engine.worker(concurrency=20)
    for run in runs:
        engine.ends(run)
    assert sorted(line["run"] for line in engine.ledger()) == runs


@pytest.mark.parametrize("place", ["before", "inside", "after"])
def test_a_decision_whose_process_dies_happened_with_its_commit_and_not_before(engine, place):
    run = engine.start(engine.publish(approval()))
    engine.worker()
    engine.parked(run)
    code = f"""
import django; django.setup()
from runtime import approvals
from runtime.models import Approval
question = Approval.objects.get(run_id={run})
approvals.decide(question, "approve", recipient=question.recipients.first())
"""
    env = os.environ | {"HOLDFAST_FAILPOINT": f"decision.{place}"}
    dead = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=False)
    assert dead.returncode == -9
    question = Approval.objects.get(run_id=run)
    later = approvals.decide(question, "reject", recipient=question.recipients.first()).state
    assert later == ("already" if place == "after" else "decided")
    engine.ends(run)
    assert Decision.objects.get().answer == ("approve" if place == "after" else "reject")


# What comes while a run has failed


def test_a_callback_to_a_failed_run_is_kept_for_its_requeue(engine):
    lanes = [
        {"id": "a", "steps": [{"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False}}]},
        {"id": "b", "steps": CALLBACK},
    ]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    engine.worker()
    engine.ends(run, "failed")
    assert waits.signal(run, "both/b/reply", "kept", "1") and not waits.signal(run, "both/b/reply", "kept", "1")
    engine.release("healed")
    assert acts.requeue(run)
    engine.ends(run)
    assert engine.output(run, "both/b/reply") == "kept"


def test_a_requeue_restores_a_question_to_a_person(engine):
    lanes = [
        {"id": "a", "steps": [{"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False, "hold": ""}}]},
        {
            "id": "b",
            "steps": [
                {"id": "odd", "type": "probe", "on_interrupted": "ask", "config": {"fail": 9, "outcome": "unknown"}}
            ],
        },
    ]
    lanes[0]["steps"].insert(0, {"id": "reply", "type": "callback"})
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    engine.worker()
    asked = engine.wait(run, "both/b/odd", "person")
    waits.signal(run, "both/a/reply", None, "1")
    engine.ends(run, "failed")
    assert not acts.answer(asked.pk, "again"), "a suspended question cannot be answered"
    engine.release("healed")
    assert acts.requeue(run)
    assert engine.state(run) == "attention"
    assert acts.answer(asked.pk, "again")
    engine.ends(run)


def test_a_rerun_is_a_new_run_of_the_same_input(engine):
    run = engine.start(
        engine.publish([{"id": "x", "type": "probe", "config": {"value": "{{ trigger.body }}"}}]),
        {"n": 1},
        idempotency_key="k",
        input_hash="h",
    )
    engine.worker()
    engine.ends(run)
    again = acts.rerun(Run.objects.get(pk=run))
    assert again != run and Run.objects.get(pk=again).rerun_of_id == run
    engine.ends(again)
    assert engine.output(again, "x") == {"n": 1}
