"""Workers of different make, and versions: who runs what."""

from __future__ import annotations

import pytest

from runtime import acts
from runtime import publish as publishing
from runtime.definition import check
from runtime.models import Dispatch, Run, Version, Worker
from tests.runtime.engine import eventually

PROBE = [{"id": "x", "type": "probe"}]
WITHOUT_PLUGINS = {"HOLDFAST_STEP_MODULES": ""}


def test_a_worker_leaves_what_it_does_not_know_to_others(engine):
    known = engine.publish([{"id": "x", "type": "set", "config": {"values": {"a": 1}}}])
    unknown = engine.start(engine.publish(PROBE))
    poor = engine.worker(env=WITHOUT_PLUGINS)
    others = [engine.start(known) for _ in range(5)]
    for run in others:
        engine.ends(run)
    eventually(lambda: "left to other workers" in poor.tail())
    row = eventually(lambda: Dispatch.objects.filter(run_id=unknown, state="ready").first())
    assert row.claims <= 2 and row.lost == 0
    engine.worker()
    engine.ends(unknown)


def test_a_run_that_no_worker_knows_says_after_five_minutes_what_is_missing(engine, clock):
    run = engine.start(engine.publish(PROBE))
    engine.worker(env=WITHOUT_PLUGINS)
    eventually(lambda: Worker.objects.filter(beat_at__isnull=False).exists())
    assert engine.state(run) == "open"
    clock.advance(minutes=6)
    eventually(lambda: engine.state(run) == "attention")
    assert "x: type: There is no step of type “probe”. Is its package installed?" in engine.log(run)[-1]
    assert "x: type: There is no step of type “probe”" in Run.objects.get(pk=run).error["message"]
    engine.worker()
    assert engine.ends(run).error is None


def spoil(engine, version: Version, old: str, new: str) -> None:
    """Change a version as no code of ours does: as if another make of Holdfast had published it."""
    engine.sql("alter table version disable trigger version_immutable")
    engine.sql("update version set definition = replace(definition::text, %s, %s)::json where id = %s", old, new, version.pk)
    engine.sql("alter table version enable trigger version_immutable")


def test_a_version_that_no_worker_can_make_ready_is_told_with_step_and_reason(engine, clock):
    told = {}
    for old, new, words in [
        ('"first": "1s"', '"first": "{{ 1 }}s"', "x: retry.first: A fixed length is needed here"),
        ('"value": 1', '"novelty": 1', "x: config.novelty: There is no field “novelty” here."),
        ('"format": 1', '"format": 9', "This is format 9; this version of Holdfast reads format 1."),
        ('"value": 1', '"value": "{{ 1 + }}"', "x: config.value: "),
    ]:
        version = engine.publish([{"id": "x", "type": "probe", "config": {"value": 1}, "retry": {"first": "1s"}}])
        spoil(engine, version, old, new)
        told[engine.start(version)] = words
    engine.worker()
    eventually(lambda: any(len(worker.unable) == len(told) for worker in Worker.objects.all()))
    assert all(engine.state(run) == "open" for run in told), "another worker may know better: for five minutes it is not told"
    clock.advance(minutes=6)
    for run, words in told.items():
        eventually(lambda run=run: engine.state(run) == "attention")
        assert words in Run.objects.get(pk=run).error["message"] and words in engine.log(run)[-1]
        assert acts.cancel(run)
        engine.ends(run, "cancelled")


def test_a_run_goes_on_and_needs_no_attention_any_more_when_a_worker_comes_that_can(engine, clock):
    run = engine.start(engine.publish([{"id": "x", "type": "probe", "config": {"hold": "go"}}, {"id": "later", "type": "callback"}]))
    engine.worker(env=WITHOUT_PLUGINS)
    eventually(lambda: Worker.objects.exclude(unable={}).exists())
    clock.advance(minutes=6)
    eventually(lambda: engine.state(run) == "attention")
    engine.worker()
    eventually(lambda: engine.state(run) == "open")
    engine.release("go")
    engine.wait(run, "later")
    assert Run.objects.get(pk=run).error is None


def test_what_a_config_holds_is_no_step(engine, clock):
    """A value that looks like steps of an unknown type, in a run that waits long for a free slot."""
    busy = engine.start(engine.publish([{"id": "x", "type": "probe", "config": {"hold": "go"}}]))
    worker = engine.worker(concurrency=1)
    eventually(lambda: engine.ledger(busy))
    value = {"steps": [{"id": "y", "type": "not_installed"}]}
    run = engine.start(engine.publish([{"id": "x", "type": "set", "config": {"values": {"imported": value}}}]))
    clock.advance(minutes=6)
    beats = Worker.objects.get().beat_at
    eventually(lambda: (Worker.objects.get().beat_at - beats).total_seconds() > 7, what=worker.tail)
    assert engine.state(run) == "open"
    engine.release("go")
    engine.ends(run)


@pytest.mark.parametrize("field", ["retry.first", "retry.longest", "retry.total", "timeout", "on_interrupted.check.after"])
def test_lengths_that_hold_for_all_runs_are_no_templates(field):
    step: dict = {"id": "pay", "type": "http", "config": {"method": "POST", "url": "https://a.example/"}}
    *outer, last = field.split(".")
    place = step
    for name in outer:
        place = place.setdefault(name, {"request": {"url": "https://a.example/"}, "happened": "true"} if name == "check" else {})
    place[last] = "{{ trigger.body.seconds }}s"
    problems = [problem for problem in check({"format": 1, "name": "x", "steps": [step]}) if not problem.warning]
    assert [(problem.step, problem.field) for problem in problems] == [("pay", field)]
    assert "A fixed length is needed here" in problems[0].message
    place[last] = "1m 30s"
    assert not check({"format": 1, "name": "x", "steps": [step]})


def test_versions_are_numbered_and_a_snapshot_of_a_draft_is_not(engine):
    first = engine.publish(PROBE)
    second = engine.publish([*PROBE, {"id": "y", "type": "probe"}], workflow=first.workflow)
    draft = publishing.snapshot(first.workflow, {**first.definition, "description": "being tried"})
    again = publishing.snapshot(first.workflow, {**first.definition, "description": "being tried"})
    first.workflow.refresh_from_db()
    assert [first.number, second.number, draft.number] == [1, 2, None] and draft == again
    assert first.workflow.live_version == second
    publishing.make_live(first.workflow, first)
    first.workflow.refresh_from_db()
    assert first.workflow.live_version == first and Version.objects.count() == 3
    run = engine.start(draft, test=True)
    engine.worker()
    engine.ends(run)
