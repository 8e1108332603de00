"""Where a look into an index of the queue begins, when what is dead cannot be cleared away.

While a snapshot is held elsewhere, by a long report or a forgotten session, an index keeps an entry for all that was claimed
and ended since: millions after ten minutes at full speed. A look from the beginning walks through them. So a look that has
become dear begins where the one before came to, and from the beginning only so often that it takes a twentieth of the time.
While looks are cheap, all are whole. What comes to stand before that place later (a run that was let into a slot, a
transaction that took long) waits for the next whole look, ten seconds at most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from .slots import HIGHEST

CHEAP_SECONDS = 0.02
CHEAP_PER_ROW = 0.00002
"""Seconds more for each row that was found: what is done with it is in the same statement."""
SHARE = 20
LONGEST_SECONDS = 10.0
WHOLE: dict[str, Any] = {"after_due": [], "after_run": []}


class Pace:
    """When a look has to be whole."""

    def __init__(self) -> None:
        self._whole_at, self._pause = -math.inf, 0.0

    def whole(self) -> bool:
        return time.monotonic() - self._whole_at >= self._pause

    def took(self, seconds: float, rows: int = 0) -> None:
        """Learn what a whole look took, and how many rows it gave."""
        cheap = seconds <= CHEAP_SECONDS + rows * CHEAP_PER_ROW
        self._whole_at, self._pause = time.monotonic(), 0.0 if cheap else min(SHARE * seconds, LONGEST_SECONDS)


class Places:
    """Where the claims of due runs have come to, for each priority."""

    def __init__(self) -> None:
        self.pace = Pace()
        self._due: list[datetime | None] = [None] * (2 * HIGHEST + 1)
        self._run: list[int] = [0] * (2 * HIGHEST + 1)

    def after(self) -> dict[str, Any]:
        """The parameters of a look: WHOLE, or where it begins."""
        return WHOLE if self.pace.whole() else {"after_due": self._due, "after_run": self._run}

    def come_to(self, found: Iterable[tuple[int, datetime, int]]) -> None:
        """What a look found: priority, due time and number of each run. The next one begins after the last of them, also
        where that lies before its present place: a whole look found what is to be done first."""
        last: dict[int, tuple[datetime, int]] = {}
        for level, *place in found:
            last[level] = max(last.get(level, tuple(place)), tuple(place))
        for level, (due_at, run_id) in last.items():
            self._due[level + HIGHEST], self._run[level + HIGHEST] = due_at, run_id
