"""JSON values as people type them: `42` is a number, `true` is true, `"42"` in quotes is text, all else is text as it
stands."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_WORDS = {"true": True, "false": False, "null": None}


def to_text(value: Any) -> str:
    """The text that `from_text` turns back into the value. Text that would be read as something else gets quotes."""
    if isinstance(value, str):
        return value if _is_plain(value) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def from_text(text: str) -> Any:
    """Never fails: what is not JSON is text."""
    stripped = text.strip()
    if stripped in _WORDS:
        return _WORDS[stripped]
    if stripped[:1] in ('"', "[", "{") or _NUMBER.fullmatch(stripped):
        try:
            return _storable(json.loads(stripped))
        except ValueError:
            return text
    return text


def _is_plain(text: str) -> bool:
    return from_text(text) == text and type(from_text(text)) is str


def _storable(value: Any) -> Any:
    """`1e999` reads as infinity and a long number goes beyond 64 bits: then it was text."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not finite")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("beyond 64 bits")
    return value
