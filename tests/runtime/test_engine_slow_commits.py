"""Commits that take long: whoever waits for one goes on when it is done, and nothing is done twice meanwhile."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.db import connection, connections

from runtime import acts
from tests.runtime.engine import eventually

CALLS = [{"id": f"s{n}", "type": "probe", "on_interrupted": "ask"} for n in range(3)]
PERSON = ""
"""The application's name of the tests' own session."""


class Commits:
    """Of a server that is told to wait for a standby that is not there, and told later that it need not."""

    def __init__(self, admin: psycopg.Connection, fresh: str):
        self.admin, self.fresh = admin, fresh

    def hold(self, standby: str = "nobody") -> None:
        self.admin.execute(f"alter system set synchronous_standby_names = '{standby}'")
        self.admin.execute("select pg_reload_conf()")
        eventually(lambda: self._setting() == standby)

    def let_go(self) -> None:
        self.hold("")

    def waits(self, name: str) -> bool:
        """Whether somebody of that name waits for a commit."""
        query = "select from pg_stat_activity where wait_event = 'SyncRep' and application_name like %s"
        return self.admin.execute(query, [name]).rowcount > 0

    def _setting(self) -> str:
        """A session hears of it when it likes, a new one at once."""
        with psycopg.connect(self.fresh) as fresh:
            return fresh.execute("show synchronous_standby_names").fetchone()[0]


@pytest.fixture
def commits(engine, postgres):
    """The tests' server does not wait for commits, for speed. Here it does."""
    address = postgres.url("postgres", "postgres")
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("alter role holdfast set synchronous_commit = on")
        connections["default"].close()
        made = Commits(admin, address)
        yield made
        made.let_go()
        admin.execute("alter role holdfast reset synchronous_commit")
        connections["default"].close()


def test_slow_commits_delay_runs_and_starts_and_repeat_nothing(engine, commits):
    version = engine.publish(CALLS)
    runs = [engine.start(version) for _ in range(20)]
    worker = engine.worker(lease_seconds=60)

    def begin() -> int:
        try:
            return engine.start(version)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        for calls in (1, 20, 40):
            eventually(lambda calls=calls: len(engine.ledger()) >= calls)
            commits.hold()
            started = thread.submit(begin)
            eventually(lambda started=started: commits.waits(PERSON) or started.done())
            assert not started.done(), "it was told of before it was durable"
            commits.let_go()
            runs.append(started.result())
        commits.hold()
        eventually(lambda: commits.waits("holdfast%"), what=worker.tail)
        commits.let_go()
    for run in runs:
        engine.ends(run)
    calls = sorted((line["run"], line["path"]) for line in engine.ledger())
    assert calls == sorted((run, step["id"]) for run in runs for step in CALLS)


def test_who_lost_the_run_while_it_registered_a_call_does_not_make_it(engine, commits):
    """Stopped before it was told that the row is durable: the next owner finds the row, and asks what became of the call."""
    steps = [{"id": "first", "type": "probe", "config": {"hold": "go"}}, {"id": "call", "type": "probe", "on_interrupted": "ask"}]
    run = engine.start(engine.publish(steps))
    late = engine.worker(lease_seconds=3)
    eventually(lambda: engine.ledger(run))
    commits.hold()
    engine.release("go")
    eventually(lambda: commits.waits("holdfast journal"), what=late.tail)
    late.signal(signal.SIGSTOP)
    commits.let_go()
    engine.worker(lease_seconds=3)
    asked = engine.wait(run, "call", "person")
    late.signal(signal.SIGCONT)
    eventually(lambda: "the lease was lost" in late.tail() or len(engine.ledger(run)) > 1, what=late.tail)
    late.stop()
    assert [line["path"] for line in engine.ledger(run)] == ["first"]
    assert acts.answer(asked.pk, "again")
    engine.ends(run)
    assert [line["path"] for line in engine.ledger(run)] == ["first", "call"]
