"""Retrying from anywhere: the step and what follows run again as their next take, all else is reused, and what was told
beforehand is what happens."""

from __future__ import annotations

import pytest

from runtime import acts, retries, waits
from runtime.courses import NoSuchStep, course_of
from runtime.models import Attempt, AuditEntry, Dispatch, Frame, Run, StepResult, Wait
from tests.runtime.engine import at_once, eventually


def probe(id: str, **config) -> dict:
    return {"id": id, "type": "probe", "config": config}


def lanes(**steps) -> list[dict]:
    return [{"id": name, "steps": inner} for name, inner in steps.items()]


REPLY = {"id": "reply", "type": "callback"}
INNER = {"id": "inner", "type": "loop", "config": {"items": "[1, 2]", "collect": "steps.deep.output.path"}, "steps": [probe("deep")]}
WIDE = [
    probe("first"),
    {"id": "which", "type": "condition", "branches": [
        {"id": "yes", "when": "steps.first.output.path == 'first'", "steps": [probe("chosen"), probe("after_chosen")]},
        {"id": "no", "steps": [probe("never")]}]},
    {"id": "both", "type": "parallel", "branches": lanes(a=[probe("left"), probe("left2")], b=[probe("right")])},
    {"id": "each", "type": "loop", "config": {"items": "[1, 2, 3]", "concurrency": 2, "collect": "steps.body.output.path"},
     "steps": [probe("body"), INNER]},
    {"id": "count", "type": "loop", "config": {"while": "loop.index < 2"}, "steps": [probe("again")]},
    {**probe("bad", fail=99, retry=False), "on_error": {"steps": [probe("rescue"), probe("rescued")]}},
    {"id": "box", "type": "parallel", "branches": lanes(a=[probe("fine"), probe("broken", fail=99, retry=False)], b=[]),
     "on_error": {"steps": [probe("swept")]}},
    probe("last"),
    REPLY,
]  # fmt: skip
PLACES = [
    "first", "which", "which/yes/chosen", "which/yes/after_chosen", "both", "both/a/left", "both/b/right", "each", "each[1]",
    "each[0]/body", "each[2]/inner", "each[1]/inner[1]/deep", "each[1]/inner[0]", "count", "count[1]/again", "bad",
    "bad/on_error/rescued", "box", "box/on_error/swept", "last", "reply",
]  # fmt: skip


def following(path: str) -> list[str]:
    return course_of({"steps": WIDE}, path).roots


def below(path: str, roots: list[str]) -> bool:
    return any(path == root or path.startswith((f"{root}/", f"{root}[")) for root in roots)


@pytest.mark.fault(42)
def test_from_every_place_what_follows_runs_again_and_nothing_else(engine):
    """Twenty retries of one run, one after the other: each ends where the run stood, and its calls are those foretold."""
    run = engine.start(engine.publish(WIDE))
    engine.worker()
    engine.wait(run, "reply")
    engine.parked(run)
    stood, calls = engine.results(run), {line["path"] for line in engine.ledger(run)}
    for path in PLACES:
        before = {(line["path"], line["key"]) for line in engine.ledger(run)}
        foretold = retries.forecast(Run.objects.get(pk=run), course_of({"steps": WIDE}, path))
        assert acts.retry(run, path)
        wait = engine.wait(run, "reply")
        engine.parked(run)
        assert engine.results(run) == stood, path
        made = {(line["path"], line["key"]) for line in engine.ledger(run)} - before
        assert made == {(effect.path, effect.key) for effect in foretold.effects if effect.outcome == "answered"}, path
        assert {place for place, _ in made} == {place for place in calls if below(place, following(path))}, path
        assert wait.pk == Wait.objects.get(run_id=run, path="reply", state="open").pk
    assert not Frame.objects.filter(run_id=run).exists()
    waits.signal(run, "reply", "done", "1")
    engine.ends(run)
    assert AuditEntry.objects.filter(action="retry", subject=f"run:{run}").count() == len(PLACES)


def test_the_forecast_names_what_is_reused(engine):
    run = engine.start(engine.publish(WIDE))
    engine.worker()
    engine.wait(run, "reply")
    told = retries.forecast(Run.objects.get(pk=run), course_of({"steps": WIDE}, "each[1]/body"))
    assert {step: number for step, number, *_ in told.again} == {
        "body": 1, "inner": 1, "deep": 2, "count": 1, "again": 2, "bad": 1, "rescue": 1, "rescued": 1,
        "broken": 1, "fine": 1, "swept": 1, "last": 1}  # fmt: skip
    assert dict((step, number) for step, number, *_ in told.kept)["body"] == 2
    assert told.undone == ["reply"]


def test_a_condition_decided_anew_may_take_another_lane(engine):
    which = {"id": "which", "type": "condition", "branches": [
        {"id": "yes", "when": "steps.ask.output.path == 'ask'", "steps": [probe("good")]}, {"id": "no", "steps": [probe("poor")]}]}  # fmt: skip
    run = engine.start(engine.publish([{"id": "ask", "type": "callback"}, which, REPLY]))
    engine.worker()
    for number, path in enumerate(("ask", "else")):
        assert not number or acts.retry(run, "ask")
        engine.wait(run, "ask")
        assert waits.signal(run, "ask", {"path": path}, path)
        engine.wait(run, "reply")
        engine.parked(run)
    assert engine.results(run)["which"][1] == {"branch": "no"}
    assert "which/no/poor" in engine.results(run) and "which/yes/good" not in engine.results(run)


def test_a_failed_run_goes_on_from_an_earlier_step(engine):
    run = engine.start(engine.publish([probe("a"), probe("b"), probe("c", fail=9, retry=False), probe("d")]))
    worker = engine.worker()
    engine.ends(run, "failed")
    eventually(lambda: f"run {run} failed at step c" in worker.tail(), 60, "a line about it in the worker's log")
    engine.release("healed")
    foretold = retries.forecast(Run.objects.get(pk=run), course_of({"steps": [probe("a"), probe("b"), probe("c")]}, "b"))
    assert [step for step, *_ in foretold.again] == ["b", "c"]
    assert acts.retry(run, "b")
    engine.ends(run)
    assert [(line["path"], line["take"]) for line in engine.ledger(run)] == [("a", 1), ("b", 1), ("b", 2), ("c", 2), ("d", 1)]


def test_what_failed_beside_it_is_done_again_too(engine):
    branches = lanes(a=[probe("x"), probe("y")], b=[probe("bad", fail=9, retry=False)])
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": branches}]))
    engine.worker()
    engine.ends(run, "failed")
    engine.release("healed")
    assert acts.retry(run, "both/a/x")
    engine.ends(run)
    assert {attempt.take for attempt in engine.attempts(run, "both/b/bad")} == {1, 2}


# A call under way, two at once, and the end in between


def test_a_call_under_way_is_not_interrupted(engine):
    run = engine.start(engine.publish([probe("a"), probe("slow", hold="go"), probe("end")]))
    engine.worker()
    eventually(lambda: any(line["path"] == "slow" for line in engine.ledger(run)))
    with pytest.raises(acts.NotPossible, match="under way"):
        acts.retry(run, "a")
    engine.release("go")
    engine.ends(run)
    with pytest.raises(acts.NotPossible, match="has ended"):
        acts.retry(run, "a")
    assert len(engine.ledger(run)) == 3


def test_retries_at_one_instant_with_one_key_count_once(engine):
    run = engine.start(engine.publish([probe("a"), REPLY]))
    engine.worker()
    engine.wait(run, "reply")
    engine.parked(run)
    told = at_once(*[lambda: acts.retry(run, "a", key="form-1")] * 4)
    assert sorted(told) == [False, False, False, True]
    eventually(lambda: len(engine.ledger(run)) == 2)
    engine.wait(run, "reply")
    assert not acts.retry(run, "a", key="form-1")
    assert AuditEntry.objects.filter(action="retry").count() == 1


def test_a_retry_races_with_the_end_and_with_a_cancel(engine):
    version = engine.publish([probe("a"), REPLY, probe("b")])
    runs = [engine.start(version) for _ in range(12)]
    engine.worker()
    for run in runs:
        engine.wait(run, "reply")
        engine.parked(run)
    for n, run in enumerate(runs):
        end = (lambda run=run: acts.cancel(run)) if n % 2 else (lambda run=run: waits.signal(run, "reply", 1, "1"))
        retried, _ = at_once(lambda run=run: acts.retry(run, "a"), end)
        assert retried is True or isinstance(retried, acts.NotPossible), retried
        if n % 2:
            engine.ends(run, "cancelled")
            continue
        waits.signal(run, "reply", 2, "2")  # the first may have been taken before the retry
        engine.ends(run)
        takes = [line["take"] for line in engine.ledger(run) if line["path"] == "a"]
        assert takes == ([1, 2] if retried is True else [1])


def test_a_worker_that_holds_the_run_writes_nothing_more(engine, clock):
    """The owner goes through pure steps without an end: it is fenced off, and the next one takes the next take."""
    steps = [probe("a"), {"id": "spin", "type": "loop", "config": {"while": "loop.index < 400"}, "steps": [
        {"id": "n", "type": "set", "config": {"values": {"i": "{{ loop.index }}"}}}]}, REPLY]  # fmt: skip
    run = engine.start(engine.publish(steps))
    engine.worker()
    eventually(lambda: "a" in engine.results(run))
    done = 0
    while done < 3 and not Wait.objects.filter(run_id=run, state="open").exists():
        try:
            done += acts.retry(run, "a")
        except acts.NotPossible as busy:
            assert "under way" in str(busy)
    engine.wait(run, "reply")
    takes = sorted(attempt.take for attempt in engine.attempts(run, "a"))
    assert takes == list(range(1, len(takes) + 1)) and StepResult.objects.get(run_id=run, path="a", superseded=False)
    assert engine.output(run, "spin")["count"] == 400


def test_a_dead_workers_call_is_given_up_by_the_retry(engine):
    run = engine.start(engine.publish([probe("a"), probe("b", asks=True)]))
    engine.dies(engine.worker(failpoint="attempt.after:2"))
    assert Attempt.objects.get(run_id=run, path="b").outcome is None
    engine.sql("update dispatch set state = 'ready', token = null, worker_id = null, leased_until = null, due_at = now() + interval '1 day'")
    assert acts.retry(run, "a")
    engine.worker()
    engine.ends(run)
    assert [(attempt.take, attempt.outcome) for attempt in engine.attempts(run, "b")] == [(1, "unknown"), (2, "answered")]


# What cannot be retried


def test_refusals(engine):
    run = engine.start(engine.publish(WIDE))
    for path in ("first", "nowhere", "first[1]", "which/none/x", "each/body", "", "each[1]x/body"):
        with pytest.raises(acts.NotPossible):
            acts.retry(run, path)
    engine.worker()
    engine.wait(run, "reply")
    engine.parked(run)
    with pytest.raises(acts.NotPossible, match="has been handled"):
        acts.retry(run, "box/a/fine")
    for path in ("which/no/never", "each[7]/body", "each[3]"):
        with pytest.raises(acts.NotPossible, match="not begun"):
            acts.retry(run, path)
    assert Dispatch.objects.get(run_id=run).state == "waiting"


@pytest.mark.parametrize("path", ["a[1", "a]", "/", "a//b", "a[x]", "a/b", "w[1]", "p[1]"])
def test_paths_that_lead_nowhere(path):
    steps = [probe("a"), {"id": "w", "type": "condition", "branches": lanes(x=[probe("b")])}, {"id": "p", "type": "parallel", "branches": []}]
    with pytest.raises(NoSuchStep):
        course_of({"steps": steps}, path)


# Skip, force-fail, now, later


def test_a_failed_step_is_skipped_with_an_output(engine):
    run = engine.start(engine.publish([probe("bad", fail=9, retry=False), probe("next", value="{{ steps.bad.output.id }}")]))
    engine.worker()
    engine.ends(run, "failed")
    assert acts.skip(run, "bad", {"id": 7}, key="k") and not acts.skip(run, "bad", {"id": 7}, key="k")
    engine.ends(run)
    assert engine.output(run, "next") == 7
    assert StepResult.objects.get(run_id=run, path="bad", superseded=False).state == "skipped"


@pytest.mark.fault(12)
def test_steps_that_wait_or_have_not_begun_are_skipped(engine):
    loop = {"id": "each", "type": "loop", "config": {"items": "[1, 2]"}, "steps": [{"id": "ask", "type": "callback"}]}
    run = engine.start(engine.publish([REPLY, loop, probe("later"), probe("end")]))
    assert acts.skip(run, "later", "never called")
    engine.worker()
    engine.wait(run, "reply")
    engine.parked(run)
    for path in ("each", "each[0]/ask"):
        with pytest.raises(acts.NotPossible):
            acts.skip(run, path, None)
    assert acts.skip(run, "reply", None)
    for index in (0, 1):
        engine.wait(run, f"each[{index}]/ask")
        engine.parked(run)
        if not index:
            with pytest.raises(acts.NotPossible, match="not under way"):
                acts.skip(run, "each[1]/ask", None)
        assert acts.skip(run, f"each[{index}]/ask", index)
    engine.ends(run)
    assert [line["path"] for line in engine.ledger(run)] == ["end"]
    with pytest.raises(acts.NotPossible):
        acts.skip(run, "end", None)


@pytest.mark.fault(38)
def test_force_fail_needs_nothing_but_the_id_and_a_requeue_takes_it_back(engine, clock):
    run = engine.start(engine.publish([{"id": "day", "type": "delay", "config": {"for": "1d"}}, probe("end")]))
    engine.worker()
    engine.wait(run, "day")
    engine.sql("delete from dispatch where run_id = %s", run)  # whatever has become of it
    assert acts.force_fail(run, why="stuck") and not acts.force_fail(run)
    assert "stuck" in engine.ends(run, "failed").error["message"]
    assert acts.requeue(run)
    engine.parked(run)
    clock.advance(days=1)
    engine.ends(run)


def test_force_fail_of_a_run_in_hand(engine):
    run = engine.start(engine.publish([probe("slow", hold="go"), probe("end")]))
    engine.worker()
    eventually(lambda: engine.ledger(run))
    assert acts.force_fail(run)
    engine.release("go")
    eventually(lambda: engine.attempts(run)[0].outcome)
    assert engine.ends(run, "failed") and len(engine.ledger(run)) == 1


def test_a_delay_ends_now_and_an_attempt_comes_now(engine):
    version = engine.publish([{"id": "day", "type": "delay", "config": {"for": "1d"}}, probe("twice", fail=1, retry_after=3000.0)])
    run = engine.start(version)
    engine.worker()
    wait = engine.wait(run, "day")
    engine.parked(run)
    assert sorted(at_once(*[lambda: waits.fire(wait.pk)] * 3)) == [False, False, True]
    assert waits.fire(engine.wait(run, "twice", "retry").pk)
    engine.ends(run)
    assert [attempt.n for attempt in engine.attempts(run, "twice")] == [1, 2]


def test_one_form_starts_one_run_with_edited_input(engine):
    run = engine.start(engine.publish([probe("x", value="{{ trigger.body }}")]), {"n": 1})
    engine.worker()
    row = engine.ends(run)
    started = at_once(*[lambda: acts.rerun(row, input={"body": {"n": 2}}, key="f")] * 3)
    assert len(set(started)) == 1 and Run.objects.count() == 2
    engine.ends(started[0])
    assert engine.output(started[0], "x") == {"n": 2}


# Failures that were borne, lanes that were not waited for, and runs that were started


def test_an_iteration_whose_failure_was_borne_is_done_again_as_a_whole(engine):
    pair = {"id": "pair", "type": "parallel", "branches": lanes(a=[probe("good")], b=[probe("bad", fail=9, retry=False)])}
    loop = {"id": "each", "type": "loop", "config": {"items": "[1, 2]", "on_item_error": "collect"}, "steps": [probe("body"), pair]}
    run = engine.start(engine.publish([loop, REPLY]))
    engine.worker()
    engine.wait(run, "reply")
    engine.parked(run)
    assert engine.output(run, "each")["failed"] == 2
    engine.release("healed")
    for done, path in enumerate(("each[1]/pair/b/bad", "each[0]"), start=1):
        assert acts.retry(run, path)
        engine.wait(run, "reply")
        engine.parked(run)
        told = engine.output(run, "each")
        assert (told["count"], told["succeeded"], told["failed"], len(told["errors"])) == (2, done, 2 - done, 2 - done)
        assert {attempt.take for attempt in engine.attempts(run, f"{path[:7]}/body")} == {1, 2}


def test_a_requeue_leaves_alone_what_was_borne(engine):
    loop = {"id": "each", "type": "loop", "config": {"items": "[1, 2]", "on_item_error": "skip"},
            "steps": [probe("bad", fail=9, retry=False)]}  # fmt: skip
    run = engine.start(engine.publish([loop, probe("worse", fail=9, retry=False)]))
    engine.worker()
    engine.ends(run, "failed")
    assert [step for step, *_ in retries.forecast(Run.objects.get(pk=run), None).again] == ["worse"]
    engine.release("healed")
    assert acts.requeue(run)
    engine.ends(run)
    assert engine.output(run, "each")["failed"] == 2 and len(engine.ledger(run)) == 1


def test_lanes_that_were_not_waited_for_begin_anew_with_their_parallel(engine):
    race = {"id": "race", "type": "parallel", "config": {"join": "any"},
            "branches": lanes(fast=[probe("quick")], slow=[{"id": "ask", "type": "callback"}, probe("late")])}  # fmt: skip
    run = engine.start(engine.publish([race, REPLY]))
    engine.worker()
    engine.wait(run, "reply")
    engine.parked(run)
    assert acts.retry(run, "race/fast/quick")
    engine.wait(run, "reply")
    engine.parked(run)
    assert engine.output(run, "race")["ended"] == ["fast"] and [line["take"] for line in engine.ledger(run)] == [1, 2]
    waits.signal(run, "reply", None, "1")
    engine.ends(run)


def test_a_sub_flow_that_is_done_again_starts_a_new_run_and_ends_the_old(engine):
    child = engine.publish([{"id": "ask", "type": "callback"}])
    steps = [{"id": "sub", "type": "workflow", "config": {"flow": child.workflow.name}}, probe("end")]
    run = engine.start(engine.publish(steps))
    engine.worker()
    engine.wait(run, "sub", "child")
    old = Run.objects.get(parent_id=run)
    engine.wait(old.pk, "ask")
    assert "run" in [effect.outcome for effect in retries.forecast(Run.objects.get(pk=run), course_of({"steps": steps}, "sub")).effects]
    assert acts.retry(run, "sub")
    engine.ends(old.pk, "cancelled")
    new = eventually(lambda: Run.objects.filter(parent_id=run).exclude(pk=old.pk).first())
    engine.wait(new.pk, "ask")
    assert acts.force_fail(run)
    waits.signal(new.pk, "ask", None, "1")
    engine.ends(new.pk)
    assert acts.requeue(run), "its child ended while it had failed"
    engine.ends(run)
