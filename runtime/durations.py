"""Durations as people write them: `90s`, `15m`, `2h`, `3d`, `1w`, also joined (`1d 12h`). Months have no fixed length."""

from __future__ import annotations

import re
from datetime import timedelta

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
LONGEST = timedelta(days=3660)
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|[smhdw])\s*")


def parse_duration(text: str) -> timedelta:
    """`"1d 12h"` -> timedelta. ValueError names what was wrong and what would be right."""
    source, position, seconds = text.strip(), 0, 0.0
    while position < len(source):
        part = _PART.match(source, position)
        if part is None:
            break
        seconds += float(part[1]) * UNITS[part[2]]
        position = part.end()
    if not source or position < len(source):
        raise ValueError(f"“{text[:40]}” is not a duration. Write a number and a unit, such as 30s, 15m, 2h or 3d.")
    if seconds > LONGEST.total_seconds():
        raise ValueError("That is longer than ten years.")
    return timedelta(seconds=seconds)
