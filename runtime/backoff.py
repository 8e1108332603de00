"""Whether a failed attempt is followed by another, and when. Pure: the interpreter writes what is decided here.

Full jitter: a wait drawn between nothing and `first * 2**(n-1)`, never above `longest`
(M. Brooker, "Exponential Backoff And Jitter", 2015). `Retry-After` is a floor, capped by a setting.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from .durations import parse_duration


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """All times in seconds. `total` counts from the first attempt of the take, or after the last part that is kept."""

    max_attempts: int = 4
    first: float = 1.0
    longest: float = 300.0
    total: float = 3600.0

    @classmethod
    def of(cls, retry: dict[str, Any] | None) -> RetryPolicy:
        """From a step's `retry`, missing parts by default."""
        times = {name: parse_duration(retry[name]).total_seconds() for name in ("first", "longest", "total")
                 if retry and name in retry}
        if retry and "max_attempts" in retry:
            return cls(max_attempts=retry["max_attempts"], **times)
        return cls(**times)

    def ceiling(self, failures: int) -> float:
        """The longest that the pause after this many failures can be."""
        return min(self.longest, self.first * 2 ** min(failures - 1, 40))

    def pause(self, failures: int, elapsed: float, retry_after: float | None, cap: float) -> float | None:
        """Seconds until the next attempt, or None when there is none."""
        if failures >= self.max_attempts:
            return None
        pause = max(random.uniform(0, self.ceiling(failures)), min(retry_after or 0.0, cap))
        return pause if elapsed + pause <= self.total else None
