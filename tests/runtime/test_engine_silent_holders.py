"""Who falls silent in the middle of a transaction that holds a run keeps it from nobody for long."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from runtime import waits
from runtime.claims import TAKE_BACK
from tests.runtime.engine import eventually

SECONDS = 40


def journal(silent: psycopg.Connection, run: int, worker: int, token: int) -> None:
    silent.execute("select holdfast_guard(%s, %s, %s, 0, 7)", [[run], [token], worker])


def person(silent: psycopg.Connection, run: int, worker: int, token: int) -> None:
    assert silent.execute(waits.LOCK, [run]).fetchall()


def housekeeper(silent: psycopg.Connection, run: int, worker: int, token: int) -> None:
    assert silent.execute(TAKE_BACK, {"half": 0, "soonest": 0, "latest": math.inf, "since": 0}).fetchone()[1]


@pytest.fixture
def held(engine):
    """Runs of a worker that is gone, and whose leases ran out, each with its token."""
    version = engine.publish([{"id": "call", "type": "probe"}])
    runs = [engine.start(version) for _ in range(2)]
    engine.sql(
        "update dispatch set state = 'claimed', token = nextval('claim_token'), worker_id = 999, "
        "leased_until = clock_timestamp() - interval '1 s'"
    )
    engine.sql("insert into journal_mark (worker_id, epoch, batch) values (999, 0, 0)")
    return dict(engine.sql("select run_id, token from dispatch where run_id = any(%s)", runs))


def test_a_run_whose_holder_stopped_in_the_middle_of_a_transaction_goes_on(engine, held, database_url):
    (first, token), (second, other) = held.items()

    def fall_silent(act, run: int, of: int) -> None:
        with psycopg.connect(database_url) as silent:
            act(silent, run, 999, of)
            eventually(lambda: ended(silent), SECONDS, what="the end of a silent session")
            with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
                silent.execute("select 1")

    def ended(silent: psycopg.Connection) -> bool:
        with psycopg.connect(database_url, autocommit=True) as beside:
            found = beside.execute("select from pg_stat_activity where pid = %s", [silent.info.backend_pid]).rowcount
        return not found

    with ThreadPoolExecutor(2) as threads:
        silent = [threads.submit(fall_silent, journal, first, token), threads.submit(fall_silent, person, second, other)]
        locked = "select run_id from dispatch where run_id = any(%s) for no key update skip locked"
        eventually(lambda: not engine.sql(locked, list(held)))
        engine.worker()
        for run in held:
            engine.ends(run, seconds=SECONDS)
        for one in silent:
            one.result()


def test_the_housekeeper_lets_go_too(engine, held, database_url):
    with psycopg.connect(database_url) as silent:
        housekeeper(silent, 0, 0, 0)
        (patience,) = silent.execute("select current_setting('idle_in_transaction_session_timeout')").fetchone()
        assert patience == "10s"
