"""Postgres is stopped as by a power cut and started again, with runs in flight: workers come back, nothing is lost."""

from __future__ import annotations

import signal

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
    calls = sorted((line["run"], line["path"]) for line in engine.ledger())
    assert calls == sorted((run, step["id"]) for run in runs for step in steps), "a call was made twice, or was lost"
    assert [worker.status() for worker in workers] == [None, None], "a worker did not survive"


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
