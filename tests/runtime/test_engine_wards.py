"""Wards are few, however many workers see what has to go into them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from runtime.claiming import Claiming
from runtime.clock import WorkerClock
from runtime.models import Dispatch, Wait
from runtime.wards import WARDS
from tests.runtime.engine import eventually


def test_workers_do_not_all_make_wards_for_the_same_runs(engine):
    version = engine.publish([{"id": "x", "type": "probe", "config": {"hold": "go"}}])
    runs = [engine.start(version) for _ in range(2 * WARDS)]
    engine.sql("update dispatch set lost = 2 + run_id %% 2 where run_id = any(%s)", runs)
    for _ in range(3):
        engine.worker(lease_seconds=60)
    held = Dispatch.objects.filter(run_id__in=runs, state="claimed")
    eventually(lambda: held.count() >= WARDS, what=lambda: engine.told(runs[0]))
    eventually(lambda: engine.sql("select count(*) from worker where cluster = 'tests' and beat_at > started_at") == [(3,)])
    ((wards,),) = engine.sql("select count(*) from worker where cluster like '%(ward)'")
    assert wards <= WARDS
    engine.release("go")
    for run in runs:
        engine.ends(run)


def in_a_ward(*, stopping: bool) -> None:
    ward = SimpleNamespace(now=WorkerClock().now, stopping=lambda: stopping, executions={}, id=1, lease_seconds=60)
    asyncio.run(Claiming(ward).run_share(1, 3))


def test_a_ward_that_is_told_to_stop_while_it_starts_claims_nothing(engine):
    run = engine.start(engine.publish([{"id": "x", "type": "probe"}]))
    engine.sql("update dispatch set lost = 3 where run_id = %s", run)
    in_a_ward(stopping=True)
    assert Dispatch.objects.get(run_id=run).state == "ready"


def test_a_ward_for_which_nothing_is_left_ends(engine):
    in_a_ward(stopping=False)


@pytest.mark.parametrize("how", ["kill", "crash", "spin", "block"])
def test_whatever_a_step_does_to_its_process_its_third_death_alone_is_the_last(engine, how):
    """Killed as by a machine that is out of memory, a segmentation fault, a loop of C without end, a loop that lets nothing turn."""
    bad = engine.start(engine.publish([{"id": "bad", "type": "lethal", "config": {"how": how}}]))
    engine.sql("update dispatch set lost = 5, deaths = 2 where run_id = %s", bad)
    good = engine.start(engine.publish([{"id": "x", "type": "probe"}]))
    worker = engine.worker(lease_seconds=3)
    asked = eventually(lambda: Wait.objects.filter(run_id=bad, kind="person").first(), what=lambda: engine.told(bad))
    assert asked.data["reason"] == "quarantine" and engine.state(bad) == "attention"
    assert len((engine.folder / "deaths").read_text().split()) == 1 and worker.status() is None
    engine.ends(good)
