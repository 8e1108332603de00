"""Claiming runs, renewing leases, and taking back what dead workers held. One statement each, many runs at once."""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import Any

import psycopg

from . import failpoints
from .database import LET_GO
from .execution import RunRow
from .journal import Claim
from .looks import WHOLE, Places
from .slots import HIGHEST

# Claim due runs (`sql/claims.sql`): those that lost no worker, for any; or those that did, in a row, so many times.
CLAIM = """
select * from holdfast_claim(%(worker)s, %(limit)s, %(lease)s, %(unable)s, %(least)s, %(most)s, %(alone)s,
                             %(after_due)s::timestamptz[], %(after_run)s::bigint[])
"""
LOST_NONE = {"least": 0, "most": 0, "alone": False, **WHOLE}
# How many wait for a ward, by how many leases they lost in a row, up to so many.
SUSPECTS = """
select least(lost, %s) as leases, count(*) from dispatch
where lost > 1 and token is null and not queued and due_at <= (select holdfast_now()) and version_id <> all(%s)
group by leases
"""
# Whether no other worker that lives has been there longer. A beat that is still to come is one of before the clock leapt back.
ELDEST = """
select not exists (select from worker where id < %s and ended_at is null and not stopping and cluster not like '%%(ward)'
                   and beat_at between clock_timestamp() - interval '5 seconds' and clock_timestamp() + interval '5 seconds')
"""
# Keep all that this worker holds, also what ran out while the database was away and nobody took: the token is the fence.
# By their numbers and its own id, which no other process ever has; locked in the journal's order, or the two would lock each
# other out.
RENEW = """
with mine as materialized (
    select run_id from dispatch where run_id = any(%(runs)s) and worker_id = %(worker)s and token is not null
    order by run_id for no key update
)
update dispatch d set leased_until = clock_timestamp() + make_interval(secs => %(lease)s)
from mine where d.run_id = mine.run_id
"""
# Leases that ran out: ready again, and remembered as lost. Nothing is taken when the statement comes sooner than `soonest`,
# later than `latest`, or within half a lease of the server's start: what ran out then is no sign of death. A start that is still
# to come is one by a clock that leapt back since. One look at the clock counts for all of it, for the machine may sleep at any
# moment. Gives that time, and what was taken. It begins at leases that ran out `since` then (`looks.py`).
MOST_TAKEN = 500
TAKE_BACK = f"""
with now as materialized (
    select at, extract(epoch from at)::float8 as seconds,
           extract(epoch from at)::float8 between %(soonest)s and %(latest)s
           and at not between pg_postmaster_start_time() and pg_postmaster_start_time() + make_interval(secs => %(half)s) as looked
    from clock_timestamp() as look(at)
), expired as materialized (
    select run_id from dispatch
    where token is not null and leased_until < (select at from now) and leased_until >= to_timestamp(%(since)s)
      and (select looked from now)
    order by leased_until limit {MOST_TAKEN} for no key update skip locked
), taken as (
    update dispatch d set state = 'ready', token = null, worker_id = null, leased_until = null,
        due_at = least(d.due_at, holdfast_now()), lost = d.lost + 1, deaths = d.deaths + d.alone::int, alone = false
    from expired where d.run_id = expired.run_id
    returning d.run_id, d.deaths, {LET_GO}
)
select seconds, run_id, deaths, looked from now left join taken on true
"""
# After the database's clock leapt back: whoever beat by the clock before would live, and what was leased by it be held, for as
# long as it leapt. Who lives beats within a second, and renews in time. When nobody saw the clock leap, a beat that is still to come
# tells of it.
SHORTEN = """
with unheard as (
    update worker set beat_at = clock_timestamp() where beat_at > clock_timestamp() + interval '5 seconds' returning id
), far as materialized (
    select run_id from dispatch
    where token is not null and leased_until > clock_timestamp() + make_interval(secs => 2 * %(lease)s)
      and (%(seen)s or worker_id in (select id from unheard))
    order by run_id for no key update skip locked
)
update dispatch d set leased_until = clock_timestamp() + make_interval(secs => %(lease)s) from far where d.run_id = far.run_id
"""
# Claims of this worker that it knows nothing of: the reply to the claim was lost. Looked for among the claimed rows alone, by
# their index, and only after a claim that broke: the index keeps what is claimed no more while a snapshot is held elsewhere.
UNKNOWN = "select token from dispatch where token is not null and worker_id = %s and token <> all(%s)"
ORPHANS = """
update dispatch set state = 'ready', token = null, worker_id = null, leased_until = null, due_at = holdfast_now()
where worker_id = %s and token = any(%s)
"""
NEXT_DUE = f"""
select extract(epoch from min(d.due_at) - holdfast_now())::float8
from generate_series({HIGHEST}, -{HIGHEST}, -1) as level cross join lateral (
    select due_at from dispatch
    where priority = level and token is null and due_at is not null and not queued and version_id <> all(%(unable)s)
      and (due_at, run_id) > (coalesce((%(after_due)s::timestamptz[])[level + {HIGHEST + 1}], '-infinity'),
                              coalesce((%(after_run)s::bigint[])[level + {HIGHEST + 1}], 0))
    order by due_at, run_id limit 1
) d
"""
LONE_DEATHS = 3
LONE_FROM = 3
"""Being alone counts from so many lost leases on: a kill or two from outside are nobody's fault."""
MOST_LOST = 5
"""Runs that lost more leases in a row are treated like those that lost so many."""
SUSPECTS_AT_ONCE = 32

Claimed = tuple[datetime, Claim, int, int, RunRow]


async def claim(
    connection: psycopg.AsyncConnection, worker_id: int, limit: int, lease: float, unable: list[int], places: Places
) -> list[Claimed]:
    """Claim at most `limit` due runs. Returns (the time, claim, how often claimed by now, version id, run) for each."""
    failpoints.hit("claim.before")
    after, began = places.after(), time.monotonic()
    parameters = {"worker": worker_id, "limit": limit, "lease": lease, "unable": unable, **LOST_NONE, **after}
    rows = await (await connection.execute(CLAIM, parameters)).fetchall()
    if after is WHOLE:
        places.pace.took(time.monotonic() - began, len(rows))
    places.come_to(row[5:8] for row in rows)
    failpoints.hit("claim.after")
    return [_claimed(row, handed_back=True) for row in rows]


async def claim_suspects(
    connection: psycopg.AsyncConnection, worker_id: int, limit: int, lease: float, unable: list[int], lost: int = 1
) -> list[Claimed]:
    """Claim runs whose last workers died, so many in a row."""
    parameters = {"worker": worker_id, "limit": min(limit, SUSPECTS_AT_ONCE) if lost == 1 else limit, "lease": lease,
                  "unable": unable, "least": lost, "most": 32_767 if lost == MOST_LOST else lost,
                  "alone": limit == 1 and lost >= LONE_FROM, **WHOLE}
    rows = await (await connection.execute(CLAIM, parameters)).fetchall()
    failpoints.hit("claim.after")
    return [_claimed(row, handed_back=False) for row in rows]


async def take_back(
    connection: psycopg.AsyncConnection, lease: float, soonest: float = -math.inf, latest: float = math.inf, since: float = -math.inf
) -> tuple[float, bool, int, list[int]]:
    """Make the runs of dead workers ready again, if the database's clock (seconds) is between `soonest` and `latest`, and
    their leases ran out `since` then. Returns its time, whether it looked for all of them, how many there were, and which of
    them to quarantine: they killed their worker alone."""
    parameters = {"half": lease / 2, "soonest": soonest, "latest": latest, "since": since}
    rows = await (await connection.execute(TAKE_BACK, parameters)).fetchall()
    taken = [(run_id, deaths) for _, run_id, deaths, _ in rows if run_id is not None]
    now, *_, looked = rows[0]
    return now, looked and len(taken) < MOST_TAKEN, len(taken), [run_id for run_id, deaths in taken if deaths >= LONE_DEATHS]


def _claimed(row: tuple[Any, ...], handed_back: bool) -> Claimed:
    now, token, wakes, claims, version_id, _, _, *run = row
    return now, Claim(run[0], token, wakes, handed_back), claims, version_id, RunRow(*run)
