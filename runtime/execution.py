"""One claimed run in this process: its memory, its names, what it makes durable, and how it parks.

Branches and concurrent iterations are coroutines of the one owner. `active` counts those that can go on; when it falls to
zero, everything that is left waits in rows, and the run is released.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Protocol

from . import failpoints
from .expressions import ExpressionError
from .faults import kind_of
from .gauges import Histogram
from .journal import Claim, Journal, Row, StaleClaim
from .jsonvalues import storable_text
from .lanes import Group, LaneStopped, Parked, Scope, StepFailed
from .masking import Masker
from .memory import BLOB, Elsewhere, Memory
from .plan import Plan
from .states import RunState, WaitState
from .storing import ASK_FOR_LESS, GIVE_LESS, LARGEST_INLINE, LARGEST_VALUE, encode, json_text, largest_output
from .tokens import callback_url, without_signatures

MOST_PENDING_ROWS = 400
MOST_FOUND_BY, LONGEST_FOUND_BY = 50, 200
CLOCK_SLACK = timedelta(milliseconds=50)


class Services(Protocol):
    """What a worker lends to its runs."""

    journal: Journal
    lease_seconds: float
    wake_lateness: Histogram

    def now(self) -> datetime: ...
    async def query(self, sql: str, parameters: Any) -> list[tuple]: ...
    async def connection(self, team_id: int, name: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class RunRow:
    """What the claim returned of the run."""

    id: int
    workflow_id: int
    input: dict[str, Any]
    title: str
    test: bool
    created_at: datetime
    started_at: datetime | None


class Execution:
    def __init__(self, claim: Claim, run: RunRow, plan: Plan, memory: Memory, services: Services):
        self.claim, self.run, self.plan, self.memory, self.services = claim, run, plan, memory, services
        self.journal = services.journal
        self.masker = Masker()
        self.group = Group()
        self.parked: dict[int, Parked] = {}
        self.active = 1
        self.registering = 0
        self.released = False
        self.due_at: datetime | None = None
        """Once released: when the run's next wait is due."""
        self.began_at = services.now()
        self.has_waits = bool(memory.places)
        self.elsewhere = any(type(result.output) is Elsewhere for result in memory.results.values())
        self.spent: Decimal | None = None
        """US dollars of this claim's calls that the run's row does not count yet."""
        self.titled = bool(run.started_at)
        self.task: asyncio.Task | None = None
        self._claimed_at = time.monotonic()
        self._unsent = 0
        self._releasing = self._leaving = False
        self.scope = Scope(self._names(), "")

    def _names(self) -> dict[str, Any]:
        run, plan = self.run, self.plan
        return {
            "trigger": run.input,
            "steps": {},
            "run": {"id": run.id, "started_at": run.created_at, "test": run.test},
            "workflow": {"name": plan.workflow_name, "version": plan.number},
            "callbacks": {step: callback_url(run.id, path) for step, path in plan.callbacks.items()},
        }

    # What it makes durable

    def add(self, *rows: Row) -> None:
        """Rows that ride along with the next commit of anybody."""
        self._unsent += len(rows)
        self.journal.add(self.claim, list(rows))

    async def commit(self, *rows: Row) -> list[tuple]:
        """Rows that must be durable, with all before them, when this returns."""
        self._unsent = 0
        return await self.journal.commit(self.claim, list(rows))

    @property
    def owes(self) -> bool:
        """Whether pure steps have gone on for so long that the others, and the journal, should have their turn."""
        return self._unsent >= MOST_PENDING_ROWS

    async def breathe(self) -> None:
        """Let others run, and keep what is not yet durable bounded, in long stretches of pure steps."""
        if self.owes:
            await self.commit()
        else:
            await asyncio.sleep(0)

    def log(self, path: str, text: str, level: str = "info", data: Any = None) -> Row:
        return "log", (self.run.id, path, level, self.words(text), None if data is None else self.dump(data, "What is logged"))

    def words(self, text: str) -> str:
        """Text for people as it is stored: secrets and addresses of callbacks masked, at most 4,000 characters."""
        return storable_text(without_signatures(self.masker.mask(text)))[:4000]

    def output_rows(self, path: str, take: int, output: Any) -> tuple[str | None, int | None]:
        """The output's text for the row of its result, and no size. A large one gets a row of its own: then its size, and
        of its text the first numbers, which say how many or how it went. Raises Unstorable."""
        if output is None:
            return None, None
        text = self.dump_output(output)
        if len(text) <= LARGEST_INLINE // 4 or (size := len(text.encode())) <= LARGEST_INLINE:
            return text, None
        self.add(("blob", (self.run.id, path, take, text)))
        told = output.items() if isinstance(output, dict) else ()
        return encode(dict(islice(((name, one) for name, one in told if type(one) is int), 8))), size

    def dump_output(self, output: Any, what: str = "The output") -> str:
        """As `dump`, for what a step gives and what is made of that."""
        return self.dump(output, what, largest_output(), ASK_FOR_LESS)

    async def fetch(self, steps: frozenset[str], scope: Scope) -> None:
        """Bring the large outputs of these steps, which are about to be read, into what expressions see."""
        if not self.elsewhere:
            return
        seen = scope.names["steps"]
        for step in list(seen) if "*" in steps else steps & seen.keys():
            where = seen[step].get("output")
            if type(where) is Elsewhere:
                rows = await self.services.query(BLOB, [self.run.id, where.path, where.take])
                seen[step] = {**seen[step], "output": rows[0][0]}

    def dump(self, value: Any, what: str = "The value", most: int = LARGEST_VALUE, remedy: str = GIVE_LESS) -> str:
        """JSON text as it is stored, secrets masked. Raises Unstorable, which says what is too large and what to do."""
        return json_text(value, self.masker, what, most, remedy)

    # Parking

    async def park(self, wait_id: int, due_at: datetime | None, group: Group) -> dict[str, Any]:
        """Wait for the outcome of a wait that is registered. The run may be released meanwhile."""
        group.check()
        parked = self.parked[wait_id] = Parked(asyncio.get_running_loop().create_future(), group, due_at)
        self.rest()
        try:
            return await parked.future
        finally:
            self.parked.pop(wait_id, None)

    def wake(self, wait_id: int, outcome: dict[str, Any]) -> None:
        """Go on with a parked lane."""
        parked = self.parked.get(wait_id)
        if parked and not parked.future.done():
            self.active += 1
            parked.future.set_result(outcome)

    def fail_group(self, group: Group, failure: Exception) -> None:
        """Stop the lanes of a group: the parked ones now, the others at their next boundary."""
        if group.failure is not None:
            return
        group.failure = failure
        for parked in self.parked.values():
            if parked.group.stopped_by() is not None and not parked.future.done():
                self.active += 1
                parked.future.set_exception(LaneStopped())

    def rest(self) -> None:
        """One coroutine fewer can go on; if it was the last, release the run."""
        self.active -= 1
        if self.active == 0 and not self._releasing and not self._leaving:
            self._releasing = True
            self._release_task = asyncio.get_running_loop().create_task(self._release())

    async def together(self, lanes: list[Callable[[], Awaitable[None]]], group: Group) -> None:
        """Run lanes at the same time as coroutines of this run; the last to end hands its activity to the caller."""
        if not lanes:
            return
        left = len(lanes)
        self.active += left - 1

        async def lane(job: Callable[[], Awaitable[None]]) -> None:
            nonlocal left
            try:
                await job()
            except StepFailed as failure:
                self.fail_group(group, failure)
            except LaneStopped:
                pass
            except Exception as failure:  # a stop, a lost claim, refused rows, a fault of ours: the whole run's affair
                self.fail_group(self.group, failure)
            left -= 1
            if left:
                self.rest()

        await asyncio.gather(*(lane(job) for job in lanes))
        if failure := group.stopped_by():
            raise failure if group.failure is failure else LaneStopped

    async def _release(self) -> None:
        """Give the run back, unless something happened to it that nobody acted upon yet."""
        try:
            while self.active == 0:
                await self._resolve_due()
                if self.active or self._leaving:
                    return
                failpoints.hit("release.before")
                rows = [*await self.title_rows(), ("release", (self.run.id, self.claim.token, self.claim.wakes))]
                if self.spent is not None:
                    rows.append(("spent", (self.run.id, self.spent)))
                    self.spent = None
                returned = await self.commit(*rows)
                if released := next((row for kind, *row in returned if kind == "release"), None):
                    failpoints.hit("release.after")
                    self.released, self.due_at = True, released[0]
                    self.task.cancel()
                    return
                await self.refresh()
        except StaleClaim:
            self.released = True
            self.task.cancel()
        except Exception as failure:
            self.fail_group(self.group, failure)
        finally:
            self._releasing = False
            if self.active == 0 and not self.released and not self._leaving and not self.task.done():
                self.active += 1
                self.rest()

    async def refresh(self) -> None:
        """Learn what was resolved by others. The count of wakes is read first: what comes later raises it again.

        A lane may still be on its way to a wait: to one that is remembered as open, which is then told here; or to one that
        is just being registered, and as long as there is such a one, the count is not taken as acted upon."""
        rows = await self.services.query(
            "select wakes from dispatch where run_id = %s and token = %s", [self.run.id, self.claim.token]
        )
        if not rows:
            raise StaleClaim
        registering, remembered = self.registering, self.memory.open_waits()
        found = await self.services.query(
            "select id, state, outcome, due_at from wait where id = any(%s)", [list(self.parked.keys() | remembered.keys())]
        )
        if not registering:
            self.claim.wakes = rows[0][0]
        for wait_id, state, outcome, due_at in found:
            if wait := remembered.get(wait_id):
                wait.state, wait.outcome, wait.due_at = state, outcome, due_at
            if state == WaitState.RESOLVED:
                self.wake(wait_id, outcome)
            elif wait_id in self.parked:
                self.parked[wait_id].due_at = due_at

    async def resolve_due(self) -> None:
        """Resolve the waits whose time has come while a sibling lane keeps the run here."""
        if self._releasing:
            return
        self.active += 1
        try:
            await self._resolve_due()
        finally:
            self.rest()

    async def _resolve_due(self) -> None:
        """The worker's clock picks the candidates, generously; the database decides."""
        soon = self.services.now() + CLOCK_SLACK
        due = [wait_id for wait_id, parked in self.parked.items() if parked.due_at and parked.due_at <= soon]
        if not due:
            return
        failpoints.hit("wait.due")
        for kind, *row in await self.commit(*(("due", (self.run.id, wait_id)) for wait_id in due)):
            if kind == "due":
                failpoints.hit("wait.resolved")
                if (parked := self.parked.get(row[0])) and parked.due_at:
                    self.services.wake_lateness.take(max(0.0, (self.services.now() - parked.due_at).total_seconds()))
                self.wake(row[0], row[1])

    def leave(self) -> None:
        """Stop where it is: its worker hands it back. Whose wait was just resolved is told nothing any more, so from here on
        nothing in here may release the run: it would wait for what has come."""
        self._leaving = True
        self.task.cancel()

    def lose(self) -> None:
        """The run is somebody else's, or has ended: begin nothing more. Calls in flight end and are recorded."""
        self.claim.lost = True
        self.fail_group(self.group, StaleClaim())

    def settled_in(self) -> bool:
        """Whether it has been here long enough to be worth a look."""
        return time.monotonic() - self._claimed_at > 1.0

    # Its beginning and its end

    async def title_rows(self) -> list[Row]:
        if self.titled:
            return []
        await self.fetch(self.plan.reads, self.scope)
        self.titled = True
        return [("title", (self.run.id, self.title(), self.began_at)), *self.search_rows()]

    def title(self) -> str:
        if self.run.title:
            return self.run.title
        try:
            return self.words(str(self.plan.title.render(self.scope.names)))[:300]
        except ExpressionError:
            return ""

    def search_rows(self) -> list[Row]:
        """What the run can be found by, as far as it is known by now: plain values, and those of lists."""
        found: dict[str, None] = {}
        for expression in self.plan.search:
            try:
                value = expression.evaluate(self.scope.names)
            except ExpressionError:
                continue  # it speaks of a step that has not run
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str | int | float):
                    text = one if isinstance(one, str) else encode(one)
                    found[self.words(text).strip().lower()[:LONGEST_FOUND_BY]] = None
        found.pop("", None)
        return [("found_by", (self.run.id, text)) for text in list(found)[:MOST_FOUND_BY]]

    async def end_rows(self, state: RunState, output: str | None = None, error: dict[str, Any] | None = None) -> list[Row]:
        await self.fetch(self.plan.reads, self.scope)
        return self._end_rows(state, output, error)

    def _end_rows(self, state: RunState, output: str | None, error: dict[str, Any] | None) -> list[Row]:
        self.titled = True
        rows: list[Row] = self.search_rows()
        if error is not None:
            error = {**error, "kind": kind_of(error)}
        if self.has_waits:
            after = WaitState.SUSPENDED if state == RunState.FAILED else WaitState.CANCELLED
            rows.append(("unwait", (self.run.id, after)))
        rows.append(("end", (
            self.run.id, self.claim.token, state, output, None if error is None else self.dump(error),
            self.title(), self.began_at, self.plan.on_failure,
        )))
        if self.spent is not None or self.run.started_at is not None:
            rows.append(("cost", (self.run.id,)))
        return rows

    def broken_rows(self, error: BaseException) -> list[Row]:
        """The interpreter itself failed: end the run, and say so, rather than run into the same fault for ever."""
        message = f"Holdfast failed to run this: {type(error).__name__}: {error}"
        return [self.log("", message, "error"), *self._end_rows(RunState.FAILED, None, {"message": self.words(message)[:1000]})]

    def parked_rows(self, error: BaseException) -> list[Row]:
        """The database refuses its end: until a person says so nobody takes it up again."""
        return [("park", (self.run.id, self.claim.token, self.words(f"The database refuses its end ({error}).")[:1000]))]
