"""The doorbell: who starts run after run does not ring for each of them, and none waits longer for that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import AsyncConnection

from runtime import doorbell, watching
from runtime.doorbell import CHANNEL, MORE, ring_after_commit

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 60


@pytest.fixture
def rung(monkeypatch, database_url):
    """rung(seconds, …): what listeners hear of bells at these times of a clock that only we move."""
    now = [0.0]
    monkeypatch.setattr(doorbell, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(doorbell, "_rung", float("-inf"))
    monkeypatch.setattr(doorbell, "_stands_until", float("-inf"))

    def rung(*times: float | tuple[float, int]) -> list[str]:
        with psycopg.connect(database_url, autocommit=True) as listener:
            listener.execute(f"listen {CHANNEL}")
            for one in times:
                now[0], run_id = one if isinstance(one, tuple) else (one, None)
                ring_after_commit(run_id)
            listener.execute("select pg_notify(%s, 'over')", [CHANNEL])
            heard = []
            for notice in listener.notifies(timeout=PATIENCE):
                if notice.payload == "over":
                    return heard
                heard.append(notice.payload)
        raise TimeoutError(heard)

    return rung


def test_bells_that_are_far_apart_are_all_rung_as_they_are(rung):
    assert rung(0, 1, 2) == ["", "", ""]


def test_of_many_bells_in_a_row_one_stands_for_those_that_follow_and_says_so(rung):
    assert rung(0, 0.001, 0.002, 0.004, 0.0059) == ["", MORE]
    assert rung(0.0061, 0.0062) == [MORE], "its time is over"
    assert rung(1, 1.001) == ["", MORE], "once it is quiet again, a single one is a single one"


def test_a_bell_for_a_run_in_somebodys_hands_is_always_rung(rung):
    assert rung(0, 0.001, (0.002, 7), (0.002, 8)) == ["", MORE, "7", "8"]


def test_whoever_hears_that_more_may_come_looks_once_more(transactional_db, database_url, monkeypatch):
    """The bell of a worker: set by what is heard, and again when the time is over for which that stands."""

    async def heard(payload: str) -> int:
        sets = []
        worker = SimpleNamespace(
            bell=SimpleNamespace(set=lambda: sets.append(1)), admission=SimpleNamespace(ring=lambda: None), executions={}
        )
        listening = asyncio.create_task(watching.Watching(worker).listen())
        async with await AsyncConnection.connect(database_url, autocommit=True) as other, asyncio.timeout(PATIENCE):
            await until(lambda: sets)  # it listens
            await other.execute("select pg_notify(%s, %s)", [CHANNEL, payload])
            await until(lambda: len(sets) >= 2)
            await other.execute("select pg_notify(%s, '7')", [CHANNEL])  # and what comes after it is heard after it
            await until(lambda: len(sets) >= (4 if payload == MORE else 3))
        listening.cancel()
        return len(sets)

    monkeypatch.setattr(watching, "STANDS_SECONDS", 0.001)
    assert asyncio.run(heard(MORE)) == 4
    assert asyncio.run(heard("")) == 3


async def until(true) -> None:
    while not true():
        await asyncio.sleep(0.01)
