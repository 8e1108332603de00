"""Parts of points in time (with an optional time zone) and of lengths of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ..errors import EvaluationError
from ..fuel import Evaluation
from ..times import local
from ..values import SECOND, Duration, Timestamp
from .registry import function

# Months, days of the month (but getDate) and days of the year count from 0, Sunday is day 0: so the specification.
_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
}
_LENGTHS = {"getHours": 3600 * SECOND, "getMinutes": 60 * SECOND, "getSeconds": SECOND}


def _declare_part(name: str, part: Callable[[datetime], int]) -> None:
    @function(f"timestamp.{name}", Timestamp)
    @function(f"timestamp.{name}", Timestamp, str)
    def get(run: Evaluation, moment: Timestamp, zone: str | None = None) -> int:
        return part(_local(run, moment, zone))


def _declare_length(name: str, unit: int) -> None:
    @function(f"duration.{name}", Duration)
    def get(run: Evaluation, length: Duration) -> int:
        return int(length) // unit if length >= 0 else -(-int(length) // unit)


def _local(run: Evaluation, moment: Timestamp, zone: str | None) -> datetime:
    run.charge(5)
    try:
        return local(moment, zone)
    except EvaluationError:
        run.charge(500)  # an unknown zone was looked for in the file system
        raise


for _name, _part in _PARTS.items():
    _declare_part(_name, _part)
for _name, _unit in _LENGTHS.items():
    _declare_length(_name, _unit)


@function("timestamp.getMilliseconds", Timestamp)
@function("timestamp.getMilliseconds", Timestamp, str)
def milliseconds_of_second(run: Evaluation, moment: Timestamp, zone: str | None = None) -> int:
    _local(run, moment, zone)  # an unknown zone is an error here as elsewhere
    return int(moment) % SECOND // 1_000_000


@function("duration.getMilliseconds", Duration)
def milliseconds(run: Evaluation, length: Duration) -> int:
    """What is left after whole seconds."""
    rest = abs(int(length)) % SECOND // 1_000_000
    return rest if length >= 0 else -rest
