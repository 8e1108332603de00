"""Near misses, for "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_NAME = 64  # difflib is quadratic in the length of a name


def suggest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` most likely stands for, or None when nothing is near."""
    if len(name) > LONGEST_NAME:
        return None
    candidates = {other.lower(): other for other in known if len(other) <= LONGEST_NAME and other != name}
    matches = get_close_matches(name.lower(), candidates, n=1, cutoff=0.6)
    return candidates[matches[0]] if matches else None
