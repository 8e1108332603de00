"""Keeping order among runs that nobody advances: what dead workers held is taken back, what kills its workers is quarantined, and
what no worker can run is told of."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING

import psycopg

from . import claims
from .database import connect
from .looks import Pace
from .quarantine import KILLER

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger(__name__)

# Runs that have been due for five minutes while no live worker can run their version: say why. Each worker tells in its row
# what it cannot run; one that has not tried yet is not counted out.
STUCK_VERSIONS = """
with live as materialized (
    select unable from worker where ended_at is null and not stopping and beat_at > clock_timestamp() - interval '15 seconds'
), lost as materialized (
    select key::bigint as version_id, min(value) as why from live, jsonb_each_text(unable)
    group by key having count(*) = (select count(*) from live)
), lacking as materialized (
    select d.run_id, lost.why from lost cross join lateral (
        select run_id from dispatch join run on run.id = run_id and run.state = 'open'
        where dispatch.version_id = lost.version_id and token is null and not queued
          and due_at < (select holdfast_now() - interval '5 minutes')
        order by due_at limit 20
    ) d
), told as (
    insert into log_line (run_id, path, level, text, at)
    select run.id, '', 'error', 'No worker can run this version. ' || why || ' The run goes on as soon as one can.', holdfast_now()
    from lacking join run on run.id = lacking.run_id where run.state = 'open'
)
update run set state = 'attention', error = jsonb_build_object('message', 'No worker can run this version. ' || why, 'unable', true)
from lacking where run.id = lacking.run_id and run.state = 'open'
"""
# Those of them that somebody runs again: a worker came that can.
ABLE_AGAIN = """
update run set state = 'open', error = null from dispatch d
where run.state = 'attention' and run.error @> '{"unable": true}' and d.run_id = run.id
  and (d.token is not null or d.due_at is null or d.due_at > (select holdfast_now() - interval '5 minutes'))
  and not exists (select from wait w where w.run_id = run.id and w.kind = 'person' and w.state = 'open')
"""
TURN_SECONDS = 1.0
LOCKED_SECONDS = 5.0
"""For so long a lease that ran out may have been passed over because its row was locked."""
STUCK_SECONDS = 5.0


class Housekeeping:
    """Takes back what dead workers held, quarantines what killed them, and frees claims that nobody knows of."""

    def __init__(self, worker: Worker):
        self.worker = worker
        self._unknown: set[int] = set()
        self._last_turn: float | None = None
        self._soonest = self._since = -math.inf
        self._pace = Pace()
        self._stuck_at = 0.0
        self.taken_back = 0

    async def run(self) -> None:
        async with await connect("holdfast housekeeping") as connection:
            while True:
                await self.take_back(connection)
                await self._tell_of_stuck_versions(connection)
                await self._free_orphans(connection)
                await asyncio.sleep(TURN_SECONDS)

    async def take_back(self, connection: psycopg.AsyncConnection) -> None:
        """A lease that ran out is no sign of death after a time in which nobody could renew: the database was away, the
        machine slept, its clock leapt. An owner that lives has at least half a lease left at any moment, so one turn may
        come so long after the other. When it comes later, owners get as long to renew, and if that happens again, anew."""
        half = max(self.worker.lease_seconds / 2, 2 * TURN_SECONDS)
        last = self.worker.began_at if self._last_turn is None else self._last_turn
        since, began = -math.inf if self._pace.whole() else self._since, time.monotonic()
        async with connection.transaction():
            now, all_seen, taken, killers = await claims.take_back(
                connection, self.worker.lease_seconds, self._soonest, last + half, since
            )
            if since == -math.inf:
                self._pace.took(time.monotonic() - began, taken)
            if all_seen:
                self._since = now - LOCKED_SECONDS
            self.taken_back += taken
            for run_id in killers:
                words = "run %s killed its worker %s times while alone: quarantined"
                log.error(words, run_id, claims.LONE_DEATHS, extra={"run": run_id})
                await connection.execute(KILLER, [run_id])
        if not last <= now <= last + half:
            self._soonest = now + self.worker.lease_seconds / 2
        if now < last or self._last_turn is None:
            await connection.execute(claims.SHORTEN, {"lease": self.worker.lease_seconds, "seen": now < last})
        self._last_turn = now

    async def _tell_of_stuck_versions(self, connection: psycopg.AsyncConnection) -> None:
        if time.monotonic() - self._stuck_at >= STUCK_SECONDS:
            self._stuck_at = time.monotonic()
            await connection.execute(ABLE_AGAIN)
            await connection.execute(STUCK_VERSIONS)

    async def _free_orphans(self, connection: psycopg.AsyncConnection) -> None:
        """Claims whose reply was lost. Only rows that were unknown a second ago as well: a claim may be on its way. One that is
        not found within a lease after its loop broke, and that nobody renews, is taken back."""
        if time.monotonic() - self.worker.claiming.broke_at > self.worker.lease_seconds:
            return
        held = [self.worker.id, list(self.worker.held())]
        rows = await (await connection.execute(claims.UNKNOWN, held)).fetchall()
        unknown = {token for (token,) in rows}
        if lost := (unknown & self._unknown) - self.worker.held().keys():
            log.warning("%s claims are held by nobody here and are given back", len(lost))
            await connection.execute(claims.ORPHANS, [self.worker.id, list(lost)])
        self._unknown = unknown
