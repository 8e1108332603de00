"""After a time in which nobody could renew a lease, its end is no sign of death: owners come first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import psycopg
import pytest
from django.db import connection

from runtime import leases
from runtime.claims import ELDEST
from runtime.housekeeping import Housekeeping
from runtime.leases import LeaseKeeper
from runtime.models import Worker
from tests.runtime.test_claiming import HELD

LEASE = 30.0
LATER_THAN_REAL = 10_000_000_000
"""Seconds since 1970: the server has been up for long."""
# The clock of a session that finds this schema first. It stands still until a test moves it.
STANDING_CLOCK = """
create schema standing;
create function standing.clock_timestamp() returns timestamptz language sql volatile
    as $$ select to_timestamp(current_setting('standing.at')::float8) $$;
create function standing.pg_postmaster_start_time() returns timestamptz language sql volatile
    as $$ select to_timestamp(current_setting('standing.server')::float8) $$;
"""


# The owner of the run.
OWNER = """
insert into worker (id, cluster, host, pid, code_version, formats, step_types, slots, started_at, beat_at, in_flight, finished, stopping)
values (7, '', '', 1, '', '{}', '{}', 0, now(), to_timestamp(%s), 0, 0, false)
"""


class House:
    """One that keeps house by a clock of its own, and a run whose lease ends a second after its last renewal."""

    def __init__(self, connection: psycopg.AsyncConnection, began: float):
        """`began`: when its process did, in seconds after the time of the clock."""
        self.connection, self.now = connection, LATER_THAN_REAL
        self.keeper = Housekeeping(SimpleNamespace(lease_seconds=LEASE, began_at=self.now + began))

    async def turn(self, after: float) -> bool:
        """Keep house so many seconds after the last time. Returns whether the run was taken from its owner."""
        self.now += after
        await self.connection.execute("select set_config('standing.at', %s, false)", [str(self.now)])
        await self.keeper.take_back(self.connection)
        return (await (await self.connection.execute("select token is null from dispatch")).fetchone())[0]


@pytest.fixture
def turns(transactional_db, database_url):
    """Calls `(after, whether the run is taken), …` of one whose process began so many seconds after the clock's time. So many
    seconds after it the server started, the run's lease ends, and its owner was heard of last."""
    with psycopg.connect(database_url, autocommit=True) as beside:
        beside.execute(STANDING_CLOCK)

        async def keep(began: float, expected: list[tuple[float, bool]], server: float, lease: float, beat: float) -> None:
            async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
                house = House(connection, began)
                await connection.execute("set search_path = standing, public, pg_catalog")
                await connection.execute("select set_config('standing.at', %s, false)", [str(house.now)])
                await connection.execute("select set_config('standing.server', %s, false)", [str(house.now + server)])
                await connection.execute(HELD, [1, 1, lease])
                await connection.execute(OWNER, [house.now + beat])
                assert [(after, await house.turn(after)) for after, _ in expected] == expected

        yield lambda began, *expected, server=-10_000, lease=1, beat=0: asyncio.run(keep(began, list(expected), server, lease, beat))
        beside.execute("drop schema standing cascade")


def test_a_dead_owners_run_is_taken_as_soon_as_its_lease_is_over(turns):
    turns(0, (0.5, False), (1, True))


def test_turns_that_come_late_are_no_reason_to_wait_while_a_living_owner_has_lease_left(turns):
    turns(0, (14, True))


def test_after_the_machine_slept_the_owners_of_runs_come_first(turns):
    turns(0, (0.5, False), (1000, False), (14, False), (2, True))


def test_a_machine_that_slept_again_before_the_owners_had_their_time_gives_it_to_them_anew(turns):
    turns(0, (1000, False), (16, False), (1000, False), (14, False), (2, True))


def test_a_worker_whose_start_the_machine_slept_through_gives_the_owners_their_time(turns):
    turns(-1000, (2, False), (14, False), (2, True))


def test_a_clock_that_leaps_back_makes_nobody_wait_until_it_is_as_late_again(turns):
    turns(0, (1000, False), (-1005, False), (14, False), (2, True))


def test_a_lease_by_a_clock_that_leapt_back_since_ends_like_any_other(turns):
    turns(0, (-1000, False), (14, False), (15, False), (3, True))


def test_after_the_server_started_the_owners_of_runs_come_first(turns):
    turns(0, (0.5, False), (1, False), (13, False), (2, True), server=0)


def test_a_server_that_started_by_a_clock_that_leapt_back_since_makes_nobody_wait(turns):
    turns(0, (0.5, False), (1, True), server=5000)


@pytest.mark.parametrize(("lease", "beat", "taken"), [(5000, 4990, True), (300, 0, False)])
def test_a_lease_by_a_clock_that_leapt_back_while_nobody_saw_it_ends_like_any_other(turns, lease, beat, taken):
    """The long lease of an owner that lives is one that was asked for."""
    turns(0, (0.5, False), (14, False), (14, False), (14, taken), lease=lease, beat=beat)


def test_a_dead_worker_is_not_the_eldest_by_a_beat_of_before_the_clock_leapt_back(db):
    dead, living = (Worker.objects.create(cluster="", host="", pid=n) for n in (1, 2))
    for beat, eldest in (("- interval '1 second'", False), ("- interval '1 minute'", True), ("+ interval '1 hour'", True)):
        with connection.cursor() as cursor:
            cursor.execute(f"update worker set beat_at = clock_timestamp() {beat} where id = %s", [dead.pk])
            cursor.execute(ELDEST, [living.pk])
            assert cursor.fetchone() == (eldest,), beat


def test_a_process_that_was_stopped_does_not_take_its_own_loop_for_hanging(monkeypatch):
    monkeypatch.setattr(LeaseKeeper, "_end_when_nothing_turns", lambda self: None)
    time = SimpleNamespace(now=0.0, monotonic=lambda: time.now)
    monkeypatch.setattr(leases, "time", time)
    beats = [0.0]
    keeper = LeaseKeeper(1, LEASE, dict, lambda: beats[-1], lambda: None, tuple)

    def hangs(after: float) -> bool:
        time.now += after
        return keeper.hangs()

    assert not hangs(5) and not hangs(4) and hangs(2), "it turned, and the loop did not for a third of a lease"
    beats.append(time.now)
    assert not hangs(1000), "nothing turned"
    assert not hangs(1) and hangs(4.5), "it has been awake for a while, and the loop does still not turn"
