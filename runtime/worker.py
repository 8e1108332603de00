"""The worker process: one event loop that listens, claims, keeps hundreds of runs in flight, and commits.

Each duty is a loop of its own (`claiming`, `watching`, `housekeeping`, and two small ones here). What goes wrong in one with
the database is logged and tried again, so that a restart of Postgres is survived without anybody's help.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings

from . import credentials
from .admission import Admission
from .alerts import look
from .asking import ask_again
from .claiming import Claiming, set_within
from .clock import CLOCK_SQL, WorkerClock
from .database import connect
from .endings import follow_ends
from .execution import Execution
from .gauges import SECONDS, Histogram
from .housekeeping import Housekeeping
from .jobs import JOBS_LEFT, forget, work_off
from .journal import Journal, StaleClaim
from .leases import LeaseKeeper
from .net.pools import close as close_pools
from .outbox import send_due
from .retention import delete_batch, forget_mails, forget_signals
from .schedules import fire_due
from .shape import FORMAT
from .steps import step_types
from .wards import Wards
from .watching import Watching

log = logging.getLogger(__name__)

LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction, OSError)
LAST_WORDS_SECONDS = 2.0
"""How long the end of a worker waits for a database that is away. What it could not write is found by its leases' end."""
RETENTION_SECONDS = 60.0
FORGET_SECONDS = 3600.0
ALERT_SECONDS = 5.0

REGISTER = """
insert into worker (cluster, host, pid, code_version, formats, step_types, slots, started_at, beat_at, in_flight, finished, stopping)
values (%s, %s, %s, %s, %s, %s, %s, clock_timestamp(), clock_timestamp(), 0, 0, false)
returning id, extract(epoch from started_at)::float8
"""
# Processes that have been gone for a week.
FORGET = """
with gone as (delete from worker where beat_at < clock_timestamp() - interval '7 days' returning id)
delete from journal_mark using gone where worker_id = gone.id
"""


class Worker:
    """`stopping` is asked several times a second; once it is true nothing more is claimed. With a `share` it is a ward
    (`wards.py`), which sees that through and does nothing else. Make it before there is an event loop."""

    def __init__(self, stopping: Callable[[], bool], cluster: str = "", share: tuple[int, int] | None = None):
        self.stopping, self.cluster, self.share = stopping, cluster, share
        self.lease_seconds = settings.HOLDFAST_LEASE_SECONDS
        self.slots = settings.HOLDFAST_CONCURRENCY
        self.clock = WorkerClock()
        self.executions: dict[int, Execution] = {}
        self.finished = 0
        self.claim_lag, self.wake_lateness = Histogram(SECONDS), Histogram(SECONDS)
        self.bell = asyncio.Event()
        self.freed = asyncio.Event()
        self._reader: psycopg.AsyncConnection | None = None
        self._reading = asyncio.Lock()
        self._reading_since: float | None = None
        self.claiming, self.watching, self.housekeeping = Claiming(self), Watching(self), Housekeeping(self)
        self.admission = Admission(self)
        self.wards = None if share else Wards(self)

    # Its life

    async def run(self) -> None:
        """Work until told to stop; then finish or hand back what is in flight within the grace period."""
        _calm_garbage_collection()
        if not await self._registered():
            return
        self.journal = Journal(lambda: connect("holdfast journal"), self.id)
        keeper = LeaseKeeper(
            self.id, self.lease_seconds, self.held, lambda: self.watching.loop_beat, self._waits_since, self._figures
        )
        keeper.start()
        journal = asyncio.create_task(self.journal.run())
        journal.add_done_callback(_end_without_journal)
        duties = [asyncio.create_task(self._keep(duty)) for duty in self._duties()]
        try:
            await self._keep(self._claim)
            if self.wards:
                self.wards.stop()
            await self._drain()
        finally:
            for task in duties:
                task.cancel()
            await asyncio.gather(*duties, return_exceptions=True)
            journal.cancel()
            await asyncio.wait([journal], timeout=LAST_WORDS_SECONDS)
            await close_pools()
            keeper.stop()
            await self._sign_off()

    def _duties(self) -> list[Callable[[], Awaitable[None]]]:
        """What goes on beside the claiming, until the end."""
        own = [self.watching.beat, self.watching.watch]
        if self.wards is None:
            return own
        return [*own, self.watching.listen, self.housekeeping.run, self.admission.run, self.wards.run, self._post,
                self._fire, self._follow, self._ask_again, self._retire, self._work_off, self._alert]

    async def _claim(self) -> None:
        await (self.claiming.run_share(*self.share) if self.share else self.claiming.run())

    async def _registered(self) -> bool:
        """Whether it is known to the database now. Told to stop before, as while the database is away, it is not needed."""
        registering = asyncio.create_task(self._register())
        while not registering.done() and not self.stopping():
            await asyncio.wait([registering], timeout=0.2)
        if not registering.done():
            registering.cancel()
            return False
        self.id = registering.result()
        return True

    async def _register(self) -> int:
        (row,) = await self.query(REGISTER, [
            f"{self.cluster} (ward)" if self.share else self.cluster, socket.gethostname(), os.getpid(), code_version(),
            [FORMAT], list(step_types()), self.slots,
        ])
        worker_id, self.began_at = row
        await self.query(FORGET, [])
        await self.query("insert into journal_mark (worker_id, epoch, batch) values (%s, 0, 0)", [worker_id])
        self.clock.set((await self.query(CLOCK_SQL, []))[0][0])
        return worker_id

    async def _keep(self, duty: Callable[[], Awaitable[None]]) -> None:
        """Do a duty until it returns; when the database goes away, or anything else is wrong, begin it again."""
        while True:
            try:
                return await duty()
            except LOST as error:
                log.warning("%s: %s", duty.__qualname__, error)
            except Exception:
                log.exception("%s broke; it begins again", duty.__qualname__)
            if self.stopping():
                return
            await asyncio.sleep(0.5)

    async def _drain(self) -> None:
        """Let what is in flight end; what has not within the grace period is handed back."""
        deadline = time.monotonic() + settings.HOLDFAST_GRACE_SECONDS
        while self.executions and time.monotonic() < deadline:
            self.freed.clear()
            await set_within(self.freed, 0.2)
        left = list(self.executions.values())
        for execution in left:
            execution.leave()
        await asyncio.gather(*(execution.task for execution in left), return_exceptions=True)
        for execution in left:
            if not execution.claim.lost:
                self.journal.add(execution.claim, [("handback", (execution.run.id, execution.claim.token))])
        await asyncio.wait([asyncio.create_task(self.journal.flush())], timeout=LAST_WORDS_SECONDS)

    async def _sign_off(self) -> None:
        try:
            async with asyncio.timeout(2):
                await self.query(
                    "update worker set ended_at = clock_timestamp(), stopping = true, in_flight = 0, finished = %s where id = %s",
                    [self.finished, self.id],
                )
                await self._reader.close()
        except TimeoutError:
            log.warning("the database is away; not signed off")

    def _figures(self) -> tuple[int, int, bool, str, str]:
        counted = json.dumps(self.counted())
        return len(self.executions), self.finished, self.stopping(), self.claiming.plans.reasons, counted

    def counted(self) -> dict[str, Any]:
        """Since its start: histograms as `gauges` tells them, and a number."""
        return {
            "claim_lag": self.claim_lag.told(),
            "wake_lateness": self.wake_lateness.told(),
            "journal_rows": self.journal.batch_rows.told(),
            "journal_flush": self.journal.flush_seconds.told(),
            "taken_back": self.housekeeping.taken_back,
        }

    def held(self) -> dict[int, int]:
        """The runs in its hands, by the tokens of their claims; with those whose memory is just being loaded. May be asked by
        another thread."""
        beginning = self.claiming.beginning  # first: what has begun meanwhile is among the others then
        return beginning | {execution.claim.token: execution.claim.run_id for execution in list(self.executions.values())}

    # What it lends to its runs (`execution.Services`)

    def now(self) -> datetime:
        return self.clock.now()

    async def query(self, sql: str, parameters: Any) -> list[tuple]:
        """One statement on the reading connection. While the database is away it waits, as the run does."""
        async with self._reading:
            return await self._read(lambda reader: _rows(reader, sql, parameters))

    async def connection(self, team_id: int, name: str) -> Any:
        async with self._reading:
            return await self._read(lambda reader: credentials.load(reader, team_id, name))

    async def _read(self, read: Callable[[psycopg.AsyncConnection], Awaitable[Any]]) -> Any:
        while True:
            try:
                if self._reader is None or self._reader.closed:
                    self._reader = await connect("holdfast reader")
                self._reading_since = time.monotonic()
                return await read(self._reader)
            except LOST as error:
                log.warning("reader: %s", error)
                if self._reader is not None:
                    await self._reader.close()
                await asyncio.sleep(0.5)
            finally:
                self._reading_since = None

    def _waits_since(self) -> float | None:
        """The monotonic time since which the journal or the reader waits for an answer of the database."""
        return min(filter(None, (self.journal.busy_since, self._reading_since)), default=None)

    def ended(self, execution: Execution, task: asyncio.Task) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("run %s: the interpreter broke", execution.run.id, exc_info=error, extra={"run": execution.run.id})
            self.see_through(execution, self._give_up(execution, error))
            return
        self.executions.pop(execution.claim.token, None)
        self.finished += 1
        self.freed.set()
        self.admission.ring(execution.run.workflow_id)
        if execution.due_at is not None and execution.due_at < self.claiming.sleeps_until:
            self.bell.set()

    def see_through(self, execution: Execution, work: Coroutine[Any, Any, None]) -> None:
        execution.task = asyncio.create_task(work)
        execution.task.add_done_callback(lambda task: self.ended(execution, task))

    async def _give_up(self, execution: Execution, error: BaseException) -> None:
        """End a run that the interpreter failed with. One whose end the database refuses is left to a person: handed back or let
        go, it would be refused wherever it goes, and count as one that kills its workers."""
        for rows_of in (execution.broken_rows, execution.parked_rows):
            execution.claim.refused = None
            try:
                await self.journal.commit(execution.claim, rows_of(error))
                return
            except StaleClaim:
                return
            except Exception as refused:
                error = refused
                log.error("run %s cannot be ended: %s", execution.run.id, refused, extra={"run": execution.run.id})

    # Smaller duties

    async def _post(self) -> None:
        """Send what the outbox holds."""
        async with await connect("holdfast outbox") as connection:
            while True:
                if not await send_due(connection, self.id):
                    await asyncio.sleep(0.5)

    async def _work_off(self) -> None:
        """Do what people asked for many runs at once; in a thread, for acts are plain Django."""
        forgotten = -math.inf
        while True:
            if time.monotonic() - forgotten > FORGET_SECONDS:
                forgotten = time.monotonic()
                await asyncio.to_thread(forget)
            if self.stopping() or not (await self.query(JOBS_LEFT, []))[0][0] or not await asyncio.to_thread(work_off, self.stopping):
                await asyncio.sleep(1)

    async def _alert(self) -> None:
        """Look at the alert rules, if there are any."""
        while True:
            if not self.stopping() and (await self.query("select exists (select from alert)", []))[0][0]:
                await asyncio.to_thread(look)
            await asyncio.sleep(ALERT_SECONDS)

    async def _fire(self) -> None:
        """Start scheduled runs."""
        async with await connect("holdfast schedules") as connection:
            while True:
                if not self.stopping():
                    await fire_due(connection)
                await asyncio.sleep(1)

    async def _follow(self) -> None:
        """Do what follows the end of runs."""
        async with await connect("holdfast ends") as connection:
            while True:
                if self.stopping() or not await follow_ends(connection):
                    await asyncio.sleep(0.3)

    async def _ask_again(self) -> None:
        """Remind of approvals that nobody answers, and ask others."""
        async with await connect("holdfast approvals") as connection:
            while True:
                if not self.stopping():
                    await ask_again(connection)
                await asyncio.sleep(1)

    async def _retire(self) -> None:
        """Delete runs that ended long ago: a batch a second while there are any, else a look now and then, also for signals
        and mails that were kept long enough."""
        while True:
            async with await connect("holdfast retention") as connection:
                await forget_signals(connection)
                await forget_mails(connection)
                while not self.stopping() and (await delete_batch(connection)).deleted:
                    await asyncio.sleep(1)
            await asyncio.sleep(RETENTION_SECONDS)


async def _rows(reader: psycopg.AsyncConnection, sql: str, parameters: Any) -> list[tuple]:
    cursor = await reader.execute(sql, parameters)
    return await cursor.fetchall() if cursor.description else []


def _end_without_journal(journal: asyncio.Task) -> None:
    """Nothing can be made durable any more: end, and let the supervisor start a sound process."""
    if not journal.cancelled() and (error := journal.exception()):
        log.critical("the journal broke; this worker ends", exc_info=error)
        os._exit(72)


def _calm_garbage_collection() -> None:
    """What was imported stays; and hundreds of runs in flight are no garbage to be looked through every 700 objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def code_version() -> str:
    """What this process runs, for people who compare workers."""
    return os.environ.get("HOLDFAST_CODE_VERSION", "")
