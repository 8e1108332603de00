"""What the database says about one run, gathered by path. No more is held than a page shows: the rows outside loops, and
of each loop one page of iterations and the steps of the opened one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from runtime.states import WaitState


@dataclass(slots=True)
class Place:
    """The rows of the latest take at one path. `takes` counts how often a person had it run again, plus one."""

    take: int = 0
    result: Any = None
    attempts: list[Any] = field(default_factory=list)
    waits: list[Any] = field(default_factory=list)
    frame: Any = None
    earlier: list[Any] = field(default_factory=list)
    """The attempts of earlier takes, oldest first."""

    @property
    def kept_from(self) -> int | None:
        """The run that gave the result, where this one began with it."""
        return self.result.kept_from if self.result else None

    @property
    def open_wait(self) -> Any:
        return next((wait for wait in reversed(self.waits) if wait.state == WaitState.OPEN), None)

    @property
    def last_wait(self) -> Any:
        return self.waits[-1] if self.waits else None

    @property
    def running_attempt(self) -> Any:
        last = self.attempts[-1] if self.attempts else None
        return last if last is not None and last.ended_at is None else None

    @property
    def started_at(self) -> datetime | None:
        begun = [attempt.started_at for attempt in self.attempts] + [wait.created_at for wait in self.waits]
        begun += [self.result.started_at] if self.result else []
        begun += [self.frame.started_at] if self.frame else []
        return min(begun, default=None)

    @property
    def cost(self) -> Decimal | None:
        known = [attempt.cost for attempt in self.attempts if attempt.cost is not None]
        if known:
            return sum(known, Decimal())
        return self.result.cost if self.result else None

    @property
    def unpriced(self) -> bool:
        """Whether a call used up tokens for which no price is known."""
        return any(attempt.tokens_in is not None and attempt.cost is None for attempt in self.attempts)


@dataclass(frozen=True, slots=True)
class Iteration:
    """One row of a loop's page. `state` is one that people see."""

    index: int
    state: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cost: Decimal | None = None
    unpriced: bool = False
    label: str = ""
    """What tells its item from the others: a name, an address, a number."""
    kept_from: int | None = None
    """The run that gave all of its results."""


@dataclass(frozen=True, slots=True)
class LoopPage:
    """A page of iterations, in order. `total` is None for a while loop under way; `earlier` and `later` are the first
    index of the neighbouring pages; `opened` is the iteration whose steps are shown."""

    total: int | None
    ended: int
    iterations: tuple[Iteration, ...]
    opened: int | None = None
    earlier: int | None = None
    later: int | None = None


@dataclass(slots=True)
class Rows:
    places: dict[str, Place] = field(default_factory=dict)
    loops: dict[str, LoopPage] = field(default_factory=dict)


def gathered(
    results: Iterable[Any], attempts: Iterable[Any], waits: Iterable[Any], frames: Iterable[Any]
) -> dict[str, Place]:
    """Path -> its latest take. A result that a requeue superseded says nothing about its step any more."""
    takes: dict[str, dict[int, Place]] = {}
    over: set[tuple[str, int]] = set()

    def place(row: Any) -> Place:
        return takes.setdefault(row.path, {}).setdefault(row.take, Place(row.take))

    for result in results:
        place(result).result = None if result.superseded else result
        if result.superseded:
            over.add((result.path, result.take))
    for attempt in sorted(attempts, key=lambda attempt: attempt.n):
        place(attempt).attempts.append(attempt)
    for wait in sorted(waits, key=lambda wait: (wait.created_at, wait.pk)):
        place(wait).waits.append(wait)
    for frame in frames:
        place(frame).frame = frame
    return {path: _newest(by_take, (path, max(by_take)) in over) for path, by_take in takes.items()}


def _newest(takes: dict[int, Place], over: bool) -> Place:
    """Somebody who has it run again begins the next take before any of its rows is there."""
    newest = takes[max(takes)]
    last = newest.last_wait
    if over or last is not None and isinstance(last.outcome, dict) and last.outcome.get("answer") == "again":
        newest = Place(newest.take + 1, frame=newest.frame)
    newest.earlier = [attempt for take in sorted(takes) if take < newest.take for attempt in takes[take].attempts]
    return newest
