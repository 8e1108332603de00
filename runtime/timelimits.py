"""A time-out that can stand still, for calls that have to wait for the database first."""

from __future__ import annotations

import asyncio
from types import TracebackType

YOUNG_SECONDS = 1.0
"""Most blocks are left before, and never have a timer of their own."""
_young: dict[asyncio.AbstractEventLoop, set[TimeLimit]] = {}
"""The limits of a loop that have no timer yet."""


def _give_timers(loop: asyncio.AbstractEventLoop) -> None:
    for limit in _young.pop(loop):
        limit._set()


class TimeLimit:
    """A block that may take so many seconds, as in `asyncio.timeout`: when they are over its task is cancelled, and leaving the
    block raises TimeoutError. One timer serves it, which is looked at again when it rings: standing still costs nothing."""

    __slots__ = ("_seconds", "_loop", "_task", "_cancelling", "_deadline", "_timer", "_still_since", "_inside", "_over")

    def __init__(self, seconds: float):
        self._seconds = seconds

    def __enter__(self) -> TimeLimit:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._cancelling, self._over, self._inside = self._task.cancelling(), False, 0
        self._deadline = self._loop.time() + self._seconds
        self._timer = None
        if self._seconds <= YOUNG_SECONDS:
            self._set()
        elif (young := _young.get(self._loop)) is not None:
            young.add(self)
        else:
            _young[self._loop] = {self}
            self._loop.call_later(YOUNG_SECONDS, _give_timers, self._loop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop()
        if self._over and self._task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error

    def restart(self, seconds: float) -> None:
        """From now on it may take so many seconds."""
        self._still_since = self._loop.time()
        self._deadline = self._still_since + seconds
        self._set()

    def standing_still(self) -> StandingStill:
        """A block whose time does not count."""
        return StandingStill(self)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        elif (young := _young.get(self._loop)) is not None:
            young.discard(self)

    def _set(self) -> None:
        self._stop()
        self._timer = self._loop.call_at(self._deadline, self._ring)

    def _ring(self) -> None:
        if self._inside:
            return  # whoever ends that sets it anew
        if self._loop.time() < self._deadline:
            self._set()
        else:
            self._over = True
            self._task.cancel()


class StandingStill:
    """May be nested, and entered by several tasks of one step: time counts again once all have left."""

    __slots__ = ("_limit",)

    def __init__(self, limit: TimeLimit):
        self._limit = limit

    def __enter__(self) -> None:
        self._limit._inside += 1
        if self._limit._inside == 1:
            self._limit._still_since = self._limit._loop.time()

    def __exit__(self, *_: object) -> None:
        limit = self._limit
        limit._inside -= 1
        if limit._inside:
            return
        limit._deadline += limit._loop.time() - limit._still_since
        if limit._timer is not None and limit._timer.when() <= limit._loop.time():  # it has rung, or is about to
            limit._set()
