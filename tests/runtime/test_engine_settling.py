"""No attempt stays open when its run has ended, unless its worker died: whoever made the call says how it ended."""

from __future__ import annotations

import pytest

from runtime import acts, waits
from tests.runtime.engine import eventually

TWICE = {"id": "twice", "type": "probe", "config": {"operations": 2, "between": "go on", "note": "{{ run.id }}"}}


def settled(engine, run: int) -> list[str]:
    """Wait until all attempts have an outcome."""
    return eventually(
        lambda: None not in (found := [attempt.outcome for attempt in engine.attempts(run)]) and found, what=lambda: engine.told(run)
    )


def test_the_first_of_two_calls_is_settled_when_the_run_is_cancelled_before_the_second(engine):
    run = engine.start(engine.publish([TWICE]))
    engine.worker()
    eventually(lambda: engine.ledger(run))
    assert acts.cancel(run)
    engine.release("go on")
    assert settled(engine, run) == ["answered"]
    assert len(engine.ledger(run)) == 1


def test_and_when_a_lane_beside_it_fails(engine):
    bad = {"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False}}
    lanes = [{"id": "a", "steps": [{"id": "reply", "type": "callback"}, bad]}, {"id": "b", "steps": [TWICE]}]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    engine.worker()
    eventually(lambda: engine.ledger(run))


    engine.wait(run, "both/a/reply")
    assert waits.signal(run, "both/a/reply", None, "1")
    eventually(lambda: engine.results(run).get("both/a/bad"))
    engine.release("go on")
    engine.ends(run, "failed")
    assert settled(engine, run) == ["refused", "answered"]


def test_and_when_the_second_cannot_be_recorded(engine):
    step = {"id": "twice", "type": "probe", "config": {"operations": 2, "grows": 2 << 20}}
    run = engine.start(engine.publish([step]))
    engine.worker()
    engine.ends(run, "failed")
    assert settled(engine, run) == ["answered"]


@pytest.mark.parametrize("config", [{"tokens": 2**40}, {"value": {"n": "x"}, "tokens": 2**40}])
def test_a_call_is_settled_whose_rows_the_database_refuses(engine, config):
    run = engine.start(engine.publish([{"id": "bad", "type": "probe", "config": config}]))
    engine.worker()
    engine.ends(run, "failed")
    assert settled(engine, run) == ["answered"]


def test_and_those_in_the_lanes_beside_it(engine):
    steps = {"a": {"id": "bad", "type": "probe", "config": {"tokens": 2**40}}, "b": {"id": "slow", "type": "probe", "config": {"hold": "go on"}}}
    lanes = [{"id": "a", "steps": [{"id": "reply", "type": "callback"}, steps["a"]]}, {"id": "b", "steps": [steps["b"]]}]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    engine.worker()
    eventually(lambda: engine.ledger(run))
    engine.wait(run, "both/a/reply")
    assert waits.signal(run, "both/a/reply", None, "1")
    eventually(lambda: [attempt for attempt in engine.attempts(run, "both/a/bad") if attempt.outcome], what=lambda: engine.told(run))
    engine.release("go on")
    engine.ends(run, "failed")
    assert settled(engine, run) == ["answered", "answered"]


def test_a_call_of_a_cancelled_run_that_is_cut_off_by_the_end_of_its_worker_is_settled(engine):
    run = engine.start(engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "never"}}]))
    worker = engine.worker(grace_seconds=1)
    eventually(lambda: engine.ledger(run))
    assert acts.cancel(run)
    assert worker.stop() == 0
    assert settled(engine, run) == ["unknown"]
