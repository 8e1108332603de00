"""Workers of different make, and versions: who runs what."""

from __future__ import annotations

from runtime import publish as publishing
from runtime.models import Dispatch, Version, Worker
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
    assert '"probe"' in engine.log(run)[-1]
    engine.worker()
    engine.ends(run)


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
