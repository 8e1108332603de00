"""Letting queued runs in, and ending those that are older than their flow allows.

Whichever worker comes first does it: a flow's row in `flow_limit` is locked by the statement that hands out its slots
(`holdfast_admit`), and one statement ends what is too old. A worker that ends or releases a run of a flow with limits
looks at once; everything else, a cancel on a page or a worker's death, is seen within half a second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import psycopg

from .claiming import set_within
from .database import connect
from .doorbell import CHANNEL
from .faults import kind_of

if TYPE_CHECKING:
    from .worker import Worker

LOOK_SECONDS = 0.5
TOO_OLD = (
    "The run has gone on for longer than its flow allows (flow settings, longest run). A requeue gives it the same time"
    " once more."
)
# Flows with limits, and whether a run of theirs has no slot.
FLOWS = """
select workflow_id, waiting from flow_limit, lateral (
    select exists (select from dispatch where slot_of = workflow_id and queued) as waiting
) d where waiting or coalesce(at_most, per_key, per_minute) is not null
"""
ADMIT = "select holdfast_admit(%s)"
# End the runs whose time is over, wherever they stand; a requeue restores what they waited for.
END_OLD = """
with old as materialized (
    select run_id from dispatch where expires_at <= (select holdfast_now()) order by expires_at limit 50
    for no key update skip locked
), closed as (
    delete from dispatch d using old where d.run_id = old.run_id returning d.run_id
), waits as (
    update wait set state = 'suspended' from closed where wait.run_id = closed.run_id and wait.state = 'open'
), told as (
    insert into log_line (run_id, path, level, text, at)
    select run_id, '', 'error', %(message)s, holdfast_now() from closed
), followed as (
    insert into run_end (run_id, failure_flow)
    select run.id, coalesce(v.definition ->> 'on_failure', '')
    from closed join run on run.id = closed.run_id join version v on v.id = run.version_id
    where run.parent_id is not null or coalesce(v.definition ->> 'on_failure', '') <> ''
       or exists (select from trigger where type = 'ended' and enabled)
)
update run set state = 'failed', ended_at = holdfast_now(),
    error = jsonb_build_object('message', %(message)s::text, 'kind', %(kind)s::text)
from closed where run.id = closed.run_id and run.state in ('open', 'attention') returning run.id
"""
END_OLD_WITH = {"message": TOO_OLD, "kind": kind_of({"message": TOO_OLD})}


class Admission:
    """`flows`: ids of the flows with limits, as last seen."""

    def __init__(self, worker: Worker):
        self.worker = worker
        self.flows: set[int] = set()
        self._rung = asyncio.Event()

    def ring(self, flow: int | None = None) -> None:
        """A run of the flow, or of any, may have given its slot up or want one."""
        if self.flows if flow is None else flow in self.flows:
            self._rung.set()

    async def run(self) -> None:
        async with await connect("holdfast admission") as connection:
            while True:
                self._rung.clear()
                if not self.worker.stopping():
                    await self._let_in(connection)
                    await self._end_old(connection)
                await set_within(self._rung, LOOK_SECONDS)

    async def _let_in(self, connection: psycopg.AsyncConnection) -> None:
        rows = await (await connection.execute(FLOWS)).fetchall()
        self.flows = {flow for flow, _ in rows}
        admitted = 0
        for flow in (flow for flow, waiting in rows if waiting):
            admitted += (await (await connection.execute(ADMIT, [flow])).fetchone())[0]
        if admitted:
            await connection.execute("select pg_notify(%s, '')", [CHANNEL])

    async def _end_old(self, connection: psycopg.AsyncConnection) -> None:
        ended = await (await connection.execute(END_OLD, END_OLD_WITH)).fetchall()
        for (run_id,) in ended:  # whoever holds it stops
            await connection.execute("select pg_notify(%s, %s)", [CHANNEL, str(run_id)])
