"""Parallels that wait for some lanes, and loops that bear failed items. On real workers, also killed."""

from __future__ import annotations

import pytest

from runtime import acts, waits
from runtime.models import Frame, Wait
from tests.runtime.engine import eventually

BAD = {"id": "bad", "type": "set", "config": {"values": {"x": "{{ trigger.body.none.there }}"}}}


def lane(name, *steps):
    return {"id": name, "steps": [{"id": f"{name}_wait", "type": "callback", "config": {}}, *steps]}


def parallel(engine, lanes, after=None, **config):
    step = {"id": "both", "type": "parallel", "config": config, "branches": lanes}
    return engine.publish([step, *([after] if after else [])])


def calls(engine, run, *names):
    for name in names:
        waits.signal(run, f"both/{name}/{name}_wait", {"from": name}, name)


@pytest.mark.parametrize("failpoint", ["", "journal.before:1", "journal.after:1"])
def test_the_first_lane_is_enough_and_the_others_are_cancelled(engine, failpoint):
    after = {"id": "after", "type": "set", "config": {"values": {"got": "{{ steps.b_wait.output }}", "how": "{{ steps.both.output }}"}}}
    run = engine.start(parallel(engine, [lane("a"), lane("b"), lane("c")], after, join="any"))
    worker = engine.worker()
    engine.parked(run)
    if failpoint:
        worker.kill()
        engine.leases_end()
    calls(engine, run, "b")
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
        engine.worker()
    engine.ends(run)
    assert engine.output(run, "after") == {"got": {"from": "b"}, "how": {"lanes": 3, "ended": ["b"]}}
    assert set(Wait.objects.filter(run_id=run).values_list("path", "state")) == {
        ("both/a/a_wait", "cancelled"), ("both/b/b_wait", "resolved"), ("both/c/c_wait", "cancelled"),
    }  # fmt: skip
    assert not Frame.objects.filter(run_id=run).exists()


def test_some_of_several(engine):
    run = engine.start(parallel(engine, [lane("a"), lane("b"), lane("c")], join="count", needed=2))
    engine.worker()
    engine.parked(run)
    calls(engine, run, "c")
    eventually(lambda: Wait.objects.filter(run_id=run, state="open").count() == 2 and engine.parked(run))
    calls(engine, run, "a")
    engine.ends(run)
    assert engine.output(run, "both") == {"lanes": 3, "ended": ["a", "c"]}


def test_a_failed_lane_is_borne_while_the_others_can_be_enough(engine):
    engine.worker()
    run = engine.start(parallel(engine, [{"id": "x", "steps": [BAD]}, lane("a"), lane("b")], join="count", needed=2))
    engine.parked(run)
    calls(engine, run, "a", "b")
    engine.ends(run)
    assert engine.output(run, "both")["ended"] == ["a", "b"]
    worse = engine.start(parallel(engine, [{"id": "x", "steps": [BAD]}, lane("a")], join="count", needed=2))
    assert engine.ends(worse, "failed").error["step"] == "bad"


def test_after_the_join_a_resume_and_a_requeue_leave_the_cancelled_lanes_alone(engine):
    after = {"id": "last", "type": "callback", "config": {"expires": "1h"}}
    run = engine.start(parallel(engine, [lane("a"), lane("b", BAD | {"id": "b_bad"})], after, join="any"))
    worker = engine.worker()
    engine.parked(run)
    calls(engine, run, "a")
    engine.wait(run, "last")
    engine.parked(run)
    worker.kill()
    engine.leases_end()
    engine.worker()
    calls(engine, run, "b")  # comes too late for its lane, and changes nothing
    waits.signal(run, "last", {"n": 1}, "a")
    engine.ends(run)
    assert set(engine.results(run)) == {"both/a/a_wait", "both", "last"}


def loop(engine, body, **config):
    return engine.publish([{"id": "each", "type": "loop", "config": {"items": "trigger.body"} | config, "steps": body}])


ODD = [{"id": "call", "type": "set", "config": {"values": {"half": "{{ loop.item.n }}"}}}]


@pytest.mark.parametrize("failpoint", ["", "journal.before:1", "journal.after:1"])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_failed_items_are_listed_and_the_others_go_on(engine, concurrency, failpoint):
    body = [{"n": 1}, {"m": 2}, {"n": 3}, {}, {"n": 5}]
    version = loop(engine, ODD, on_item_error="collect", collect="steps.call.output.half", concurrency=concurrency)
    run = engine.start(version, body)
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    engine.ends(run)
    output = engine.output(run, "each")
    assert (output["count"], output["succeeded"], output["failed"], output["results"]) == (5, 3, 2, [1, 3, 5])
    assert [(one["index"], one["step"]) for one in output["errors"]] == [(1, "call"), (3, "call")]


def test_skipped_items_are_counted_and_waits_inside_are_dropped(engine):
    lanes = [{"id": "w", "steps": [{"id": "wait", "type": "callback", "config": {}}]},
             {"id": "f", "steps": [{"id": "nap", "type": "delay", "config": {"for": "1s"}}, BAD]}]  # fmt: skip
    engine.worker()
    run = engine.start(loop(engine, [{"id": "both", "type": "parallel", "branches": lanes}], on_item_error="skip"), [1, 2])
    engine.ends(run)
    assert engine.output(run, "each") == {"count": 2, "succeeded": 0, "failed": 2}
    assert set(Wait.objects.filter(run_id=run, kind="callback").values_list("state", flat=True)) == {"cancelled"}


def test_a_requeue_does_not_go_back_to_skipped_items(engine):
    version = engine.publish([
        {"id": "each", "type": "loop", "config": {"items": "trigger.body", "on_item_error": "skip"}, "steps": ODD},
        {"id": "then", "type": "set", "config": {"values": {"x": "{{ trigger.none }}"}}},
    ])  # fmt: skip
    engine.worker()
    run = engine.start(version, [{"n": 1}, {}])
    engine.ends(run, "failed")
    before = engine.output(run, "each")
    acts.requeue(run)
    engine.ends(run, "failed")
    assert engine.output(run, "each") == before == {"count": 2, "succeeded": 1, "failed": 1}
