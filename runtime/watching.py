"""What a worker looks at while runs are in its hands: the clock, what others did to the runs, waits that are due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import psycopg
from django.conf import settings

from .clock import CLOCK_SQL
from .database import connect
from .doorbell import CHANNEL, MORE, STANDS_SECONDS
from .execution import Execution
from .journal import Refused, StaleClaim

if TYPE_CHECKING:
    from .worker import Worker

WATCH_SECONDS = 0.25
BEAT_SECONDS = 0.1
WAKES = "select run_id, token, wakes from dispatch where token = any(%s)"


class Watching:
    """`loop_beat`: monotonic time at which the event loop was last seen turning."""

    def __init__(self, worker: Worker):
        self.worker = worker
        self.loop_beat = time.monotonic()

    async def beat(self) -> None:
        """Show the lease keeper that the loop turns, whatever the database does."""
        while True:
            self.loop_beat = time.monotonic()
            await asyncio.sleep(BEAT_SECONDS)

    async def listen(self) -> None:
        """NOTIFY is a hint: it only makes the loops look earlier."""
        if settings.HOLDFAST_LISTEN_URL:
            connection = await psycopg.AsyncConnection.connect(
                settings.HOLDFAST_LISTEN_URL, autocommit=True, application_name="holdfast listener"
            )
        else:
            connection = await connect("holdfast listener")
        async with connection:
            await connection.execute(f"listen {CHANNEL}")
            self.worker.bell.set()
            async for notice in connection.notifies():
                if notice.payload == MORE:
                    asyncio.get_running_loop().call_later(STANDS_SECONDS, self._ring)
                elif notice.payload:
                    await self._look_at(int(notice.payload))
                self._ring()

    def _ring(self) -> None:
        self.worker.bell.set()
        self.worker.admission.ring()

    async def _look_at(self, run_id: int) -> None:
        for execution in list(self.worker.executions.values()):
            if execution.run.id == run_id:
                await self._refresh(execution)

    async def watch(self) -> None:
        """Keep the clock; see what happened to the runs that are held here; wake the waits that are due."""
        while True:
            self.worker.clock.set((await self.worker.query(CLOCK_SQL, []))[0][0])
            held = [execution for execution in self.worker.executions.values() if execution.settled_in()]
            if held:
                await self._compare(held)
            for execution in held:
                if rows := await execution.title_rows():
                    execution.add(*rows)
                if execution.parked:
                    await self._quietly(execution.resolve_due())
            await asyncio.sleep(WATCH_SECONDS)

    async def _compare(self, held: list[Execution]) -> None:
        rows = await self.worker.query(WAKES, [[execution.claim.token for execution in held]])
        wakes = {token: count for _, token, count in rows}
        for execution in held:
            token = execution.claim.token
            if token not in wakes:
                if not execution.task.done():
                    execution.lose()
            elif wakes[token] != execution.claim.wakes:
                await self._refresh(execution)

    async def _refresh(self, execution: Execution) -> None:
        await self._quietly(execution.refresh(), execution)

    async def _quietly(self, work: Awaitable[None], execution: Execution | None = None) -> None:
        try:
            await work
        except Refused:
            pass  # its own coroutines are told as well
        except StaleClaim:
            if execution is not None:
                execution.lose()
