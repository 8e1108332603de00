"""The claim loop of a worker: what is due is claimed, loaded, and set going; then it sleeps until there is more."""

from __future__ import annotations

import asyncio
import math
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
from django.conf import settings

from . import claims, failpoints
from .database import connect
from .execution import Execution
from .interpreter import advance
from .looks import Places
from .memory import Memory, load
from .pausing import PAUSED
from .plan import Plan
from .plans import Plans

if TYPE_CHECKING:
    from .worker import Worker

SUSPECTS_SECONDS = 1.0
PAUSE_SECONDS = 0.5


class Claiming:
    """`beginning` holds the claims whose memory is just being loaded, which may take a while: run by token. `broke_at` is the
    monotonic time at which the loop began, or began again: a claim before that may have been made, and nobody know of it."""

    def __init__(self, worker: Worker):
        self.worker = worker
        self.plans = Plans()
        self.beginning: dict[int, int] = {}
        self.broke_at = -math.inf
        self.places = Places()
        self.sleeps_until = worker.now()
        self._suspects_at = 0.0
        self.paused, self._pause_asked_at = False, -math.inf

    async def run(self) -> None:
        """Claim what is due while there are free slots; sleep until something becomes due or the doorbell rings."""
        self.broke_at = time.monotonic()
        async with await connect("holdfast claims") as connection:
            while not self.worker.stopping():
                if await self._all_paused(connection):
                    await asyncio.sleep(0.2)
                    continue
                free = self.worker.slots - len(self.worker.executions)
                self.worker.bell.clear()
                claimed = []
                if free:
                    claimed = await self._claim_some(connection, free)
                if claimed:
                    await self._begin(connection, claimed)
                    if len(claimed) == free:
                        await self._until_half_free()
                elif free:
                    await self._sleep(connection)
                else:
                    await self._until_one_is_free()
                    await self._until_half_free()

    async def _all_paused(self, connection: psycopg.AsyncConnection) -> bool:
        """Whether all work is paused, as it was half a second ago at most."""
        if time.monotonic() - self._pause_asked_at > PAUSE_SECONDS:
            self.paused = (await (await connection.execute(PAUSED)).fetchone())[0]
            self._pause_asked_at = time.monotonic()
        return self.paused

    async def _claim_some(self, connection: psycopg.AsyncConnection, free: int) -> list[claims.Claimed]:
        """What is due; and every second, or when nothing is, what lost its worker, so that neither keeps the other waiting."""
        with_these = (connection, self.worker.id, free, self.worker.lease_seconds, self.plans.unable)
        suspects_first = time.monotonic() - self._suspects_at > SUSPECTS_SECONDS
        if not suspects_first and (claimed := await claims.claim(*with_these, self.places)):
            return claimed
        self._suspects_at = time.monotonic()
        claimed = await claims.claim_suspects(*with_these)
        if suspects_first and not claimed:
            claimed = await claims.claim(*with_these, self.places)
        return claimed

    async def run_share(self, size: int, lost: int) -> None:
        """In a ward: claim once, and see it through."""
        async with await connect("holdfast claims") as connection:
            if not self.worker.executions and not self.worker.stopping():
                lease = self.worker.lease_seconds
                if claimed := await claims.claim_suspects(connection, self.worker.id, size, lease, [], lost):
                    await self._begin(connection, claimed)
        while self.worker.executions and not self.worker.stopping():
            self.worker.freed.clear()
            await set_within(self.worker.freed, 0.2)

    async def _until_one_is_free(self) -> None:
        while len(self.worker.executions) >= self.worker.slots and not self.worker.stopping():
            self.worker.freed.clear()
            await set_within(self.worker.freed, 0.2)

    async def _until_half_free(self) -> None:
        """Let slots that become free one after the other become free together: a claim for each would be a claim too many."""
        while len(self.worker.executions) > self.worker.slots // 2 and not self.worker.stopping():
            self.worker.freed.clear()
            if not await set_within(self.worker.freed, 0.02):
                return

    async def _sleep(self, connection: psycopg.AsyncConnection) -> None:
        """Until the next run is due. What is due and is claimed by others, such as a run for a ward, is worth no more
        than a look a second."""
        due = (await (await connection.execute(claims.NEXT_DUE, {"unable": self.plans.unable, **self.places.after()})).fetchone())[0]
        longest = settings.HOLDFAST_POLL_SECONDS
        if due is not None:
            longest = min(longest, max(due, 0.02) if due > -SUSPECTS_SECONDS else SUSPECTS_SECONDS)
        self.sleeps_until = self.worker.now() + timedelta(seconds=longest)
        deadline = time.monotonic() + longest
        while (left := deadline - time.monotonic()) > 0 and not self.worker.stopping():
            if await set_within(self.worker.bell, min(left, 0.2)):
                return

    async def _begin(self, connection: psycopg.AsyncConnection, claimed: list[claims.Claimed]) -> None:
        """Load what the claimed runs remember, and set each going."""
        self.beginning = {claim.token: claim.run_id for _, claim, *_ in claimed}
        try:
            await self._load_and_go(connection, claimed)
        finally:
            self.beginning = {}

    async def _load_and_go(self, connection: psycopg.AsyncConnection, claimed: list[claims.Claimed]) -> None:
        ready = []
        self.worker.clock.set(claimed[0][0])
        for _, claim, times, version_id, run in claimed:
            if times == 1:
                self.worker.claim_lag.take(max(0.0, (self.worker.now() - run.created_at).total_seconds()))
            plan = await self.plans.get(connection, version_id)
            if plan is None:
                self.worker.journal.add(claim, [("handback", (run.id, claim.token))])
            else:
                ready.append((claim, times, plan, run))
        memories = await self._memories(connection, [(run.id, plan) for _, times, plan, run in ready if times > 1])
        for claim, _, plan, run in ready:
            memory = memories.get(run.id) or Memory()
            for due_at in memory.over_since():
                failpoints.hit("wait.resolved")
                self.worker.wake_lateness.take(max(0.0, (self.worker.now() - due_at).total_seconds()))
            execution = Execution(claim, run, plan, memory, self.worker)
            self.worker.executions[claim.token] = execution
            self.worker.see_through(execution, advance(execution))

    async def _memories(self, connection: psycopg.AsyncConnection, runs: list[tuple[int, Plan]]) -> dict[int, Memory]:
        if not runs:
            return {}
        referenced = sorted({step for _, plan in runs for step in plan.referenced})
        always = sorted({step for _, plan in runs for step in plan.always})
        return await load(connection, [run_id for run_id, _ in runs], referenced, always)


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, at most so long. Returns whether it is set."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
