"""Claiming runs, renewing leases, and taking back what dead workers held. One statement each, many runs at once."""

from __future__ import annotations

from typing import Any

import psycopg

from . import failpoints
from .execution import RunRow
from .journal import Claim

# Claim due runs, oldest first, leaving versions that this worker cannot run to others.
CLAIM = """
with due as materialized (
    select run_id from dispatch
    where token is null and due_at <= (select holdfast_now()) and lost = 0 and version_id <> all(%(unable)s)
    order by due_at limit %(limit)s for no key update skip locked
), claimed as (
    update dispatch d set state = 'claimed', token = nextval('claim_token'), worker_id = %(worker)s,
        leased_until = clock_timestamp() + make_interval(secs => %(lease)s), claims = claims + 1
    from due where d.run_id = due.run_id
    returning d.run_id, d.token, d.wakes, d.alone, d.claims, d.version_id
)
select c.token, c.wakes, c.alone, c.claims, c.version_id, r.id, r.workflow_id, r.input, r.title, r.test, r.created_at, r.started_at
from claimed c join run r on r.id = c.run_id
"""
# Runs whose last worker died holding them: few at a time, in the end alone, so that one culprit is found without
# punishing those that were beside it.
CLAIM_SUSPECTS = CLAIM.replace("and lost = 0", "and lost = %(lost)s").replace(
    "claims = claims + 1", "claims = claims + 1, alone = %(alone)s"
)
SUSPECTS = """
select min(lost) from dispatch
where lost > 0 and token is null and due_at <= (select holdfast_now()) and version_id <> all(%s)
"""
# Keep all that this worker holds, also what ran out while the database was away and nobody took: the token is the fence.
# By its own id, which no other process ever has; locked in the journal's order, or the two would lock each other out.
RENEW = """
with mine as materialized (
    select run_id from dispatch where worker_id = %(worker)s and token is not null
    order by run_id for no key update
)
update dispatch d set leased_until = clock_timestamp() + make_interval(secs => %(lease)s)
from mine where d.run_id = mine.run_id
"""
# Leases that ran out: ready again, and remembered as lost. Returns those that died alone too often.
TAKE_BACK = """
with expired as materialized (
    select run_id from dispatch where token is not null and leased_until < clock_timestamp()
    order by leased_until limit 500 for no key update skip locked
)
update dispatch d set state = 'ready', token = null, worker_id = null, leased_until = null,
    due_at = least(d.due_at, holdfast_now()), lost = d.lost + 1, deaths = d.deaths + d.alone::int, alone = false
from expired where d.run_id = expired.run_id
returning d.run_id, d.deaths
"""
# Claims of this worker that it knows nothing of: the reply to the claim was lost.
ORPHANS = """
update dispatch set state = 'ready', token = null, worker_id = null, leased_until = null, due_at = holdfast_now()
where worker_id = %s and token = any(%s)
"""
NEXT_DUE = """
select extract(epoch from min(due_at) - holdfast_now())::float8 from dispatch
where token is null and due_at is not null and version_id <> all(%s)
"""
# Whether this worker, the eldest that lives, has to run empty: a run that must be alone has waited for five seconds.
MAKES_ROOM = """
select exists (select from dispatch where lost >= %s and token is null and due_at < (select holdfast_now() - interval '5 seconds')
                                    and version_id <> all(%s))
   and not exists (select from worker where id < %s and ended_at is null and not stopping
                   and beat_at > clock_timestamp() - interval '5 seconds')
"""
LONE_DEATHS = 3
SUSPECT_BATCHES = (0, 32, 8, 1)
"""How many suspects are claimed at once, by how many leases were lost in a row."""

Claimed = tuple[Claim, int, int, RunRow]


async def claim(connection: psycopg.AsyncConnection, worker_id: int, limit: int, lease: float, unable: list[int]) -> list[Claimed]:
    """Claim at most `limit` due runs. Returns (claim, how often claimed before, version id, run) for each."""
    failpoints.hit("claim.before")
    parameters = {"worker": worker_id, "limit": limit, "lease": lease, "unable": unable}
    cursor = await connection.execute(CLAIM, parameters)
    rows = await cursor.fetchall()
    failpoints.hit("claim.after")
    return [_claimed(row) for row in rows]


async def claim_suspects(
    connection: psycopg.AsyncConnection, worker_id: int, limit: int, lease: float, unable: list[int], idle: bool
) -> list[Claimed]:
    """Claim runs that lost their worker. One that is to be claimed alone waits for a worker that holds nothing."""
    lost = (await (await connection.execute(SUSPECTS, [unable])).fetchone())[0]
    if lost is None:
        return []
    size = SUSPECT_BATCHES[min(lost, len(SUSPECT_BATCHES) - 1)]
    alone = size == 1
    if alone and not idle:
        return []
    parameters = {"worker": worker_id, "limit": min(size, limit), "lease": lease, "unable": unable, "lost": lost, "alone": alone}
    rows = await (await connection.execute(CLAIM_SUSPECTS, parameters)).fetchall()
    failpoints.hit("claim.after")
    return [_claimed(row) for row in rows]


async def makes_room(connection: psycopg.AsyncConnection, worker_id: int, unable: list[int]) -> bool:
    """Whether the worker shall claim nothing until it is idle, so that a run can be claimed alone."""
    rows = await (await connection.execute(MAKES_ROOM, [len(SUSPECT_BATCHES) - 1, unable, worker_id])).fetchall()
    return rows[0][0]


async def take_back(connection: psycopg.AsyncConnection) -> list[int]:
    """Make the runs of dead workers ready again. Returns those to quarantine: they killed their worker alone."""
    rows = await (await connection.execute(TAKE_BACK)).fetchall()
    return [run_id for run_id, deaths in rows if deaths >= LONE_DEATHS]


def _claimed(row: tuple[Any, ...]) -> Claimed:
    token, wakes, alone, claims, version_id, *run = row
    return Claim(run[0], token, wakes, alone), claims, version_id, RunRow(*run)
