"""What a worker counts about itself. It is told with each beat (`worker.figures`), and `/metrics` shows it."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
ROWS = (1, 2, 5, 10, 25, 50, 100, 200, 500, 1000)


class Histogram:
    """How many values lay at or below each bound, as Prometheus counts; the last place is for those above all."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]):
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def take(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def told(self) -> dict[str, Any]:
        """`{"le": {bound: how many at or below}, "sum"}`; the number of all is that of `+Inf`."""
        below, running = {}, 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            running += count
            below[bound] = running
        return {"le": below, "sum": round(self.total, 6)}
