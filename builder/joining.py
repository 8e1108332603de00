"""Two people's changes of one definition that may both stand: they touch different parts, and neither changes what the other does.

A part is a step without what stands inside it, a trigger, a note, one setting of the flow, or who follows whom in a sequence. Pure.
"""

from __future__ import annotations

import json
from typing import Any

from runtime.definition import walk

from .diff import own_of, sequences
from .editing import EditError, apply

Part = tuple[str, ...]
BEGINNING, END = "", ""
"""In the place of a neighbour's id."""


def both_stand(seen: dict[str, Any], operation: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether an operation that was made on `seen` does to `now` what it did there, beside all that was done since. Raises
    EditError when it cannot be applied to what it was made on."""
    mine = _touched(seen, apply(seen, operation).definition)
    try:
        there = _touched(now, apply(now, operation).definition)
    except EditError:
        return False
    return mine == there and mine.keys().isdisjoint(_touched(seen, now))


def _touched(before: dict[str, Any], after: dict[str, Any]) -> dict[Part, tuple[str | None, str | None]]:
    """What each part that differs was and is; None where it is not there."""
    old, new = _parts(before), _parts(after)
    return {part: (old.get(part), new.get(part)) for part in old.keys() | new.keys() if old.get(part) != new.get(part)}


def _parts(definition: dict[str, Any]) -> dict[Part, str]:
    """As text, in which 1 is not true and the order of keys counts."""
    parts: dict[Part, Any] = {("flow", key): value for key, value in definition.items() if key not in ("steps", "triggers", "notes")}
    parts |= {(kind, one["id"]): one for kind in ("triggers", "notes") for one in definition.get(kind) or []}
    parts |= {("step", step["id"]): own_of(step) for step in walk(definition.get("steps") or [])}
    for (parent, lane), steps in sequences(definition):
        parts |= {("after", parent, lane, step): then for step, then in zip([BEGINNING, *steps], [*steps, END], strict=True)}
    return {part: json.dumps(value) for part, value in parts.items()}
