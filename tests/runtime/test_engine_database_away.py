"""What the database's absence must not do to runs that were only waiting for it."""

from __future__ import annotations

import psycopg
import psycopg.sql

from tests.runtime.engine import eventually


def test_a_database_that_is_away_for_longer_than_a_steps_timeout_fails_no_step(engine, database_url):
    """The attempt's row cannot be written meanwhile, so the call has not begun: its time has not begun either."""
    version = engine.publish([{"id": "call", "type": "probe", "timeout": "1s", "retry": {"max_attempts": 1}}])
    engine.worker(lease_seconds=10)
    with psycopg.connect(database_url) as away, psycopg.connect(database_url, autocommit=True) as sees:
        eventually(lambda: away.execute("select from journal_mark for update").fetchone() is not None)
        run = engine.start(version)
        stuck = """select from pg_stat_activity where application_name = 'holdfast journal' and wait_event_type = 'Lock'
                   and datname = current_database() and clock_timestamp() - query_start > interval '7 s'"""
        eventually(lambda: sees.execute(stuck).fetchone() is not None)
        assert not engine.ledger(run)
    engine.ends(run)
    assert [attempt.outcome for attempt in engine.attempts(run)] == ["answered"]


def test_a_server_that_is_read_only_for_a_while_fails_no_run(engine, database_url):
    """After a failover the old address may answer from a standby for a while: that is no fault of the rows."""
    run = engine.start(engine.publish([{"id": "call", "type": "probe", "config": {"hold": "go"}}, {"id": "next", "type": "probe"}]))
    worker = engine.worker(lease_seconds=20)
    eventually(lambda: engine.ledger(run))
    with psycopg.connect(database_url, autocommit=True) as server:
        name = psycopg.sql.Identifier(server.info.dbname)
        server.execute(psycopg.sql.SQL("alter database {} set default_transaction_read_only = on").format(name))
        try:
            server.execute("""select pg_terminate_backend(pid) from pg_stat_activity
                              where datname = current_database() and application_name in ('holdfast journal', 'holdfast reader')""")
            engine.release("go")
            eventually(lambda: "read-only" in worker.log.read_text())
        finally:
            server.execute(psycopg.sql.SQL("alter database {} reset default_transaction_read_only").format(name))
        server.execute("""select pg_terminate_backend(pid) from pg_stat_activity
                          where datname = current_database() and application_name like 'holdfast%'""")
    engine.ends(run)
    assert len(engine.ledger(run)) == 2
