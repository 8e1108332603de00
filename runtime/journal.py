"""The group commit. Coroutines hand over rows and wait; one transaction writes everybody's.

The first statement of a batch (`holdfast_guard`) locks the runs' dispatch rows by token, in order, so that no row of a
claim that was lost can slip in. A batch that the database refuses is split until only the culprit's rows fail.

Whether a batch whose reply was lost had been committed is read from `journal_mark`: the batch writes its number there, and
a new connection first raises the mark's epoch, which waits for the old transaction and shuts out what may still arrive.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import psycopg

from . import failpoints
from .gauges import ROWS as BATCH_ROWS
from .gauges import SECONDS, Histogram
from .journal_sql import LARGE, ROWS, SETTLE_OWN, STALE_CLAIM, STALE_CONNECTION

log = logging.getLogger(__name__)

RIDE_ROWS = 200
RIDE_SECONDS = 0.05
MOST_AT_ONCE = 64_000_000
"""Characters of large values in one batch, or one entry: Postgres hangs up on a message of more than a gigabyte."""
OUTCOME = 6
"""So many columns lead the row that settles a call: its key and its outcome."""
SENT_AGAIN = ("08", "25006", "40", "53", "55P03", "57", "58")
"""What SQLSTATEs begin with after which the same batch may succeed: connection, read-only (a standby that is not promoted
yet), rollback, resources, a lock that was not got in time (a setting of the role), operator intervention, system error."""

Row = tuple[str, tuple[Any, ...]]


class StaleClaim(Exception):
    """The lease was lost, or the run was cancelled: this owner's rows are not written, and it must stop."""


class Refused(Exception):
    """The database refused these rows of the run, or some that came before; the message says why. Nothing of them was written."""


class Claim:
    """The right to advance one run, from the claim to the release. `wakes` is the count that was acted upon; `handed_back`
    says that no lease of it was lost before: what it finds under way, a worker that stopped has left."""

    __slots__ = ("run_id", "token", "wakes", "handed_back", "lost", "refused")

    def __init__(self, run_id: int, token: int, wakes: int = 0, handed_back: bool = False):
        self.run_id, self.token, self.wakes, self.handed_back = run_id, token, wakes, handed_back
        self.lost = False
        self.refused: str | None = None


class Entry:
    """Rows of one claim that are committed together, and what the database gave back for them."""

    __slots__ = ("claim", "rows", "future", "returned")

    def __init__(self, claim: Claim, rows: list[Row], future: asyncio.Future | None):
        self.claim, self.rows, self.future = claim, rows, future
        self.returned: list[tuple] = []


class Journal:
    def __init__(self, connect: Callable[[], Any], worker_id: int):
        self._connect, self._worker_id = connect, worker_id
        self._connection: psycopg.AsyncConnection | None = None
        self._epoch, self._batch, self._done = 1, 0, 0
        self._entries: list[Entry] = []
        self._rows = 0
        self._ring = asyncio.Event()
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self.batch_rows, self.flush_seconds = Histogram(BATCH_ROWS), Histogram(SECONDS)
        self.busy_since: float | None = None
        """Monotonic time at which what is being written now was sent; None while nothing is."""

    def add(self, claim: Claim, rows: list[Row]) -> None:
        """Let rows ride along with the next batch, at the latest after 200 rows or 50 ms."""
        self._entries.append(Entry(claim, rows, None))
        self._rows += len(rows)
        if self._rows >= RIDE_ROWS:
            self._ring.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(RIDE_SECONDS, self._ring.set)

    async def commit(self, claim: Claim, rows: list[Row]) -> list[tuple]:
        """Make rows durable, and all that this run added before. Returns what they returned (see `journal_sql`).
        Raises StaleClaim or Refused. Of a lost claim the settlements are written all the same."""
        future = asyncio.get_running_loop().create_future()
        self._entries.append(Entry(claim, rows, future))
        self._ring.set()
        return await future

    async def run(self) -> None:
        """Write batches until cancelled. What is left then is written first."""
        try:
            while True:
                await self._ring.wait()
                await asyncio.shield(self.flush())
        finally:
            await asyncio.shield(self.flush())
            if self._connection:
                await self._connection.close()

    async def flush(self) -> None:
        """Write what was handed over so far. One batch at a time: they share the connection and its count."""
        async with self._writing:
            await self._flush()

    async def _flush(self) -> None:
        self._ring.clear()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        entries, self._entries, self._rows = self._entries, [], 0
        if entries:
            try:
                for part in _parts(entries):
                    self.busy_since = time.monotonic()
                    await self._write(part)
            finally:
                self.busy_since = None

    async def _write(self, entries: list[Entry]) -> None:
        """Write the entries; set apart those whose claim is gone, and by halving those that the database refuses."""
        entries = await self._without_hopeless(entries)
        if any(entry.claim.lost for entry in entries):
            entries = await self._without_stale(entries)
        if not entries:
            return
        try:
            await self._transact(entries)
        except (psycopg.Error, UnicodeEncodeError) as error:
            if getattr(error, "sqlstate", None) == STALE_CLAIM:
                await self._write(await self._without_stale(entries))
            else:
                await self._write_halves(entries, error)
        else:
            failpoints.hit("journal.after")
            for entry in entries:
                _tell(entry, entry.returned)

    async def _without_hopeless(self, entries: list[Entry]) -> list[Entry]:
        """Tell the owners of claims that have failed already, record how their calls ended, and return the other entries."""
        hopeless = [(entry, Refused(entry.claim.refused)) for entry in entries if entry.claim.refused is not None]
        held = [entry for entry in entries if entry.claim.refused is None]
        await self._settle_unfenced([entry for entry, _ in hopeless])
        for entry, refused in hopeless:
            _tell(entry, refused)
        return held

    async def _write_halves(self, entries: list[Entry], error: psycopg.Error | UnicodeEncodeError) -> None:
        """By claims; those of one claim in their order, so that what it handed over before the culprit is written."""
        claims = list(dict.fromkeys(entry.claim for entry in entries))
        if len(claims) > 1:
            first = set(claims[: len(claims) // 2])
            await self._write([entry for entry in entries if entry.claim in first])
            await self._write([entry for entry in entries if entry.claim not in first])
        elif len(entries) > 1:
            await self._write(entries[: len(entries) // 2])
            await self._write(entries[len(entries) // 2 :])
        else:
            claims[0].refused = str(isinstance(error, psycopg.Error) and error.diag.message_primary or error)
            await self._settle_unfenced(entries)
            _tell(entries[0], Refused(claims[0].refused))

    async def _without_stale(self, entries: list[Entry]) -> list[Entry]:
        """Tell the owners of lost claims, record how their calls ended, and return the entries that still hold."""
        tokens = {entry.claim.token: entry.claim for entry in entries}
        rows = await self._query("select token from dispatch where token = any(%s) and run_id = any(%s)",
                                 [list(tokens), [claim.run_id for claim in tokens.values()]])
        for token in tokens.keys() - {token for (token,) in rows}:
            tokens[token].lost = True
        # Divided before the next pause, in which others may be lost (`Execution.lose`): those are told by whoever sees them next.
        stale, held = [], []
        for entry in entries:
            (stale if entry.claim.lost else held).append(entry)
        await self._settle_unfenced(stale)
        for entry in stale:
            _tell(entry, StaleClaim())
        return held

    async def _settle_unfenced(self, entries: list[Entry]) -> None:
        """How a call ended is recorded also when its run went elsewhere, or its other rows are refused; only advancing is fenced.
        So is what it makes of calls of other owners: one of them may have the run, and such a call under way."""
        settled = [(*row, entry.claim.token) for entry in entries for kind, row in entry.rows if kind == "settle"]
        if settled:
            try:
                await self._query(SETTLE_OWN.sql, SETTLE_OWN.columns(settled))
            except (psycopg.DataError, UnicodeEncodeError) as error:
                log.error("journal: of how calls ended no more than the outcome can be recorded: %s", error)
                bare = [(*row[:OUTCOME], *[None] * len(row[OUTCOME:-1]), row[-1]) for row in settled]
                await self._query(SETTLE_OWN.sql, SETTLE_OWN.columns(bare))

    async def _transact(self, entries: list[Entry]) -> None:
        """One transaction, sent as one pipeline; sent again when the connection broke before the commit."""
        failpoints.hit("journal.before")
        self.busy_since = time.monotonic()
        self._batch += 1
        pause = 0.0
        while True:
            connection = await self._connected()
            if self._batch <= self._done:
                return await self._read_back(entries)
            try:
                return await self._send(connection, entries)
            except psycopg.Error as error:
                if not _broke(connection, error):
                    raise
                log.warning("journal: %s; the batch is sent again", error)
                await self._drop()
            await asyncio.sleep(pause)
            pause = min(2 * pause + 0.05, 1.0)

    async def _send(self, connection: psycopg.AsyncConnection, entries: list[Entry]) -> None:
        by_kind = _by_kind(entries)
        held = {entry.claim.token: entry.claim.run_id for entry in entries}
        async with connection.pipeline():
            async with connection.transaction():
                await connection.execute(
                    "select holdfast_guard(%s, %s, %s, %s, %s)",
                    [list(held.values()), list(held), self._worker_id, self._epoch, self._batch],
                )
                cursors = {}
                for kind, statement in ROWS.items():
                    if rows := by_kind.get(kind):
                        cursors[kind] = await connection.execute(statement.sql, statement.columns(rows))
                failpoints.hit("journal.inside")
        self.batch_rows.take(sum(map(len, by_kind.values())))
        self.flush_seconds.take(time.monotonic() - self.busy_since)
        await _hand_out(entries, {kind: cursors[kind] for kind in cursors if ROWS[kind].returns})

    async def _read_back(self, entries: list[Entry]) -> None:
        """The batch had been committed, and only its reply was lost: ask again for what its rows returned."""
        by_kind, returned = _by_kind(entries), {}
        for kind, statement in ROWS.items():
            if statement.returns and (rows := by_kind.get(kind)):
                returned[kind] = await self._query(statement.again, statement.columns(rows))
        await _hand_out(entries, returned)

    async def _query(self, sql: str, parameters: Iterable[Any]) -> list[tuple]:
        """A statement of its own that may safely be sent twice."""
        pause = 0.0
        while True:
            connection = await self._connected()
            try:
                cursor = await connection.execute(sql, list(parameters))
                return await cursor.fetchall() if cursor.description else []
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                log.warning("journal: %s; the statement is sent again", error)
                await self._drop()
            await asyncio.sleep(pause)
            pause = min(2 * pause + 0.05, 1.0)

    async def _connected(self) -> psycopg.AsyncConnection:
        """The journal's connection; a new one first learns what its predecessor committed and shuts it out."""
        pause = 0.05
        while self._connection is None or self._connection.closed:
            try:
                self._connection = await self._connect()
                cursor = await self._connection.execute(
                    "update journal_mark set epoch = epoch + 1 where worker_id = %s returning epoch, batch",
                    [self._worker_id],
                )
                mark = await cursor.fetchone()
                if mark is None:
                    raise RuntimeError(f"worker {self._worker_id} is not known any more, as after a week of silence")
                self._epoch, self._done = mark
            except psycopg.Error as error:
                log.warning("journal: no connection: %s", error)
                await self._drop()
                await asyncio.sleep(pause)
                pause = min(2 * pause, 1.0)
        return self._connection

    async def _drop(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        self._connection = None


def _broke(connection: psycopg.AsyncConnection, error: psycopg.Error) -> bool:
    """Whether the batch may be sent again as it is: the fault is the connection's or the server's, not the rows'."""
    if error.sqlstate == STALE_CONNECTION or connection.closed:
        return True
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(SENT_AGAIN)


def _parts(entries: list[Entry]) -> Iterator[list[Entry]]:
    """The entries in their order, divided where they are too much to be sent at once."""
    start = size = 0
    for place, entry in enumerate(entries):
        more = 0
        for kind, row in entry.rows:
            if kind in LARGE:
                for column in LARGE[kind]:
                    if value := row[column]:
                        more += len(value)
        if size and size + more > MOST_AT_ONCE:
            yield entries[start:place]
            start, size = place, 0
        size += more
    yield entries[start:]


def _by_kind(entries: list[Entry]) -> dict[str, list[tuple]]:
    by_kind: dict[str, list[tuple]] = defaultdict(list)
    for entry in entries:
        for kind, row in entry.rows:
            by_kind[kind].append(row)
    return by_kind


async def _hand_out(entries: list[Entry], results: dict[str, Any]) -> None:
    """Give each entry the returned rows of its run. Returned rows begin with the run's id."""
    if not results:
        return
    by_run: dict[int, list[tuple]] = defaultdict(list)
    for kind, result in results.items():
        rows = result if isinstance(result, list) else await result.fetchall()
        for row in rows:
            by_run[row[0]].append((kind, *row[1:]))
    for entry in entries:
        entry.returned = by_run.get(entry.claim.run_id, [])


def _tell(entry: Entry, answer: Any) -> None:
    future = entry.future
    if future is None or future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
