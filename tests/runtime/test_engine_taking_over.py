"""What a run that goes on with the results of another takes over from it: calls, with their keys, and runs that it has started; and
that of the two one alone goes on."""

from __future__ import annotations

import pytest

from runtime import acts, keeping, waits
from runtime.models import Run
from runtime.paths import key_from
from tests.runtime.engine import at_once, eventually
from tests.runtime.test_engine_keeping import bad, failed, go_on, repaired
from tests.runtime.test_engine_retry import lanes, probe


def calls_of(engine, path: str = "call") -> list[str]:
    """The keys of all calls at the path."""
    return [line["key"] for line in engine.ledger() if line["path"] == path]


def cut_off(engine, run: int, number: int) -> None:
    """Cancel the run in the middle of its call, which is the outside's so-manieth."""
    eventually(lambda: len(calls_of(engine)) == number, what=lambda: engine.told(run))
    assert acts.cancel(run)


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [({}, {}, True), ({}, {"note": "other"}, False), ({"value": "{{ run.id }}"}, {"value": "{{ run.id }}"}, False)],
    ids=["the same call", "another setting", "another value"],
)
def test_a_call_that_is_made_again_has_the_key_that_it_had_if_it_is_the_same(engine, before, now, same):
    run = engine.start(engine.publish([probe("first"), probe("call", hold="held", **before)]))
    engine.worker()
    cut_off(engine, run, 1)
    version = repaired(engine, run, [probe("first"), probe("call", hold="held", **now), probe("last")])
    assert bool(keeping.kept(Run.objects.get(pk=run), version).repeats) is same
    engine.release("held")
    engine.ends(go_on(run, version))
    assert (len(set(calls_of(engine))) == 1) is same and len(calls_of(engine)) == 2 and len(set(calls_of(engine, "first"))) == 1


def test_its_key_stays_over_several_runs_and_goes_with_the_take(engine):
    """Also in a loop, after its worker died, and where the other system is asked first."""
    call = {**probe("call", hold="held"), "on_interrupted": {"check": {"request": {"method": "GET", "url": "http://127.0.0.1:1/"}, "happened": "true", "after": "0s"}}}  # fmt: skip
    each = {"id": "each", "type": "loop", "config": {"items": "[1]"}, "steps": [probe("call", hold="held")]}
    run = engine.start(engine.publish([each]))
    engine.worker()
    keys = lambda: calls_of(engine, "each[0]/call")  # noqa: E731
    for number in (1, 2):
        eventually(lambda number=number: len(keys()) == number, what=lambda: engine.told(run))
        assert acts.cancel(run)
        run = go_on(run, repaired(engine, run, [each, probe(f"last{number}")]))
    eventually(lambda: len(keys()) == 3)
    engine.kill_all()
    engine.leases_end()
    engine.worker()
    eventually(lambda: len(keys()) == 4)
    assert len(set(keys())) == 1
    asks = engine.start(engine.publish([call]))
    cut_off(engine, asks, 1)
    version = repaired(engine, asks, [call, probe("last")])
    found = keeping.kept(Run.objects.get(pk=asks), version)
    assert (found.doubts, found.repeats, found.same) == (["call"], [], ["call"])
    new = go_on(asks, version)
    (attempt,) = engine.attempts(new)
    assert key_from(attempt.seed, "call") == calls_of(engine)[0]


# Runs that it has started


WAITS = [{"id": "ask", "type": "callback"}]


def with_child(engine, *, ends: str = "") -> tuple[int, int, list[dict]]:
    """A run that failed beside a sub-flow, that one, and the steps repaired. The sub-flow's run goes on, or ends so afterwards."""
    below = engine.publish(WAITS).workflow.name
    sub = {"id": "sub", "type": "workflow", "config": {"flow": below}}
    box = {"id": "box", "type": "parallel", "branches": lanes(a=[{"id": "gate", "type": "callback"}, bad()], b=[sub, probe("used", value="{{ steps.sub.output.run }}")])}  # fmt: skip
    run = engine.start(engine.publish([box, probe("last")]))
    engine.worker()
    engine.wait(run, "box/b/sub")
    child = Run.objects.get(parent_id=run).pk
    engine.wait(child, "ask")
    assert waits.signal(run, "box/a/gate", None, "1")
    engine.ends(run, "failed")
    if ends == "cancelled":
        assert acts.cancel(child)
    elif ends:
        assert waits.signal(child, "ask", {"n": 1}, "1")
    if ends:
        engine.ends(child, ends)
    return run, child, [{**box, "branches": lanes(a=[box["branches"][0]["steps"][0], probe("bad_setting")], b=box["branches"][1]["steps"])}, probe("last")]


@pytest.mark.parametrize("ends", ["", "succeeded", "cancelled"])
def test_a_run_that_it_has_started_is_waited_for_further(engine, ends):
    run, child, steps = with_child(engine, ends=ends)
    new = go_on(run, repaired(engine, run, steps))
    if not ends:
        engine.wait(new, "box/b/sub")
        engine.parked(new)
        assert waits.signal(child, "ask", {"n": 1}, "1")
    elif ends == "cancelled":
        assert waits.signal(eventually(lambda: Run.objects.filter(parent_id=new).first()).pk, "ask", {"n": 1}, "1")
    engine.ends(new)
    assert (engine.output(new, "box/b/used") == child) is (ends != "cancelled")
    assert Run.objects.filter(workflow=Run.objects.get(pk=child).workflow).count() == 1 + (ends == "cancelled")


def test_one_that_would_be_started_beside_itself_is_refused(engine):
    run, child, steps = with_child(engine)
    steps[0]["branches"][1]["steps"][0]["config"]["input"] = 1
    version = repaired(engine, run, steps)
    with pytest.raises(acts.NotPossible, match=f"Run {child:,}, which “sub” has started, goes on"):
        go_on(run, version)
    assert acts.cancel(child) and go_on(run, version)


# One of the two


def test_a_run_that_another_goes_on_with_is_not_taken_up_again_until_that_one_is_given_up(engine):
    run = failed(engine, [probe("a"), bad("b")])
    version = repaired(engine, run, [probe("a"), bad("b"), probe("c")])
    new = go_on(run, version)
    engine.ends(new, "failed")
    third = go_on(new, repaired(engine, run, [probe("a"), bad("b"), {"id": "c", "type": "callback"}]))
    engine.ends(third, "failed")
    for pk, act in ((run, acts.requeue), (new, acts.requeue), (run, lambda pk: acts.retry(pk, "b")), (run, lambda pk: acts.skip(pk, "b", 1))):
        with pytest.raises(acts.NotPossible, match=f"Run {third:,} was begun with the results of this one"):
            act(pk)
    assert (engine.state(run), engine.state(new)) == ("failed", "failed") and acts.skip(third, "b", 1)
    engine.wait(third, "c")
    assert acts.cancel(third)
    with pytest.raises(acts.NotPossible, match=f"Run {new:,}"):
        acts.requeue(run)
    assert acts.requeue(new), "what goes on with it was given up"
    engine.ends(new, "failed")
    with pytest.raises(acts.NotPossible, match=f"Run {new:,} was taken up again after this one"):
        go_on(third, version)


def test_of_a_requeue_and_a_run_that_goes_on_one_happens(engine):
    run = failed(engine, [probe("a"), bad("b")])
    version = repaired(engine, run, [probe("a"), probe("b")])
    requeued, new = at_once(lambda: acts.requeue(run), lambda: go_on(run, version))
    assert isinstance(requeued, acts.NotPossible) is isinstance(new, int), (requeued, new)
    assert requeued is True or isinstance(new, int)
