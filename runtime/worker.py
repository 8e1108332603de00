"""The worker process: one event loop that listens, claims, keeps hundreds of runs in flight, and commits.

Each duty is a loop of its own here; what goes wrong in one with the database is logged and tried again, so that a restart
of Postgres is survived without anybody's help.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import psycopg
from django.conf import settings

from . import claims, credentials
from .clock import CLOCK_SQL, WorkerClock
from .database import connect
from .definition import FORMAT
from .doorbell import CHANNEL
from .execution import Execution
from .housekeeping import QUARANTINE, STUCK_VERSIONS
from .interpreter import advance
from .journal import Journal, Refused, StaleClaim
from .leases import LeaseKeeper
from .memory import Memory, load
from .net.pools import close as close_pools
from .outbox import send_due
from .plan import Plan, make_plan
from .schedules import fire_due
from .steps import step_types

log = logging.getLogger(__name__)

LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.ReadOnlySqlTransaction, OSError)
WATCH_SECONDS = 0.25
BEAT_SECONDS = 0.1
SUSPECTS_SECONDS = 1.0
LAST_WORDS_SECONDS = 2.0
"""How long the end of a worker waits for a database that is away. What it could not write is found by its leases' end."""
MOST_PLANS = 500
ROOM_SECONDS = 60.0

REGISTER = """
insert into worker (cluster, host, pid, code_version, formats, step_types, slots, started_at, beat_at, in_flight, finished, stopping)
values (%s, %s, %s, %s, %s, %s, %s, clock_timestamp(), clock_timestamp(), 0, 0, false) returning id
"""
# Processes that have been gone for a week.
FORGET = """
with gone as (delete from worker where beat_at < clock_timestamp() - interval '7 days' returning id)
delete from journal_mark using gone where worker_id = gone.id
"""
VERSION = """
select v.definition, v.number, w.id, w.name, w.team_id from version v join workflow w on w.id = v.workflow_id where v.id = %s
"""
WAKES = "select run_id, token, wakes from dispatch where token = any(%s)"


class Worker:
    """`stopping` is asked several times a second; once it is true nothing more is claimed."""

    def __init__(self, stopping: Callable[[], bool], cluster: str = ""):
        self.stopping, self.cluster = stopping, cluster
        self.lease_seconds = settings.HOLDFAST_LEASE_SECONDS
        self.slots = settings.HOLDFAST_CONCURRENCY
        self.clock = WorkerClock()
        self.executions: dict[int, Execution] = {}
        self.plans: dict[int, Plan] = {}
        self.unable: list[int] = []
        self.finished = 0
        self._bell = asyncio.Event()
        self._freed = asyncio.Event()
        self._reader: psycopg.AsyncConnection | None = None
        self._reading = asyncio.Lock()
        self._loop_beat = time.monotonic()
        self._suspects_at = 0.0
        self._makes_room = False
        self._makes_room_until = 0.0
        self._kept_house = False
        self._unknown: set[int] = set()
        self._beginning: set[int] = set()
        self._sleeps_until = self.now()

    # Its life

    async def run(self) -> None:
        """Work until told to stop; then finish or hand back what is in flight within the grace period."""
        _calm_garbage_collection()
        self.id = await self._register()
        self.journal = Journal(lambda: connect("holdfast journal"), self.id)
        keeper = LeaseKeeper(self.id, self.lease_seconds, lambda: self._loop_beat, self._figures)
        keeper.start()
        journal = asyncio.create_task(self.journal.run())
        journal.add_done_callback(_end_without_journal)
        duties = [asyncio.create_task(self._keep(duty)) for duty in
                  (self._beat, self._listen, self._watch, self._housekeep, self._post, self._fire)]
        try:
            await self._keep(self._claim)
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

    async def _register(self) -> int:
        rows = await self.query(REGISTER, [
            self.cluster, socket.gethostname(), os.getpid(), code_version(), [FORMAT], list(step_types()), self.slots,
        ])
        await self.query(FORGET, [])
        await self.query("insert into journal_mark (worker_id, epoch, batch) values (%s, 0, 0)", [rows[0][0]])
        self.clock.set((await self.query(CLOCK_SQL, []))[0][0])
        return rows[0][0]

    async def _keep(self, duty: Callable[[], Awaitable[None]]) -> None:
        """Do a duty until it returns; when the database goes away, or anything else is wrong, begin it again."""
        while True:
            try:
                return await duty()
            except LOST as error:
                log.warning("%s: %s", duty.__name__.strip("_"), error)
            except Exception:
                log.exception("%s broke; it begins again", duty.__name__.strip("_"))
            if self.stopping():
                return
            await asyncio.sleep(0.5)

    async def _drain(self) -> None:
        """Let what is in flight end; what has not within the grace period is handed back."""
        deadline = time.monotonic() + settings.HOLDFAST_GRACE_SECONDS
        while self.executions and time.monotonic() < deadline:
            self._freed.clear()
            try:
                await asyncio.wait_for(self._freed.wait(), 0.2)
            except TimeoutError:
                pass
        left = list(self.executions.values())
        for execution in left:
            execution.task.cancel()
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

    def _figures(self) -> tuple[int, int, bool]:
        return len(self.executions), self.finished, self.stopping()

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
                return await read(self._reader)
            except LOST as error:
                log.warning("reader: %s", error)
                if self._reader is not None:
                    await self._reader.close()
                await asyncio.sleep(0.5)

    # Claiming

    async def _claim(self) -> None:
        """Claim what is due while there are free slots; sleep until something becomes due or the doorbell rings."""
        async with await connect("holdfast claims") as connection:
            while not self.stopping():
                free = self.slots - len(self.executions)
                self._bell.clear()
                claimed = []
                if free and not self._alone():
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

    async def _claim_some(self, connection: psycopg.AsyncConnection, free: int) -> list[claims.Claimed]:
        """What is due; and every second, or when nothing is, what lost its worker, so that neither keeps the other waiting."""
        with_these = (connection, self.id, free, self.lease_seconds, self.unable)
        suspects_first = self._makes_room or time.monotonic() - self._suspects_at > SUSPECTS_SECONDS
        if not suspects_first and (claimed := await claims.claim(*with_these)):
            return claimed
        self._suspects_at = time.monotonic()
        claimed = await claims.claim_suspects(*with_these, idle=not self.executions)
        self._makes_room = not claimed and await self._shall_make_room(connection)
        if suspects_first and not claimed and not self._makes_room:
            claimed = await claims.claim(*with_these)
        return claimed

    async def _shall_make_room(self, connection: psycopg.AsyncConnection) -> bool:
        """Whether to run empty for a run that has to be alone: for a minute, then not for a minute, lest one long call
        keeps everybody waiting."""
        now = time.monotonic()
        if now > self._makes_room_until + ROOM_SECONDS:
            self._makes_room_until = now + ROOM_SECONDS
        return now < self._makes_room_until and await claims.makes_room(connection, self.id, self.unable)

    def _alone(self) -> bool:
        """Whether this worker holds a run that it claimed alone, because of what happened to its last workers."""
        return any(execution.claim.alone for execution in self.executions.values())

    async def _until_one_is_free(self) -> None:
        while len(self.executions) >= self.slots and not self.stopping():
            self._freed.clear()
            try:
                await asyncio.wait_for(self._freed.wait(), 0.2)
            except TimeoutError:
                pass

    async def _until_half_free(self) -> None:
        """Let slots that become free one after the other become free together: a claim for each would be a claim too many."""
        while len(self.executions) > self.slots // 2 and not self.stopping():
            self._freed.clear()
            try:
                await asyncio.wait_for(self._freed.wait(), 0.02)
            except TimeoutError:
                return

    async def _sleep(self, connection: psycopg.AsyncConnection) -> None:
        """Until the next run is due. What was due and could not be claimed, such as a run that has to be alone, is worth
        no more than a look a second."""
        due = (await (await connection.execute(claims.NEXT_DUE, [self.unable])).fetchone())[0]
        longest = settings.HOLDFAST_POLL_SECONDS
        if due is not None:
            longest = min(longest, max(due, 0.02) if due > -SUSPECTS_SECONDS else SUSPECTS_SECONDS)
        self._sleeps_until = self.now() + timedelta(seconds=longest)
        deadline = time.monotonic() + longest
        while (left := deadline - time.monotonic()) > 0 and not self.stopping():
            try:
                await asyncio.wait_for(self._bell.wait(), min(left, 0.2))
                return
            except TimeoutError:
                pass

    async def _begin(self, connection: psycopg.AsyncConnection, claimed: list[claims.Claimed]) -> None:
        """Load what the claimed runs remember, and set each going."""
        self._beginning = {claim.token for claim, *_ in claimed}
        try:
            await self._load_and_go(connection, claimed)
        finally:
            self._beginning = set()

    async def _load_and_go(self, connection: psycopg.AsyncConnection, claimed: list[claims.Claimed]) -> None:
        ready = []
        for claim, times, version_id, run in claimed:
            plan = await self._plan(connection, version_id)
            if plan is None:
                self.journal.add(claim, [("handback", (run.id, claim.token))])
            else:
                ready.append((claim, times, plan, run))
        memories = await self._memories(connection, [(run.id, plan) for _, times, plan, run in ready if times > 1])
        for claim, _, plan, run in ready:
            execution = Execution(claim, run, plan, memories.get(run.id) or Memory(), self)
            self.executions[claim.token] = execution
            execution.task = asyncio.create_task(advance(execution))
            execution.task.add_done_callback(lambda task, execution=execution: self._ended(execution, task))

    async def _memories(self, connection: psycopg.AsyncConnection, runs: list[tuple[int, Plan]]) -> dict[int, Memory]:
        if not runs:
            return {}
        referenced = sorted({step for _, plan in runs for step in plan.referenced})
        always = sorted({step for _, plan in runs for step in plan.always})
        return await load(connection, [run_id for run_id, _ in runs], referenced, always)

    async def _plan(self, connection: psycopg.AsyncConnection, version_id: int) -> Plan | None:
        """The version made ready; None when this worker lacks something that it needs."""
        plan = self.plans.get(version_id)
        if plan is None and version_id not in self.unable:
            row = await (await connection.execute(VERSION, [version_id])).fetchone()
            try:
                definition, number, workflow_id, name, team_id = row
                if len(self.plans) >= MOST_PLANS:  # each test of a draft is a version of its own
                    self.plans.pop(next(iter(self.plans)))
                plan = self.plans[version_id] = make_plan(
                    definition, version_id=version_id, number=number, workflow_id=workflow_id, workflow_name=name, team_id=team_id
                )
            except Exception as wrong:
                log.error("version %s cannot be run here and is left to other workers: %r", version_id, wrong)
                self.unable.append(version_id)
        return plan

    def _ended(self, execution: Execution, task: asyncio.Task) -> None:
        self.executions.pop(execution.claim.token, None)
        self.finished += 1
        self._freed.set()
        if execution.due_at is not None and execution.due_at < self._sleeps_until:
            self._bell.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("run %s: the interpreter broke", execution.run.id, exc_info=error)
            execution.claim.refused = None
            self.journal.add(execution.claim, execution.broken_rows(error))

    # Watching what it holds

    async def _beat(self) -> None:
        """Show the lease keeper that the loop turns, whatever the database does."""
        while True:
            self._loop_beat = time.monotonic()
            await asyncio.sleep(BEAT_SECONDS)

    async def _listen(self) -> None:
        """NOTIFY is a hint: it only makes the loops look earlier."""
        if settings.HOLDFAST_LISTEN_URL:
            connection = await psycopg.AsyncConnection.connect(settings.HOLDFAST_LISTEN_URL, autocommit=True)
        else:
            connection = await connect("holdfast listener")
        async with connection:
            await connection.execute(f"listen {CHANNEL}")
            self._bell.set()
            async for notice in connection.notifies():
                if notice.payload:
                    await self._look_at(int(notice.payload))
                self._bell.set()

    async def _look_at(self, run_id: int) -> None:
        for execution in list(self.executions.values()):
            if execution.run.id == run_id:
                await self._refresh(execution)

    async def _watch(self) -> None:
        """Keep the clock; see what happened to the runs that are held here; wake the waits that are due."""
        while True:
            self.clock.set((await self.query(CLOCK_SQL, []))[0][0])
            held = [execution for execution in self.executions.values() if execution.settled_in()]
            if held:
                await self._compare(held)
            for execution in held:
                if rows := execution.title_rows():
                    execution.add(*rows)
                if execution.parked:
                    await self._quietly(execution.resolve_due())
            await asyncio.sleep(WATCH_SECONDS)

    async def _compare(self, held: list[Execution]) -> None:
        rows = await self.query(WAKES, [[execution.claim.token for execution in held]])
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

    # Keeping house

    async def _housekeep(self) -> None:
        async with await connect("holdfast housekeeping") as connection:
            if self._kept_house:  # the database was away: those who held runs renew their leases first
                await asyncio.sleep(self.lease_seconds / 2)
            self._kept_house = True
            while True:
                for run_id in await claims.take_back(connection):
                    log.error("run %s killed its worker %s times while alone: quarantined", run_id, claims.LONE_DEATHS)
                    await connection.execute(QUARANTINE, [run_id])
                await connection.execute(STUCK_VERSIONS)
                await self._free_orphans(connection)
                await asyncio.sleep(1)

    async def _free_orphans(self, connection: psycopg.AsyncConnection) -> None:
        """Claims whose reply was lost. Only rows that were unknown a second ago as well: a claim may be on its way."""
        rows = await (await connection.execute(
            "select token from dispatch where worker_id = %s and token <> all(%s)", [self.id, list(self._held())])).fetchall()
        unknown = {token for (token,) in rows}
        if lost := (unknown & self._unknown) - self._held():
            log.warning("%s claims are held by nobody here and are given back", len(lost))
            await connection.execute(claims.ORPHANS, [self.id, list(lost)])
        self._unknown = unknown

    def _held(self) -> set[int]:
        """Tokens of the runs that are going here, and of those whose memory is just being loaded, which may take a while."""
        return self.executions.keys() | self._beginning

    async def _post(self) -> None:
        """Send what the outbox holds."""
        async with await connect("holdfast outbox") as connection:
            while True:
                if not await send_due(connection):
                    await asyncio.sleep(0.5)

    async def _fire(self) -> None:
        """Start scheduled runs."""
        async with await connect("holdfast schedules") as connection:
            while True:
                if not self.stopping():
                    await fire_due(connection)
                await asyncio.sleep(1)


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
