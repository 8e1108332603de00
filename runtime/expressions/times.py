"""Points in time and lengths of time: reading, writing, and taking them apart.

Timestamps are RFC 3339 texts, durations the texts of Go's time package ("1h30m", "-1.5s") and, beyond that, days ("3d",
of 24 hours).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from . import operators
from .errors import EvaluationError
from .values import EPOCH, SECOND, Duration, Timestamp

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(?:[Zz]|([+-][0-9]{2}:[0-9]{2}))",
)
_DURATION_PART = re.compile(r"([0-9]{0,20})(?:\.([0-9]{0,20}))?(ns|us|µs|μs|ms|s|m|h|d)")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND}
_UNITS |= {"h": 3600 * SECOND, "d": 86_400 * SECOND}
_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")
_ZONE = re.compile(r"[A-Za-z0-9_+/-]{1,64}")
_EXAMPLE = 'Write it like "2026-05-31T09:00:00Z".'


def parse_timestamp(text: str) -> Timestamp:
    match = _TIMESTAMP.fullmatch(text) if len(text) <= 40 else None
    if match is None:
        raise EvaluationError("value", f"`{shorten(text)}` is not a date and time. {_EXAMPLE}")
    date, time, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{date}T{time}+00:00")
    except ValueError:
        raise EvaluationError("value", f"`{shorten(text)}` is not a date and time that exists. {_EXAMPLE}") from None
    seconds = (moment - EPOCH) // timedelta(seconds=1)
    if offset:
        seconds -= _offset_seconds(offset)
    return operators.timestamp(seconds * SECOND + int((fraction or "").ljust(9, "0")))


def parse_local(text: str, zone: str) -> Timestamp:
    """A date, or a date and time, of a zone. A time that a change of clocks skips moves forward by the gap, one that comes
    twice means the first (PEP 495)."""
    try:
        moment = datetime.fromisoformat(text if len(text) <= 40 else "")
    except ValueError:
        words = 'Write it like "2026-05-31" or "2026-05-31T09:00".'
        raise EvaluationError("value", f"`{shorten(text)}` is not a date and time. {words}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=_zone(zone))
    return operators.timestamp((moment - EPOCH) // timedelta(microseconds=1) * 1000)


def format_timestamp(moment: Timestamp) -> str:
    seconds, nanos = divmod(int(moment), SECOND)
    text = (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    return f"{text}{_fraction(nanos)}Z"


def parse_duration(text: str) -> Duration:
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    nanos, offset = 0, 0
    while offset < len(unsigned) and len(text) <= 100:
        match = _DURATION_PART.match(unsigned, offset)
        if match is None or not (match[1] or match[2]):
            break
        unit = _UNITS[match[3]]
        nanos += int(match[1] or 0) * unit + int(match[2] or "0") * unit // 10 ** len(match[2] or "0")
        offset = match.end()
    if (offset < len(unsigned) or not unsigned) and unsigned != "0":
        raise EvaluationError("value", f'`{shorten(text)}` is not a length of time. Write it like "1h30m" or "90s".')
    return operators.duration(-nanos if text[:1] == "-" else nanos)


def format_duration(length: Duration) -> str:
    """In seconds: "5400s", "1.5s"."""
    seconds, nanos = divmod(abs(int(length)), SECOND)
    return f"{'-' if length < 0 else ''}{seconds}{_fraction(nanos)}s"


def _fraction(nanos: int) -> str:
    return "." + f"{nanos:09d}".rstrip("0") if nanos else ""


def local(moment: Timestamp, zone: str | None) -> datetime:
    """The wall clock at that moment, without what is smaller than a second."""
    utc = EPOCH + timedelta(seconds=int(moment) // SECOND)
    if zone is None:
        return utc
    try:
        return utc.astimezone(_zone(zone))
    except (OverflowError, ValueError):
        raise EvaluationError("overflow", "The point in time is outside of the years 1 to 9999 in that zone.") from None


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if _OFFSET.fullmatch(name):
        return timezone(timedelta(seconds=_offset_seconds(name)))
    try:
        if _ZONE.fullmatch(name) and name != "localtime":  # that one is the machine's, and no two need agree
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a folder of the zone database gives OSError
        pass
    raise EvaluationError("value", f'`{shorten(name)}` is not a time zone. Write it like "Europe/Berlin" or "+02:00".')


def _offset_seconds(text: str) -> int:
    sign, hours, minutes = _OFFSET.fullmatch(text).groups()
    if int(hours) > 23 or int(minutes) > 59:
        raise EvaluationError("value", f"`{text}` is not an offset from UTC.")
    seconds = int(hours) * 3600 + int(minutes) * 60
    return -seconds if sign == "-" else seconds


def shorten(text: str, width: int = 40) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
