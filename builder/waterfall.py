"""pure: instants -> places on the run page's time axis.

Work is drawn to scale. A long stretch in which nothing worked is drawn short, or four seconds of work before two days of
waiting would be invisible; the axis has no labels beyond the first such stretch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

NOW_AT = 84.0
"""Where the axis has "now" or "end" at most, in per cent; beyond lies what is still to come."""
TICK_EVERY = 20.0
TICKS = 4
STEPS = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600,
    900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 21600, 28800, 43200, 64800, 86400, 129600, 172800, 259200,
    345600, 432000, 604800, 864000, 1209600, 1814400, 2592000, 5184000, 7776000, 15552000, 31536000,
)
LINEAR_UP_TO = 30
"""A run at most this many times as long as its work is drawn to scale throughout."""
WAITING_SHARE = 0.42
"""The share of the axis that all shortened stretches have together."""


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Axis:
    """Piecewise linear: `knots` are (seconds since the start, per cent), both rising."""

    start: datetime
    end: datetime
    knots: tuple[tuple[float, float], ...]
    ticks: tuple[Tick, ...]
    shortened: bool

    def x(self, moment: datetime) -> float:
        """Per cent from the left, 0 to `now`. What lies outside the run is drawn at its edge."""
        return _between(self.knots, (moment - self.start).total_seconds())

    @property
    def now(self) -> float:
        return self.knots[-1][1]

    def ahead(self, due: datetime, farthest: datetime) -> float:
        """How wide a bar from now to `due` is, when the one to `farthest` fills what is left of the axis."""
        room, longest = 99.6 - self.now, (farthest - self.end).total_seconds()
        share = (due - self.end).total_seconds() / longest if longest > 0 else 1.0
        return round(max(2.0, min(1.0, share) * room), 2)


def make_axis(start: datetime, end: datetime, work: Iterable[tuple[datetime, datetime]]) -> Axis:
    """The axis of a run from `start` to `end` (now, for one that goes on), of which `work` are the busy spans."""
    total = max((end - start).total_seconds(), 0.01)
    busy = _merged([(_since(start, a, total), _since(start, b, total)) for a, b in work])
    worked = sum(b - a for a, b in busy)
    lengths = _drawn_lengths(total, busy, worked)
    drawn = sum(length for _, length in lengths)
    unit = next((step for step in STEPS if step * NOW_AT / TICK_EVERY >= drawn), drawn * TICK_EVERY / NOW_AT)
    knots, place, seconds = [(0.0, 0.0)], 0.0, 0.0
    for length, shown in lengths:
        seconds, place = seconds + length, place + shown * TICK_EVERY / unit
        knots.append((seconds, place))
    shortened = any(shown < length for length, shown in lengths)
    scaled = next((knots[i][1] for i, (length, shown) in enumerate(lengths) if shown < length), knots[-1][1])
    last = scaled - (3 if shortened else 8)
    ticks = tuple(Tick(i * TICK_EVERY, i * unit) for i in range(TICKS) if i * TICK_EVERY <= last or i == 0)
    return Axis(start, end, tuple(knots), ticks, shortened)


def _drawn_lengths(total: float, busy: list[tuple[float, float]], worked: float) -> list[tuple[float, float]]:
    """(seconds, seconds as drawn) of each stretch, in order."""
    stretches = _stretches(total, busy)
    if total <= LINEAR_UP_TO * worked or not worked:
        return [(length, length) for length, _ in stretches]
    longest_to_scale = max(worked / 2, 0.5)
    long = [length for length, idle in stretches if idle and length > longest_to_scale]
    rest = total - sum(long)
    room = max(rest * WAITING_SHARE / (1 - WAITING_SHARE), longest_to_scale)
    return [
        (length, min(length, room / len(long)) if idle and length > longest_to_scale else length)
        for length, idle in stretches
    ]


def _stretches(total: float, busy: list[tuple[float, float]]) -> list[tuple[float, bool]]:
    """(length, is idle) of each stretch between 0 and `total`."""
    edges = [0.0, *(edge for span in busy for edge in span), total]
    return [(b - a, place % 2 == 0) for place, (a, b) in enumerate(pairwise(edges)) if b > a]


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for a, b in sorted(spans):
        if merged and a <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], b))
        else:
            merged.append((a, b))
    return merged


def _since(start: datetime, moment: datetime, total: float) -> float:
    return min(total, max(0.0, (moment - start).total_seconds()))


def _between(knots: tuple[tuple[float, float], ...], seconds: float) -> float:
    place = bisect_right(knots, seconds, key=lambda knot: knot[0])
    if place == 0:
        return 0.0
    if place == len(knots):
        return knots[-1][1]
    (a, xa), (b, xb) = knots[place - 1], knots[place]
    return round(xa + (xb - xa) * (seconds - a) / (b - a), 3)
