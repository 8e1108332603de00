"""Claims and leases: on time whatever the poll, in one order of locks, and no slot kept for what cannot be run here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg

from runtime.claims import RENEW
from tests.runtime.engine import eventually

HELD = """
insert into dispatch (run_id, version_id, state, due_at, token, worker_id, leased_until, claims, wakes, lost, alone, deaths)
values (%s, 0, 'claimed', now(), %s, 7, clock_timestamp() + make_interval(secs => %s), 1, 0, 0, false, 0)
"""
LOCK = "select from dispatch where run_id = %s for no key update"


def test_renewing_leases_and_writing_the_journal_lock_runs_in_one_order(transactional_db, database_url):
    """The lease that ends first belongs to the later run: by the lease's index they would be locked the other way round."""
    with (
        psycopg.connect(database_url, autocommit=True) as keeper,
        psycopg.connect(database_url) as journal,
        psycopg.connect(database_url, autocommit=True) as sees,
        ThreadPoolExecutor(1) as thread,
    ):
        for run, seconds in ((1, 60), (2, 30)):
            keeper.execute(HELD, [run, run, seconds])
        keeper.execute("set enable_seqscan = off")
        journal.execute(LOCK, [1])
        renewal = thread.submit(keeper.execute, RENEW, {"worker": 7, "lease": 90, "runs": [1, 2]})
        waits = "select from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
        eventually(lambda: sees.execute(waits, [keeper.info.backend_pid]).fetchone() is not None)
        journal.execute(LOCK, [2])
        journal.commit()
        assert renewal.result().rowcount == 2


def test_a_timer_that_is_set_while_the_worker_sleeps_is_on_time_whatever_the_poll(engine):
    """The worker reckoned how long to sleep while it held the run itself, whose timer it could not see yet."""
    run = engine.start(engine.publish([{"id": "wait", "type": "delay", "config": {"for": "1s"}}]))
    engine.worker(poll_seconds=60)
    engine.ends(run, seconds=25)


def test_a_slot_that_becomes_free_is_used_at_once_whatever_the_poll(engine):
    version = engine.publish([{"id": "call", "type": "probe", "config": {"hold": "{{ trigger.body }}"}}])
    first, second = engine.start(version, "first"), engine.start(version, "second")
    engine.release("second")
    engine.worker(concurrency=1, poll_seconds=60)
    eventually(lambda: engine.ledger(first))
    engine.release("first")
    engine.ends(second, seconds=25)


def test_a_claim_whose_memory_takes_long_to_load_is_not_taken_for_one_that_nobody_holds(engine, clock, database_url):
    run = engine.start(engine.publish([{"id": "wait", "type": "delay", "config": {"for": "1h"}}, {"id": "call", "type": "probe"}]))
    worker = engine.worker(lease_seconds=20)
    engine.parked(run)
    with psycopg.connect(database_url) as slow, psycopg.connect(database_url, autocommit=True) as sees:
        slow.execute("lock table frame in access exclusive mode")
        clock.advance(hours=2)
        stuck = """select from pg_stat_activity where application_name = 'holdfast claims' and wait_event_type = 'Lock'
                   and datname = current_database() and clock_timestamp() - query_start > interval '4 s'"""
        eventually(lambda: sees.execute(stuck).fetchone() is not None)
    engine.ends(run)
    assert "held by nobody" not in worker.log.read_text()


def test_a_worker_makes_no_room_for_a_run_that_it_cannot_run(engine):
    """It would stay empty for ever: the run that it waits for is another worker's."""
    strange = engine.start(engine.publish([{"id": "call", "type": "probe"}]))
    engine.sql("alter table version disable trigger version_immutable")
    engine.sql("""update version set definition = replace(definition::text, 'probe', 'not_installed')::json
                  where id = (select version_id from run where id = %s)""", strange)
    engine.sql("alter table version enable trigger version_immutable")
    engine.sql("update dispatch set lost = 3, due_at = due_at - interval '1 minute' where run_id = %s", strange)
    worker = engine.worker()
    eventually(lambda: "cannot be run here" in worker.log.read_text())
    engine.ends(engine.start(engine.publish([{"id": "call", "type": "probe"}])))
