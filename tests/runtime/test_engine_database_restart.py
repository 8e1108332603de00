"""Postgres is stopped as by a power cut and started again, with runs in flight: workers come back, nothing is lost."""

from __future__ import annotations

import itertools
import signal
from collections import Counter

import psycopg
import pytest
from django.db import connections

from tests.runtime.engine import eventually


@pytest.fixture
def durable(engine, postgres):
    """The tests' server forgets its last commits in a crash, for speed. Here a commit that was answered stays."""
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as admin:
        admin.execute("alter role holdfast set synchronous_commit = on")
    connections["default"].close()
    yield postgres
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as admin:
        admin.execute("alter role holdfast reset synchronous_commit")
    connections["default"].close()


def crash(postgres) -> None:
    postgres.process.send_signal(signal.SIGQUIT)
    postgres.process.wait(20)
    connections["default"].close()


def test_workers_come_back_by_themselves_when_postgres_was_restarted(engine, durable):
    steps = [
        {"id": "a", "type": "probe"},
        {"id": "b", "type": "probe", "config": {"seconds": 0.1}},
        {"id": "c", "type": "probe", "config": {"hold": "go"}},
        {"id": "d", "type": "probe"},
    ]
    version = engine.publish(steps)
    runs = [engine.start(version) for _ in range(60)]
    workers = [engine.worker(concurrency=30) for _ in range(2)]
    for calls in (40, 120, 170):
        eventually(lambda calls=calls: len(engine.ledger()) >= calls)
        crash(durable)
        durable.launch()
    engine.release("go")
    for run in runs:
        engine.ends(run)
    told = "\n".join(f"--- worker {worker.pid} ({worker.status()}):\n{worker.tail()}" for worker in workers)
    assert [worker.status() for worker in workers] == [None, None], f"a worker did not survive\n{told}"
    calls = Counter((line["run"], line["path"]) for line in engine.ledger())
    wrong = {call: calls[call] for call in itertools.product(runs, "abcd") if calls[call] != 1}
    assert not wrong, f"calls made twice, or lost: {wrong}\n{told}"


def test_a_new_worker_takes_nothing_from_owners_that_could_not_renew_while_postgres_was_away(engine, durable):
    run = engine.start(engine.publish([{"id": "call", "type": "probe", "config": {"hold": "go"}}]))
    owner = engine.worker()
    eventually(lambda: engine.ledger(run))
    owner.signal(signal.SIGSTOP)
    crash(durable)
    durable.launch()
    engine.sql("update dispatch set leased_until = clock_timestamp()")
    other = engine.worker()
    eventually(lambda: engine.sql("select pid from worker where pid = %s and beat_at > started_at", other.pid))
    owner.signal(signal.SIGCONT)
    eventually(lambda: engine.sql("select leased_until > clock_timestamp() from dispatch")[0][0], what=owner.tail)
    engine.release("go")
    engine.ends(run)
    assert len(engine.ledger(run)) == 1, engine.told(run)


def test_a_worker_that_is_told_to_stop_while_the_database_is_away_ends(engine, durable):
    run = engine.start(engine.publish([{"id": "c", "type": "probe", "config": {"hold": "go"}}]))
    worker = engine.worker(grace_seconds=0.5)
    eventually(lambda: engine.ledger(run))
    crash(durable)
    try:
        worker.signal(signal.SIGTERM)
        worker.ended(20)
    finally:
        durable.launch()
    engine.release("go")
    engine.worker()
    engine.ends(run)
