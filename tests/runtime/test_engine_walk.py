"""The engine walks a run: sequences, lanes, loops, failures and stops end as the definition says."""

from __future__ import annotations

import pytest

from runtime import acts, waits
from runtime.models import Frame, StepResult, Wait
from tests.runtime.engine import eventually

FAILS = {"type": "probe", "config": {"fail": 99, "retry": False, "outcome": "answered"}}
DAY = {"type": "delay", "config": {"for": "1d"}}


def probe(id: str, **config) -> dict:
    return {"id": id, "type": "probe", "config": config}


def parallel(id: str, **lanes: list[dict]) -> dict:
    return {"id": id, "type": "parallel", "branches": [{"id": lane, "steps": steps} for lane, steps in lanes.items()]}


def loop(id: str, steps: list[dict], items: str = "trigger.body", **config) -> dict:
    return {"id": id, "type": "loop", "config": {"items": items, **config}, "steps": steps}


def condition(id: str, when: str, yes: list[dict], no: list[dict]) -> dict:
    return {
        "id": id,
        "type": "condition",
        "branches": [{"id": "yes", "when": when, "steps": yes}, {"id": "no", "steps": no}],
    }


def paths(engine, run: int) -> list[str]:
    return [line["path"] for line in engine.ledger(run)]


# Containers


def test_containers_nest_to_any_depth(engine):
    inner = parallel("both", left=[probe("l", value="{{ loop.item }}")], right=[loop("deep", [probe("d")], "[1, 2]")])
    odd = condition(
        "odd",
        "loop.index % 2 == 1",
        [inner],
        [{"id": "even", "type": "set", "config": {"values": {"i": "{{ loop.index }}"}}}],
    )
    steps = [loop("each", [odd], concurrency=2, collect="loop.item"), probe("last", value="{{ steps.each.output }}")]
    run = engine.start(engine.publish(steps), ["a", "b", "c", "d"])
    engine.worker()
    engine.ends(run)
    expected = {
        f"each[{i}]/odd/yes/both/{rest}" for i in (1, 3) for rest in ("left/l", "right/deep[0]/d", "right/deep[1]/d")
    }
    assert set(paths(engine, run)) == {*expected, "last"}
    assert engine.output(run, "last") == {"count": 4, "succeeded": 4, "failed": 0, "results": ["a", "b", "c", "d"]}
    assert engine.output(run, "each[2]/odd/no/even") == {"i": 2}
    assert not Frame.objects.filter(run_id=run).exists()


def test_what_lanes_gave_is_seen_after_the_join_also_by_the_next_owner(engine, clock):
    steps = [parallel("both", a=[probe("x", value=1)], b=[probe("y", value=2)]), {"id": "day", **DAY},
             probe("sum", value="{{ steps.x.output + steps.y.output }}")]  # fmt: skip
    run = engine.start(engine.publish(steps))
    first = engine.worker()
    engine.parked(run)
    first.stop()
    clock.advance(days=1)
    engine.worker()
    engine.ends(run)
    assert engine.output(run, "sum") == 3


def test_steps_that_are_off_are_passed_over(engine):
    steps = [
        {**probe("one"), "off": True},
        {**parallel("both", a=[probe("x")], b=[probe("y")]), "off": True},
        probe("two"),
    ]
    run = engine.start(engine.publish(steps))
    engine.worker()
    engine.ends(run)
    assert paths(engine, run) == ["two"]


# Loops


def test_loops_over_nothing_and_over_no_list(engine):
    empty = engine.start(
        engine.publish(
            [loop("each", [probe("x")], collect="loop.item"), probe("after", value="{{ steps.each.output }}")]
        ),
        [],
    )
    wrong = engine.start(engine.publish([loop("each", [probe("x")])]), {"no": "list"})
    engine.worker()
    engine.ends(empty)
    assert engine.output(empty, "after") == {"count": 0, "succeeded": 0, "failed": 0, "results": []}
    assert "list" in engine.ends(wrong, "failed").error["message"]


def test_a_while_loop_ends_by_its_condition_or_fails_at_its_bound(engine):
    ends = [{"id": "again", "type": "loop", "config": {"while": "loop.index < 3"}, "steps": [probe("x")]}]
    never = [{"id": "again", "type": "loop", "config": {"while": "true", "max": 4}, "steps": [probe("x")]}]
    ended, bounded = engine.start(engine.publish(ends)), engine.start(engine.publish(never))
    engine.worker()
    engine.ends(ended)
    assert paths(engine, ended) == [f"again[{i}]/x" for i in range(3)]
    assert engine.output(ended, "again") == {"count": 3, "succeeded": 3, "failed": 0}
    row = engine.ends(bounded, "failed")
    assert row.error["step"] == "again" and "bound of 4" in row.error["message"]
    assert len(paths(engine, bounded)) == 4


@pytest.mark.parametrize("failpoint", ["", "attempt.after:3", "journal.after:5"])
def test_a_while_loop_sees_what_its_last_iteration_gave_also_after_a_death(engine, failpoint):
    """Pages are fetched until one says that there are no more; the next page's number comes from the one before."""
    fetch = probe("fetch", value={"next": "{{ loop.index == 0 ? 1 : loop.last.fetch.output.next + 1 }}"})
    more = {"while": "loop.index == 0 || loop.last.fetch.output.next < 4", "collect": "steps.fetch.output.next"}
    version = engine.publish([{"id": "pages", "type": "loop", "config": more, "steps": [fetch]}])
    run = engine.start(version)
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    engine.ends(run)
    assert engine.output(run, "pages") == {"count": 4, "succeeded": 4, "failed": 0, "results": [1, 2, 3, 4]}


@pytest.mark.fault(21)
def test_iterations_that_wait_keep_their_place(engine, clock):
    steps = [loop("each", [probe("before"), {"id": "day", **DAY}, probe("after")], concurrency=5)]
    run = engine.start(engine.publish(steps), list(range(7)))
    engine.worker()
    eventually(lambda: Wait.objects.filter(run_id=run, state="open").count() == 5)
    engine.parked(run)
    assert sorted(paths(engine, run)) == [f"each[{i}]/before" for i in range(5)]
    clock.advance(days=1)
    eventually(lambda: Wait.objects.filter(run_id=run, state="open").count() == 2, what=lambda: engine.told(run))
    clock.advance(days=1)
    engine.ends(run)
    assert sorted(paths(engine, run)) == sorted(f"each[{i}]/{step}" for i in range(7) for step in ("before", "after"))
    assert engine.output(run, "each") == {"count": 7, "succeeded": 7, "failed": 0}


@pytest.mark.fault(7)
def test_callbacks_inside_a_loop_have_an_address_per_iteration(engine):
    steps = [
        loop(
            "each",
            [probe("ask", value="{{ callbacks.reply }}"), {"id": "reply", "type": "callback"}],
            concurrency=3,
            collect="steps.reply.output",
        )
    ]
    run = engine.start(engine.publish(steps), ["a", "b", "c"])
    assert waits.signal(run, "each[2]/reply", "early", "1")
    engine.worker()
    eventually(lambda: Wait.objects.filter(run_id=run, state="open").count() == 2)
    addresses = {engine.output(run, f"each[{i}]/ask") for i in range(3)}
    assert len(addresses) == 3
    for i in (1, 0):
        assert waits.signal(run, f"each[{i}]/reply", f"late {i}", "1")
    engine.ends(run)
    assert engine.output(run, "each")["results"] == ["late 0", "late 1", "early"]


# Failures


def test_on_error_goes_on_or_takes_its_lane(engine):
    def steps(on_error):
        return [{"id": "bad", **FAILS, "on_error": on_error}, probe("next", value="{{ steps.bad.error.message }}")]

    lane = {"steps": [probe("rescue", value="{{ steps.bad.error.step }}")]}
    on, by_lane, not_at_all = (engine.start(engine.publish(steps(way))) for way in ("continue", lane, "fail"))
    engine.worker()
    engine.ends(on), engine.ends(by_lane)
    assert paths(engine, on) == ["next"] and engine.output(on, "next") == "Not at attempt 1."
    assert (
        paths(engine, by_lane) == ["bad/on_error/rescue", "next"]
        and engine.output(by_lane, "bad/on_error/rescue") == "bad"
    )
    error = engine.ends(not_at_all, "failed").error
    assert (error["step"], error["path"], error["message"]) == ("bad", "bad", "Not at attempt 1.")
    assert not paths(engine, not_at_all)


@pytest.mark.parametrize("container", ["parallel", "loop"])
def test_a_container_that_fails_is_handled_and_leaves_nothing_behind(engine, clock, container):
    """Waits of its other lanes must neither wake the run nor be waited for any more; also after a requeue."""
    inner = [
        condition(
            "first",
            "loop.index == 0",
            [{"id": "bad", **FAILS}],
            [{"id": "week", "type": "delay", "config": {"for": "1h"}}],
        )
    ]
    bad = loop("box", inner, "[1, 2, 3]", concurrency=3)
    if container == "parallel":
        bad = parallel("box", a=[{"id": "bad", **FAILS}], b=[{"id": "hour", "type": "delay", "config": {"for": "1h"}}])
    bad["on_error"] = {"steps": [probe("rescue"), {"id": "day", **DAY}]}
    steps = [bad, probe("later", value="{{ steps.box.error.step }}"), {"id": "worse", **FAILS}]
    run = engine.start(engine.publish(steps))
    engine.worker()
    engine.wait(run, "box/on_error/day")
    parked = engine.parked(run)
    assert Wait.objects.filter(run_id=run, state="open").count() == 1
    assert not Frame.objects.filter(run_id=run).exists()
    clock.advance(hours=2)
    clock.advance(hours=22)
    engine.ends(run, "failed")
    assert parked.claims <= 2
    assert acts.requeue(run)
    engine.ends(run, "failed")
    assert paths(engine, run) == ["box/on_error/rescue", "later"]
    assert engine.output(run, "later") == "bad"
    assert {attempt.take for attempt in engine.attempts(run, "worse")} == {1, 2}
    assert len([attempt for attempt in engine.attempts(run) if attempt.path.endswith("bad")]) == 1


def test_a_failing_lane_suspends_its_siblings_and_a_requeue_restores_them(engine, clock):
    lanes = {
        "bad": [
            {"id": "bad", "type": "probe", "config": {"fail": 1, "retry": False, "outcome": "answered", "hold": ""}}
        ],
        "parked": [{"id": "day", **DAY}, probe("rested")],
        "flying": [probe("slow", hold="go"), probe("next")],
    }
    run = engine.start(engine.publish([parallel("all", **lanes), probe("end")]))
    engine.worker()
    eventually(lambda: "slow" in " ".join(paths(engine, run)) and "all/bad/bad" in engine.results(run))
    assert engine.state(run) == "open", "a call in flight is recorded before the run ends"
    engine.release("go")
    engine.ends(run, "failed")
    assert engine.results(run)["all/flying/slow"][0] == "succeeded"
    assert "all/flying/next" not in engine.results(run), "a lane went on after its sibling had failed"
    assert Wait.objects.get(run_id=run).state == "suspended"
    engine.release("healed")
    assert acts.requeue(run) and not acts.requeue(run)
    engine.wait(run, "all/parked/day")
    engine.parked(run)
    clock.advance(days=1)
    engine.ends(run)
    assert [(attempt.take, attempt.outcome) for attempt in engine.attempts(run, "all/bad/bad")] == [
        (1, "answered"),
        (2, "answered"),
    ]
    assert sorted(paths(engine, run)) == [
        "all/bad/bad",
        "all/flying/next",
        "all/flying/slow",
        "all/parked/rested",
        "end",
    ]


def test_a_sibling_that_becomes_uncertain_after_the_failure_does_not_hold_the_run(engine):
    lanes = {
        "bad": [{"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False, "outcome": "answered"}}],
        "flying": [
            {"id": "slow", "type": "probe", "timeout": "1s", "on_interrupted": "ask", "config": {"hold": "never"}}
        ],
        "retrying": [
            {
                "id": "busy",
                "type": "probe",
                "config": {"fail": 50},
                "retry": {"first": "1h", "max_attempts": 50, "longest": "1h", "total": "30d"},
            }
        ],
    }
    run = engine.start(engine.publish([parallel("all", **lanes)]))
    engine.worker()
    engine.ends(run, "failed", seconds=20)
    assert [attempt.outcome for attempt in engine.attempts(run, "all/flying/slow")] == ["unknown"]


# Stops


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_stop_inside_lanes_ends_the_run(engine, outcome):
    quit = {"id": "quit", "type": "stop", "config": {"outcome": outcome, "message": "enough", "output": {"x": 1}}}
    lanes = {"a": [probe("first"), quit], "b": [{"id": "day", **DAY}], "c": [probe("slow", hold="go"), probe("next")]}
    run = engine.start(engine.publish([parallel("both", **lanes), probe("never")]))
    engine.worker()
    eventually(lambda: len(paths(engine, run)) == 2)
    engine.release("go")
    row = engine.ends(run, outcome)
    assert row.output == {"x": 1}
    assert "never" not in engine.results(run) and "both/c/next" not in engine.results(run)
    assert engine.results(run)["both/a/quit"] == (outcome, {"x": 1} if outcome == "succeeded" else "enough")
    assert Wait.objects.get(run_id=run).state == ("cancelled" if outcome == "succeeded" else "suspended")


def test_a_requeue_does_not_pass_over_the_stop_that_ended_the_run_as_failed(engine):
    stop = {"id": "quit", "type": "stop", "config": {"outcome": "failed", "message": "enough"}}
    run = engine.start(engine.publish([probe("first"), stop, probe("never")]))
    engine.worker()
    error = engine.ends(run, "failed").error
    assert (error["step"], error["message"]) == ("quit", "enough")
    assert acts.requeue(run)
    eventually(lambda: StepResult.objects.filter(run_id=run, path="quit").count() == 2)
    engine.ends(run, "failed")
    assert paths(engine, run) == ["first"]


def test_a_stop_inside_a_loop_ends_the_run(engine):
    quit = condition("third", "loop.index == 2", [{"id": "quit", "type": "stop"}], [probe("x")])
    alone, many = (
        engine.start(engine.publish([loop("each", [quit], concurrency=width), probe("never")]), list(range(50)))
        for width in (1, 5)
    )
    engine.worker()
    for run in (alone, many):
        engine.ends(run)
        assert "never" not in engine.results(run)
        assert len(paths(engine, run)) < 10


# What cannot be stored


@pytest.mark.fault(30, 31)
def test_values_that_cannot_be_stored_fail_their_step_and_say_so(engine):
    kinds = ["nul", "surrogate", "nan", "huge", "deep", "number", "object", "integer", "message", "bug"]
    runs = {
        kind: engine.start(engine.publish([{"id": "odd", "type": "strange", "config": {"kind": kind}}]))
        for kind in kinds
    }
    engine.worker()
    for kind, run in runs.items():
        row = engine.ends(run, "failed")
        assert row.error["step"] == "odd" and row.error["message"], (kind, row.error)
    innocent = engine.start(engine.publish([probe("fine")]))
    engine.ends(innocent)


def test_items_that_cannot_be_stored_fail_the_loop(engine):
    run = engine.start(engine.publish([loop("each", [probe("x")], "['a\\u0000b']")]))
    engine.worker()
    assert engine.ends(run, "failed").error["step"] == "each"
