"""Parts of points in time (with an optional time zone) and of lengths of time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from ..errors import EvaluationError
from ..fuel import Evaluation, text_size
from ..times import local, parse_local
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


_SHOWN: dict[str, Callable[[datetime], str]] = {
    "yyyy": lambda moment: f"{moment.year:04}",
    "yy": lambda moment: f"{moment.year % 100:02}",
    "MMMM": lambda moment: _MONTHS[moment.month - 1],
    "MMM": lambda moment: _MONTHS[moment.month - 1][:3],
    "MM": lambda moment: f"{moment.month:02}",
    "M": lambda moment: str(moment.month),
    "dd": lambda moment: f"{moment.day:02}",
    "d": lambda moment: str(moment.day),
    "EEEE": lambda moment: _DAYS[moment.weekday()],
    "EEE": lambda moment: _DAYS[moment.weekday()][:3],
    "HH": lambda moment: f"{moment.hour:02}",
    "H": lambda moment: str(moment.hour),
    "hh": lambda moment: f"{(moment.hour - 1) % 12 + 1:02}",
    "h": lambda moment: str((moment.hour - 1) % 12 + 1),
    "mm": lambda moment: f"{moment.minute:02}",
    "ss": lambda moment: f"{moment.second:02}",
    "a": lambda moment: "AM" if moment.hour < 12 else "PM",
}
"""As Unicode's date patterns name them (UTS 35), in English whatever the machine's language."""
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*")


@function("timestamp.format", Timestamp, str)
@function("timestamp.format", Timestamp, str, str)
def show(run: Evaluation, moment: Timestamp, pattern: str, zone: str | None = None) -> str:
    """By a pattern such as `d MMMM yyyy, HH:mm`; what stands in '…' is taken as it is."""
    run.charge(len(pattern))
    shown = local(moment, zone) if zone is None else _local(run, moment, zone)
    text = _PART.sub(lambda found: _part_of(found, shown), pattern)
    run.allocate(text_size(text))
    return text


def _part_of(found: re.Match[str], moment: datetime) -> str:
    if found[1] is not None:
        return found[1].replace("''", "'")
    if found[0] not in _SHOWN:
        words = "Write yyyy, MM or MMMM, dd, EEEE, HH, mm, ss, and put words in quotes: 'at'."
        raise EvaluationError("value", f"`{found[0][:20]}` is no part of a date. {words}")
    return _SHOWN[found[0]](moment)


@function("timestamp", str, str)
def read_local(run: Evaluation, text: str, zone: str) -> Timestamp:
    """What clocks of the zone show, such as `2027-01-15T09:00` or a date alone."""
    run.charge(505)
    return parse_local(text, zone)


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
