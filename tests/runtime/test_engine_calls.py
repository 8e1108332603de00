"""Calls to the outside: what is repeated, what is asked about, and what a person may say."""

from __future__ import annotations

import signal

import pytest

from runtime import acts, waits
from runtime.models import Attempt, Wait
from tests.runtime.engine import eventually

SHORT = {"timeout": "3s"}


def post(crm, path: str = "deals", **more) -> dict:
    config = {"method": "POST", "url": crm.url + "/{{ run.id }}/" + path, "json": {"size": 3}}
    return {"id": "deal", "type": "http", "config": config, **more}


def called(crm, run: int) -> list[dict]:
    return [row for row in crm.ledger() if row["path"].startswith(f"/{run}/")]


def outcomes(engine, run: int, path: str = "deal") -> list[str | None]:
    return [attempt.outcome for attempt in engine.attempts(run, path)]


def check(crm, happened: str = "response.status == 200", **more) -> dict:
    request = {"method": "GET", "url": crm.url + "/{{ run.id }}/was-it"}
    return {"check": {"request": request, "happened": happened, "output": "{'id': 'found'}", "after": "1s", **more}}


# Time-outs, resets and deaths are treated alike


@pytest.mark.parametrize("then", ["hang", "reset", "death"])
def test_uncertain_calls_repeat_or_ask_as_their_step_says(engine, crm, then):
    crm.control(after_commit={"death": "hang"}.get(then, then), after_commit_times=2)
    limit = SHORT if then == "hang" else {}
    repeating = engine.start(engine.publish([post(crm, on_interrupted="repeat", **limit)]))
    asking = engine.start(engine.publish([post(crm, on_interrupted="ask", **limit)]))
    worker = engine.worker()
    if then == "death":
        eventually(lambda: called(crm, repeating) and called(crm, asking))
        worker.signal(signal.SIGKILL)
        engine.dies(worker)
        engine.worker()
    engine.ends(repeating)
    first, second = called(crm, repeating)
    assert (first["effect"], second["effect"]) == (True, False) and first["key"] == second["key"]
    wait = engine.wait(asking, "deal", "person")
    assert engine.state(asking) == "attention"
    assert outcomes(engine, repeating) == ["unknown", "answered"] and outcomes(engine, asking) == ["unknown"]
    assert len(called(crm, asking)) == 1
    assert wait.data["reason"] == "uncertain" and wait.data["attempt"] == 1 and wait.data["error"]


@pytest.mark.parametrize(("ends", "words"), [("stop", "was stopped during the call"), ("kill", "was lost during the call")])
def test_a_call_that_an_orderly_stop_cut_off_is_told_from_one_that_a_death_did(engine, crm, ends, words):
    crm.control(after_commit="hang", after_commit_times=2)
    runs = [engine.start(engine.publish([post(crm, on_interrupted=how)])) for how in ("ask", "repeat")]
    worker = engine.worker()
    eventually(lambda: all(called(crm, run) for run in runs))
    getattr(worker, ends)()
    if ends == "kill":
        engine.leases_end()
    engine.worker()
    asking, repeating = runs
    assert words in engine.wait(asking, "deal", "person").data["error"]
    engine.ends(repeating)
    assert [words in (engine.attempts(run, "deal")[0].error or "") for run in runs] == [True, True]
    assert any(words in line for line in engine.log(repeating))


def test_a_person_says_that_it_happened_that_it_runs_again_or_that_it_failed(engine, crm):
    crm.control(after_commit="reset", after_commit_times=3)
    version = engine.publish(
        [
            post(crm),
            {"id": "next", "type": "probe", "config": {"value": "{{ steps.deal.output.body.id }}"}},
        ]
    )
    runs = {choice: engine.start(version) for choice in ("happened", "again", "fail")}
    engine.worker()
    for choice, run in runs.items():
        wait = engine.wait(run, "deal", "person")
        assert acts.answer(wait.pk, choice, output={"body": {"id": 99}}) and not acts.answer(wait.pk, "fail")
    engine.ends(runs["happened"]), engine.ends(runs["again"])
    assert "failed" in engine.ends(runs["fail"], "failed").error["message"]
    assert engine.output(runs["happened"], "next") == 99
    first, second = called(crm, runs["again"])
    assert first["key"] != second["key"], "another take is another operation"
    assert engine.output(runs["again"], "next") == second["id"]
    assert [(attempt.take, attempt.n) for attempt in engine.attempts(runs["again"], "deal")] == [(1, 1), (2, 1)]
    assert len(called(crm, runs["happened"])) == len(called(crm, runs["fail"])) == 1


def test_a_key_is_the_same_in_a_take_also_after_deaths_and_another_in_the_next(engine, crm):
    crm.control(refuse=503, refuse_times=2, refuse_headers={"Retry-After": "0"})
    run = engine.start(
        engine.publish(
            [
                post(crm, on_interrupted="repeat", retry={"first": "1ms"}),
                {"id": "end", "type": "probe", "config": {"fail": 1, "retry": False}},
            ]
        )
    )
    engine.dies(engine.worker(failpoint="call.after"))
    engine.worker()
    engine.ends(run, "failed")
    keys = {row["key"] for row in called(crm, run)}
    assert len(keys) == 1 and len(called(crm, run)) == 2
    engine.sql("update step_result set superseded = true where run_id = %s and path = 'deal'", run)
    assert acts.requeue(run)
    engine.ends(run, "failed")
    third = called(crm, run)[2]
    assert third["key"] not in keys and third["effect"]


# Check


def test_a_check_takes_what_the_other_system_says(engine, clock, crm):
    crm.control(after_commit="reset", after_commit_times=3)
    happened = engine.start(engine.publish([post(crm, on_interrupted=check(crm))]))
    not_yet = engine.start(engine.publish([post(crm, on_interrupted=check(crm, "response.status == 404"))]))
    unclear = engine.start(engine.publish([post(crm, on_interrupted=check(crm, "response.nonsense"))]))
    engine.worker(lease_seconds=20)
    asked = [engine.wait(run, "deal", "retry") for run in (happened, not_yet, unclear)]
    began = Attempt.objects.get(run_id=happened).started_at
    assert (asked[0].due_at - began).total_seconds() >= 80, "the check came before time-out and lease were over"
    assert not waits.fire(asked[0].pk) and not waits.extend(asked[0].pk, began), "nor does it by hand"
    clock.advance(seconds=81)
    engine.ends(happened), engine.ends(not_yet)
    assert engine.output(happened, "deal") == {"id": "found"}
    assert len(called(crm, happened)) == 1
    assert len(called(crm, not_yet)) == 2 and len({row["key"] for row in called(crm, not_yet)}) == 1
    engine.wait(unclear, "deal", "person")
    assert engine.state(unclear) == "attention" and len(called(crm, unclear)) == 1
    operations = [(attempt.operation, attempt.outcome) for attempt in engine.attempts(happened)]
    assert operations == [("call", "unknown"), ("check", "answered")]


def test_a_check_that_dies_is_asked_again_and_one_that_fails_means_ask(engine, clock, crm):
    crm.control(after_commit="reset", after_commit_times=1)
    run = engine.start(engine.publish([post(crm, on_interrupted=check(crm))]))
    doomed = engine.worker(failpoint="attempt.after:2")
    engine.wait(run, "deal", "retry")
    clock.advance(minutes=2)
    engine.dies(doomed)
    engine.worker()
    engine.ends(run)
    assert [attempt.operation for attempt in engine.attempts(run)] == ["call", "check", "check"]
    assert outcomes(engine, run) == ["unknown", "unknown", "answered"]
    crm.control(after_commit="reset", after_commit_times=1)
    gone = check(crm)
    gone["check"]["request"]["url"] = "http://127.0.0.1:9/"
    run = engine.start(engine.publish([post(crm, on_interrupted=gone)]))
    engine.wait(run, "deal", "retry")
    clock.advance(minutes=2)
    engine.wait(run, "deal", "person")
    assert len(called(crm, run)) == 1


def test_checks_end_with_the_retry_policy(engine, clock, crm):
    step = {
        "id": "odd",
        "type": "probe",
        "config": {"fail": 99, "outcome": "unknown"},
        "on_interrupted": check(crm, "false"),
    }
    run = engine.start(engine.publish([{**step, "retry": {"max_attempts": 2, "first": "1ms"}}]))
    engine.worker()
    for n in (1, 2):
        eventually(
            lambda n=n: (
                Wait.objects.filter(run_id=run, kind="retry", state="open").count() == 1
                and len(engine.attempts(run)) == 2 * n - 1
            )
        )
        clock.advance(minutes=2)
    assert "did not happen" in engine.ends(run, "failed").error["message"]
    assert [attempt.operation for attempt in engine.attempts(run)] == ["call", "check"] * 2


# An owner that lost the run while its call was in flight


@pytest.mark.parametrize("way", ["ask", "repeat"])
def test_a_call_answered_to_an_owner_without_the_run_is_not_repeated_unless_allowed(engine, way):
    """Whoever made the call settles it, though the lease is lost; the next owner finds it settled, and no result."""
    run = engine.start(
        engine.publish([{"id": "slow", "type": "probe", "on_interrupted": way, "config": {"hold": "go"}}])
    )
    old = engine.worker()
    eventually(lambda: engine.ledger(run))
    engine.sql(
        """update dispatch set state = 'ready', token = null, worker_id = null, leased_until = null,
           due_at = now() + interval '1 day' where run_id = %s""",
        run,
    )
    engine.release("go")
    eventually(lambda: outcomes(engine, run, "slow") == ["answered"], what=lambda: engine.told(run))
    assert not engine.results(run), "an owner without the run advanced it"
    old.stop()
    engine.sql("update dispatch set due_at = now() where run_id = %s", run)
    engine.worker()
    if way == "repeat":
        engine.ends(run)
    else:
        engine.wait(run, "slow", "person")
    assert len(engine.ledger(run)) == (2 if way == "repeat" else 1)


# Retries


@pytest.mark.fault(29)
def test_retries_wait_at_least_as_long_as_the_other_side_asks(engine, crm, clock):
    crm.control(refuse=429, refuse_times=1, refuse_headers={"Retry-After": "600"})
    run = engine.start(engine.publish([post(crm)]))
    engine.worker()
    wait = engine.wait(run, "deal", "retry")
    assert 590 < (wait.due_at - clock.now()).total_seconds() <= 600
    engine.parked(run)
    clock.advance(seconds=601)
    engine.ends(run)
    assert outcomes(engine, run) == ["refused", "answered"]
    assert len(called(crm, run)) == 1


def test_retries_end_and_the_last_error_is_told(engine):
    steps = [{"id": "busy", "type": "probe", "config": {"fail": 99}, "retry": {"max_attempts": 3, "first": "1ms"}}]
    run = engine.start(engine.publish(steps))
    never = engine.start(
        engine.publish([{"id": "bad", "type": "probe", "config": {"fail": 99, "retry": False, "outcome": "answered"}}])
    )
    engine.worker()
    assert engine.ends(run, "failed").error["message"] == "Not at attempt 3."
    assert outcomes(engine, run, "busy") == ["refused"] * 3
    engine.ends(never, "failed")
    assert outcomes(engine, never, "bad") == ["answered"]


def test_several_operations_of_a_step_have_keys_of_their_own(engine):
    run = engine.start(engine.publish([{"id": "two", "type": "probe", "config": {"operations": 2}}]))
    engine.worker()
    engine.ends(run)
    assert outcomes(engine, run, "two") == ["answered", "answered"]
    assert len({line["key"] for line in engine.ledger(run)}) == 2


def test_calls_in_flight_at_a_cancel_are_recorded_and_nothing_follows(engine):
    steps = [{"id": "slow", "type": "probe", "config": {"hold": "go"}}, {"id": "next", "type": "probe"}]
    bad = [{"id": "slow", "type": "probe", "timeout": "1s", "config": {"hold": "never"}}]
    run, timing_out = engine.start(engine.publish(steps)), engine.start(engine.publish(bad))
    engine.worker()
    eventually(lambda: engine.ledger(run) and engine.ledger(timing_out))
    assert acts.cancel(run) and not acts.cancel(run) and acts.cancel(timing_out)
    assert engine.state(run) == "cancelled"
    engine.release("go")
    eventually(lambda: outcomes(engine, run, "slow") == ["answered"], what=lambda: engine.told(run))
    eventually(lambda: outcomes(engine, timing_out, "slow") == ["unknown"], what=lambda: engine.told(timing_out))
    assert not engine.results(run) and len(engine.ledger(run)) == 1
