"""A new run on a repaired version begins with the results of one that failed: what ended is not called again, and what may have
happened is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from runtime import acts, keeping
from runtime.keeping import ADDRESS, CHANGED, FAILED, NEW, OPEN, REPAIRED, Ended, Frame, Past, carried
from runtime.models import Attempt, AuditEntry, Blob, LogLine, Run, StepResult, Version
from runtime.replay import remembered, replayed
from tests.runtime.engine import at_once, eventually
from tests.runtime.test_engine_retry import REPLY, WIDE, lanes, probe
from tests.runtime.test_retention import delete, keep

BEFORE = WIDE[:-1]


def bad(id: str = "bad_setting", **config: Any) -> dict:
    return probe(id, fail=99, retry=False, **config)


def failed(engine, steps: list[dict], body: Any = None, **more: Any) -> int:
    """A run of these steps that has failed."""
    run = engine.start(engine.publish(steps, **more), body)
    engine.worker()
    engine.ends(run, "failed")
    return run


def repaired(engine, run: int, steps: list[dict], **more: Any) -> Version:
    return engine.publish(steps, workflow=Run.objects.get(pk=run).workflow, **more)


def go_on(run: int, version: Version, **more: Any) -> int:
    return acts.rerun(Run.objects.get(pk=run), version=version, keep=True, **more)


def test_what_ended_is_not_called_again_and_the_old_run_may_go(engine, clock):
    """All kinds of steps; the old run's rows are deleted before the new run is retried from within what it keeps."""
    run = failed(engine, [*BEFORE, bad("send"), REPLY])
    stood = engine.results(run)
    engine.sql("update attempt set cost = 0.5 where run_id = %s", run)
    engine.sql("update step_result set cost = 0.5 where run_id = %s", run)
    engine.sql("update run set cost = 7 where id = %s", run)
    version = repaired(engine, run, [*BEFORE, probe("send"), REPLY])
    new = go_on(run, version)
    engine.wait(new, "reply")
    engine.parked(new)
    assert [line["path"] for line in engine.ledger(new)] == ["send"], "each effect once"
    results = engine.results(new)
    assert results == stood | {"send": ("succeeded", {"path": "send"})}
    row = Run.objects.get(pk=new)
    assert (row.version, row.rerun_of_id, row.input, row.cost) == (version, run, Run.objects.get(pk=run).input, None)
    kept = StepResult.objects.filter(run_id=new)
    assert set(kept.exclude(kept_from=run).values_list("path", flat=True)) == {"send", "both"}, "a join calls nothing, and is made anew"
    assert not kept.exclude(cost=None).exists() and all(one.started_at == one.finished_at for one in kept.filter(kept_from=run))
    assert Attempt.objects.filter(run_id=new).count() == 1
    assert AuditEntry.objects.get(action="rerun").detail == {"new_run": new, "kept": kept.count() - 2}
    assert f"Begun with {kept.count() - 2} results of run {run:,}." in engine.log(new)
    keep(version, 1)
    clock.advance(days=2)
    eventually(lambda: delete() and not Run.objects.filter(pk=run).exists())
    assert not StepResult.objects.filter(run_id=run).exists()
    for path, calls in (("each[1]/body", {"each[1]/body", "each[1]/inner[0]/deep", "each[1]/inner[1]/deep"}), ("bad/on_error/rescued", set())):
        before = len(engine.ledger(new))
        assert acts.retry(new, path)
        engine.wait(new, "reply")
        engine.parked(new)
        assert engine.results(new) == results, path
        assert calls <= {line["path"] for line in engine.ledger(new)[before:]}
        assert not {"first", "each[0]/body", "both/a/left"} & {line["path"] for line in engine.ledger(new)}
    walked = replayed(row, version.definition, remembered(row))
    assert walked.missing == ["reply"] and walked.results["each", ()].output == results["each"][1]


def test_a_result_that_was_kept_is_kept_again_and_says_who_gave_it(engine):
    run = failed(engine, [probe("a"), bad("b"), bad("c")])
    second = go_on(run, repaired(engine, run, [probe("a"), probe("b"), bad("c")]))
    engine.ends(second, "failed")
    third = go_on(second, repaired(engine, run, [probe("a"), probe("b"), probe("c")]))
    engine.ends(third)
    assert dict(StepResult.objects.filter(run_id=third).values_list("path", "kept_from")) == {"a": run, "b": second, "c": None}
    assert [(line["run"], line["path"]) for line in engine.ledger()] == [(run, "a"), (second, "b"), (third, "c")]


@pytest.mark.parametrize("failpoint", ["attempt.before", "attempt.after", "call.after", "journal.inside:2", "release.before"])
def test_the_new_run_survives_its_workers_too(engine, failpoint):
    box = {"id": "box", "type": "parallel", "branches": lanes(a=[probe("x"), bad()], b=[probe("y"), {"id": "nap", "type": "delay", "config": {"for": "1s"}}])}  # fmt: skip
    run = failed(engine, [probe("first"), box, probe("last")])
    engine.kill_all()
    healed = {**box, "branches": lanes(a=[probe("x"), probe("bad_setting")], b=box["branches"][1]["steps"])}
    new = go_on(run, repaired(engine, run, [probe("first"), healed, probe("last")]))
    engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    engine.ends(new)
    called = [line["path"] for line in engine.ledger(new)]
    assert not {"first", "x", "y"} & {path.rpartition("/")[2] for path in called} and set(called) == {"box/a/bad_setting", "last"}


def test_large_outputs_files_and_masks_come_along(engine):
    """Where an output is kept, and that its secrets were hidden, is as it was."""
    big = {"id": "big", "type": "set", "config": {"values": {"text": "{{ trigger.body.text }}"}}}
    use = [probe("use", value="{{ steps.big.output.text.size() }}"), probe("say", value="{{ steps.call.output.token }}")]
    run = failed(engine, [probe("call", value={"token": "••••"}), big, bad(), *use], {"text": "x" * 300_000})
    engine.sql("insert into step_file (run_id, path, take, key, content) values (%s, 'call', 1, 'k', 'abc')", run)
    new = go_on(run, repaired(engine, run, [probe("call", value={"token": "••••"}), big, probe("bad_setting"), *use]))
    engine.ends(new)
    assert engine.output(new, "use") == 300_000 and engine.output(new, "say") == "••••"
    assert Blob.objects.filter(run_id=new).count() == 1 and engine.sql("select key from step_file where run_id = %s", new) == [("k",)]
    assert [line["path"] for line in engine.ledger(new)] == ["bad_setting", "use", "say"]


def test_each_lane_goes_as_far_as_it_goes(engine):
    box = {"id": "box", "type": "parallel", "branches": lanes(a=[probe("x"), bad(), probe("z")], b=[probe("y")])}
    which = {"id": "which", "type": "condition", "branches": [{"id": "yes", "when": "true", "steps": [probe("in"), box]}, {"id": "no", "steps": []}]}
    run = failed(engine, [which, probe("last")])
    box["branches"][0]["steps"][1] = probe("bad_setting")
    new = go_on(run, repaired(engine, run, [which, probe("last")]))
    engine.ends(new)
    assert [line["path"] for line in engine.ledger(new)] == ["which/yes/box/a/bad_setting", "which/yes/box/a/z", "last"]


def test_a_loop_in_which_more_was_changed_than_what_failed_runs_again_as_a_whole(engine):
    each = {"id": "each", "type": "loop", "config": {"items": "[1, 2, 3]"}, "steps": [probe("body"), probe("bad_setting", value="{{ 1 / (loop.item - 2) }}")]}  # fmt: skip
    run = failed(engine, [probe("first"), each])
    each["steps"] = [probe("body", note="other"), probe("bad_setting")]
    new = go_on(run, repaired(engine, run, [probe("first"), each]))
    engine.ends(new)
    assert [line["path"] for line in engine.ledger(new)] == [f"each[{n}]/{step}" for n in range(3) for step in ("body", "bad_setting")]


def each_of(bad: dict, **config: Any) -> dict:
    return {"id": "each", "type": "loop", "config": {"items": "trigger.body", "collect": "steps.body.output.path", **config}, "steps": [probe("body"), bad, probe("after")]}  # fmt: skip


@pytest.mark.parametrize("again", [False, True])
def test_a_loop_goes_on_with_the_iterations_that_had_not_ended(engine, clock, again):
    """On the page that failed only the repaired step and what comes after it; also if the loop had been run again before."""
    old = [probe("first"), each_of(probe("bad_setting", value="{{ 1 / (loop.item - 120) }}")), probe("last", note="{{ steps.each.output.count }}")]
    run = failed(engine, old, list(range(1, 131)))
    if again:
        assert acts.retry(run, "each")
        engine.ends(run, "failed")
    version = repaired(engine, run, [old[0], each_of(probe("bad_setting")), old[2]])
    engine.kill_all()
    new = go_on(run, version)
    keep(version, 1)
    clock.advance(days=2)
    assert delete().deleted == 1
    engine.dies(engine.worker(failpoint="attempt.after:9"))
    engine.worker()
    engine.ends(new)
    called = [(line["path"]) for line in engine.ledger(new)]
    assert sorted(set(called)) == sorted(["each[119]/bad_setting", "each[119]/after", "last", *(
        f"each[{n}]/{step}" for n in range(120, 130) for step in ("body", "bad_setting", "after"))])  # fmt: skip
    output = engine.output(new, "each")
    assert (output["count"], output["succeeded"], output["failed"]) == (130, 130, 0)
    assert output["results"] == [f"each[{n}]/body" for n in range(130)]
    assert StepResult.objects.filter(run_id=new, kept_from=run, superseded=False).count() == 1 + 119 * 3 + 1


def test_several_open_iterations_and_loops_in_loops_go_on_each_where_it_stood(engine):
    inner = {"id": "inner", "type": "loop", "config": {"items": "[1, 2, 3]", "collect": "steps.deep.output.path"}, "steps": [probe("deep"), probe("bad_setting", value="{{ 1 / (loop.item - 2) }}")]}  # fmt: skip
    each = {"id": "each", "type": "loop", "config": {"items": "[1, 2, 3]", "concurrency": 2}, "steps": [probe("body"), inner]}
    run = failed(engine, [each, probe("last")])
    before = {line["path"] for line in engine.ledger(run)}
    assert "each[0]/inner[1]/deep" in before and "each[2]/body" not in before
    inner["steps"][1] = probe("bad_setting")
    new = go_on(run, repaired(engine, run, [each, probe("last")]))
    engine.ends(new)
    called = [line["path"] for line in engine.ledger(new)]
    assert len(called) == len(set(called)), "each effect once"
    assert not set(called) & before and "each[0]/inner[0]/bad_setting" not in called
    everything = {f"each[{n}]/inner[{m}]/{step}" for n in range(3) for m in range(3) for step in ("deep", "bad_setting")}
    assert set(called) | before == everything | {f"each[{n}]/body" for n in range(3)} | {"last"}
    assert engine.output(new, "each")["count"] == 3
    assert engine.output(new, "each[0]/inner")["results"] == [f"each[0]/inner[{m}]/deep" for m in range(3)]


def test_what_may_have_happened_in_an_iteration_is_asked_there(engine):
    each = {"id": "each", "type": "loop", "config": {"items": "[1, 2]"}, "steps": [probe("body"), DOUBTFUL]}
    run = uncertain(engine, [each])
    each = {**each, "steps": [probe("body"), {**DOUBTFUL, "config": {"asks": True}, "name": "Other"}]}
    new = go_on(run, repaired(engine, run, [each, probe("last")]))
    asked = engine.wait(new, "each[0]/call", "person")
    assert not engine.ledger(new)
    assert acts.answer(asked.pk, "happened", output={})
    engine.ends(new)
    assert [line["path"] for line in engine.ledger(new)] == ["each[1]/body", "each[1]/call", "last"]


# Calls that may have happened


def uncertain(engine, steps: list[dict]) -> int:
    """A run that asked what became of a call, and was cancelled instead of an answer."""
    run = engine.start(engine.publish(steps))
    engine.worker()
    eventually(lambda: engine.state(run) == "attention", what=lambda: engine.told(run))
    engine.parked(run)
    assert acts.cancel(run)
    return run


DOUBTFUL = probe("call", asks=True, fail=9, outcome="unknown")


@pytest.mark.parametrize("answer", ["happened", "again"])
def test_what_may_have_happened_is_asked_in_the_new_run_before_it_is_made_again(engine, answer):
    run = uncertain(engine, [probe("first"), DOUBTFUL])
    version = repaired(engine, run, [probe("first"), probe("call", asks=True, note="repaired"), probe("last")])
    assert keeping.kept(Run.objects.get(pk=run), version).doubts == ["call"]
    new = go_on(run, version)
    asked = engine.wait(new, "call", "person")
    engine.parked(new)
    assert engine.state(new) == "attention" and f"may have happened in run {run:,}" in asked.data["error"]
    assert not engine.ledger(new), "nobody has said that it may be made again"
    assert acts.answer(asked.pk, answer, output={"path": "said"})
    engine.ends(new)
    assert [line["path"] for line in engine.ledger(new)] == (["call", "last"] if answer == "again" else ["last"])


def test_a_call_whose_step_says_repeat_is_made_again(engine):
    run = engine.start(engine.publish([probe("first"), probe("call", hold="never")]))
    engine.worker()
    eventually(lambda: len(engine.ledger(run)) == 2)
    acts.cancel(run)
    new = go_on(run, repaired(engine, run, [probe("first"), probe("call", note="other")]))
    engine.ends(new)
    assert [line["path"] for line in engine.ledger(new)] == ["call"]


def test_what_may_have_happened_where_nobody_can_be_asked_is_refused(engine):
    each = {"id": "each", "type": "loop", "config": {"items": "[1]"}, "steps": [DOUBTFUL]}
    run = uncertain(engine, [probe("first"), each])
    for steps in ([probe("first"), {**each, "config": {"items": "[2]"}}, probe("last")], [probe("first"), {"id": "box", "type": "parallel", "branches": lanes(a=[DOUBTFUL], b=[])}]):
        with pytest.raises(acts.NotPossible, match="may have happened, and there is no place"):
            go_on(run, repaired(engine, run, steps))
    new = go_on(run, repaired(engine, run, [probe("first"), probe("last")]))
    engine.ends(new)
    assert [line["path"] for line in engine.ledger(new)] == ["last"], "the step is gone, and with it the question"


# Refusals


def test_what_cannot_be_gone_on_with_says_why_and_nothing_is_made(engine):
    version = engine.publish([{"id": "ask", "type": "callback"}, probe("a"), bad("b")])
    run = engine.start(version)
    other = engine.publish([{"id": "ask", "type": "callback"}, probe("a"), probe("b")], workflow=version.workflow)
    with pytest.raises(acts.NotPossible, match="Only a run that failed or was cancelled"):
        go_on(run, other)
    done = engine.start(engine.publish([probe("a")], workflow=version.workflow))
    engine.worker()
    engine.ends(done)
    with pytest.raises(acts.NotPossible, match="Only a run that failed or was cancelled"):
        go_on(done, other)
    acts.cancel(run)
    with pytest.raises(acts.NotPossible, match="Leave the input as it was"):
        go_on(run, other, input={"body": 2})
    with pytest.raises(acts.NotPossible, match="Nothing is left to run"):
        go_on(run, engine.publish([{**REPLY, "id": "off", "off": True}], workflow=version.workflow))
    assert Run.objects.count() == 2 and not AuditEntry.objects.filter(action="rerun").exists()
    again = acts.rerun(Run.objects.get(pk=run))
    with pytest.raises(acts.NotPossible, match=f"Run {again:,} was started after this one"):
        go_on(run, other)
    acts.cancel(again)
    assert go_on(run, other), "what was given up has nothing in hand"


def test_of_two_at_once_one_is_made_and_a_form_counts_once(engine):
    run = failed(engine, [probe("a"), bad("b")])
    version = repaired(engine, run, [probe("a"), probe("b")])
    made = at_once(lambda: go_on(run, version, key="one"), lambda: go_on(run, version, key="two"), lambda: go_on(run, version, key="one"))
    numbers = {one for one in made if isinstance(one, int)}
    assert len(numbers) == 1 and all(isinstance(one, int | acts.NotPossible) for one in made), made
    new = numbers.pop()
    engine.ends(new)
    assert Run.objects.filter(rerun_of=run).count() == 1 and [line["path"] for line in engine.ledger(new)] == ["b"]
    assert LogLine.objects.filter(run_id=new, text__startswith="Begun with 1 results").count() == 1


# How far it goes


def done(*paths: str, **more: Any) -> dict[str, Ended]:
    return {path: Ended("succeeded", None, False) for path in paths} | more


A, B, C = probe("a"), probe("b"), probe("c")
GET = {"id": "a", "type": "http", "config": {"url": "https://crm.example/"}}
LANE = {**probe("a"), "on_error": {"steps": [probe("rescue")]}}
HANDLED = {"a": Ended("failed", None, True)}
IF = {"id": "if", "type": "condition", "branches": [{"id": "yes", "when": "true", "steps": [A]}, {"id": "no", "steps": [B]}]}
TAKEN = {"if": Ended("succeeded", "yes", False)}
LOOP = {"id": "loop", "type": "loop", "config": {"items": "[1]"}, "steps": [A]}
RACE = {"id": "race", "type": "parallel", "config": {"join": "any"}, "branches": lanes(a=[A], b=[B])}
GIVES = probe("gives", note="{{ callbacks.reply }}")


@pytest.mark.parametrize(("old", "new", "ended", "places", "stops"), [
    ([A, B], [A, B], done("a", b=Ended("failed", None, False)), ["a"], [("b", FAILED)]),
    ([A, B], [A, probe("b", note="x")], done("a", b=Ended("failed", None, False)), ["a"], [("b", REPAIRED)]),
    ([A, B, C], [A, C, B], done("a", "b", "c"), ["a", "c", "b"], []),
    ([A, B, C], [A, C], done("a", "b"), ["a"], [("c", OPEN)]),
    ([A, B], [A, C, B], done("a", "b"), ["a"], [("c", NEW)]),
    ([A, B], [{**A, "name": "Other", "note": "why", "retry": {"max_attempts": 9}, "timeout": "9s", "on_error": "continue"}, B], done("a", "b"), ["a", "b"], []),
    ([GET, B], [{**GET, "config": {**GET["config"], "method": "GET", "headers": {}}}, B], done("a", "b"), ["a", "b"], []),
    ([A, B], [probe("a", note="x"), B], done("a", "b"), [], [("a", CHANGED)]),
    ([A, B], [{**A, "off": True}, B], done("a", "b"), ["b"], []),
    ([{**A, "off": True}, B], [A, B], done("b"), [], [("a", OPEN)]),
    ([A, B], [A, {"id": "b", "type": "callback"}], done("a", "b"), ["a"], [("b", CHANGED)]),
    ([A], [A], {"a": Ended("skipped", None, False)}, ["a"], []),
    ([LANE, B], [LANE, B], done("a/on_error/rescue") | HANDLED, ["a", "a/on_error/rescue"], [("b", OPEN)]),
    ([LANE, B], [{**LANE, "on_error": {"steps": [C]}}, B], done("b", "a/on_error/rescue") | HANDLED, ["a"], [("a/on_error/c", NEW)]),
    ([LANE, B], [A, B], done("b") | HANDLED, [], [("a", REPAIRED)]),
    ([IF, C], [IF, C], done("if/yes/a") | TAKEN, ["if", "if/yes/a"], [("c", OPEN)]),
    ([IF, C], [{**IF, "branches": [IF["branches"][0], {"id": "no", "steps": [C]}]}, C], done("if/yes/a", "c") | TAKEN, ["if", "if/yes/a", "c"], []),
    ([IF], [{**IF, "branches": [{**IF["branches"][0], "when": "1 < 2"}, IF["branches"][1]]}], done("if/yes/a") | TAKEN, [], [("if", CHANGED)]),
    ([LOOP, B], [LOOP, B], done("loop"), ["loop"], [("b", OPEN)]),
    ([LOOP, B], [{**LOOP, "steps": [probe("a", note="x")]}, B], done("loop", "b"), [], [("loop", CHANGED)]),
    ([LOOP], [LOOP], {}, [], [("loop", OPEN)]),
    ([RACE, C], [RACE, C], done("race", "race/a/a"), ["race"], [("c", OPEN)]),
    ([RACE], [{**RACE, "branches": lanes(a=[A], b=[C])}], done("race", "race/a/a"), [], [("race", CHANGED)]),
    ([A, GIVES, B, REPLY], [A, GIVES, B, REPLY], done("a", "gives", "b"), ["a"], [("gives", ADDRESS)]),
    ([A, GIVES, REPLY, B], [A, GIVES, REPLY, B], done("a", "gives", "reply"), ["a", "gives", "reply"], [("b", OPEN)]),
])  # fmt: skip
def test_how_far_results_carry(old, new, ended, places, stops):
    found = carried({"steps": old}, {"steps": new}, Past(ended))
    assert (found.places, found.stops) == (places, stops)


def test_a_container_whose_failure_was_taken_care_of_is_kept_with_its_lane():
    box = {**LOOP, "on_error": {"steps": [B]}}
    ended = {"loop/on_error": Ended("failed", None, True)}
    assert carried({"steps": [box]}, {"steps": [box]}, Past(ended)).stops == [("loop", FAILED)], "its lane had not ended"
    found = carried({"steps": [box, C]}, {"steps": [box, C]}, Past(ended | done("loop/on_error/b")))
    assert found.stops == [("c", OPEN)] and found.keeps("loop/on_error") and found.keeps("loop[0]/a") and not found.keeps("loopy")


def test_how_far_a_loop_carries():
    frames, ended = {"loop": Frame(3, [2])}, done("loop[2]/a") | {"loop[2]/b": Ended("failed", None, False)}
    before, other = ({**LOOP, "steps": [A, B]}, {**LOOP, "steps": [A, probe("b", note="x")]})
    found = carried({"steps": [before, C]}, {"steps": [other, C]}, Past(ended, frames))
    assert found.stops == [("loop[2]/b", REPAIRED)] and found.again == ["loop[2]/b", "c"] and found.places == ["loop[2]/a"]
    assert found.keeps("loop[0]/b") and not found.keeps("loop[2]/b") and not found.keeps("loop") and found.runs("loop[2]/b")
    for body in ([probe("a", note="x"), B], [A, C, B], [B, A]):
        assert carried({"steps": [before]}, {"steps": [{**LOOP, "steps": body}]}, Past(ended, frames)).stops == [("loop", CHANGED)]
    assert carried({"steps": [before]}, {"steps": [before]}, Past(done("loop[2]/a", "loop[2]/b"), frames)).stops == [("loop[3]", OPEN)]
    gives = {**LOOP, "steps": [GIVES, B, REPLY]}
    ended = done("loop[2]/gives", "loop[2]/b")
    assert carried({"steps": [gives]}, {"steps": [gives]}, Past(ended, frames)).stops == [("loop[2]/gives", ADDRESS)]


def test_a_loop_that_failed_inside_says_that_it_failed():
    assert carried({"steps": [LOOP]}, {"steps": [LOOP]}, Past(failed_at="loop[3]/a")).stops == [("loop", FAILED)]
