"""What happens to a run while it is taken up again is acted upon."""

from __future__ import annotations

import signal

import psycopg
import pytest
from django.db import connection

from runtime import waits
from runtime.models import Wait
from tests.plans import blocks_of_a_claim
from tests.runtime.engine import eventually


@pytest.fixture
def slow_chunks(engine):
    """Makes each look at a loop's items take its time, from the call on."""

    def slow_down() -> None:
        engine.sql("alter table frame_chunk rename to frame_chunk_itself")
        engine.sql("create view frame_chunk as select c.* from frame_chunk_itself c, pg_sleep(0.5)")

    yield slow_down
    engine.kill_all()
    with connection.cursor() as cursor:
        cursor.execute("drop view frame_chunk")
        cursor.execute("alter table frame_chunk_itself rename to frame_chunk")


def test_a_signal_is_heard_by_a_lane_that_is_still_on_its_way_to_its_wait(engine, slow_chunks):
    def loop(name: str, steps: list[dict]) -> dict:
        return {"id": name, "type": "loop", "config": {"items": "[1]"}, "steps": steps}

    lanes = [
        {"id": "a", "steps": [loop("x", [loop("y", [loop("z", [{"id": "late", "type": "callback"}])])])]},
        {"id": "b", "steps": [{"id": "first", "type": "callback"}]},
    ]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    engine.worker()
    late = engine.wait(run, "both/a/x[0]/y[0]/z[0]/late").path
    engine.wait(run, "both/b/first")
    engine.parked(run)
    slow_chunks()
    assert waits.signal(run, "both/b/first", 1, "once")
    looking = "select pid from pg_stat_activity where state = 'active' and query like 'select items from frame_chunk%'"
    eventually(lambda: engine.sql(looking), what=lambda: engine.told(run))
    assert waits.signal(run, late, 2, "once")
    engine.ends(run)


OVERDUE = """
with waiting as (
    insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths)
    select n, 1, 'waiting', now() - make_interval(secs => n), 1, 0, 0, false, 0 from generate_series(1, 20000) n
    returning run_id, due_at
)
insert into wait (run_id, scope, path, take, kind, n, state, due_at, data, created_at)
select run_id, '', 'day', 1, 'timer', 1, 'open', due_at, '{}', now() from waiting
"""


def test_a_claim_ends_the_waits_that_are_over_and_reads_none_of_other_runs(transactional_db, database_url):
    with psycopg.connect(database_url, autocommit=True) as own:
        own.execute(OVERDUE)
        assert blocks_of_a_claim(own, 10) < 1000
    over = Wait.objects.filter(state="resolved")
    assert sorted(over.values_list("run_id", flat=True)) == list(range(19_991, 20_001))
    assert all(wait.outcome["by"] == "due" and wait.resolved_at >= wait.due_at for wait in over)


def test_a_wait_that_is_over_while_its_worker_stops_is_not_waited_for(engine, clock):
    """The run hears of its wait after the worker's grace, when nothing in it may go on any more, and before it is handed back."""
    hour, late = {"id": "hour", "type": "delay", "config": {"for": "1h"}}, {"id": "late", "type": "slow_to_go", "config": {"how": "told_late"}}
    call, reply = {"id": "call", "type": "probe", "config": {"hold": "go"}}, {"id": "reply", "type": "callback"}
    lanes = [{"id": name, "steps": steps} for name, steps in (("a", [hour]), ("b", [late, call]), ("c", [reply]))]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    engine.start(engine.publish([{"id": "beside", "type": "slow_to_go", "config": {"how": "clings"}}]))
    worker = engine.worker(grace_seconds=0.5)
    engine.wait(run, "both/a/hour")
    eventually(lambda: engine.ledger(run), what=lambda: engine.told(run))
    clock.advance(hours=1)
    engine.wait(run, "both/a/hour", state="resolved")
    engine.release("go")
    eventually(lambda: "both/b/call" in engine.results(run), what=lambda: engine.told(run))
    worker.signal(signal.SIGTERM)
    eventually(lambda: (engine.folder / "clinging").exists(), what=worker.tail)
    engine.release("told")
    assert worker.ended() == 0, worker.tail()
    engine.worker()
    eventually(lambda: "both/a/hour" in engine.results(run), what=lambda: engine.told(run))
    assert waits.signal(run, "both/c/reply", None, "1")
    engine.ends(run)
