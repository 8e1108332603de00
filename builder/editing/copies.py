"""Copies of steps, which need ids of their own."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from runtime.definition import walk

from .ids import fresh
from .places import label_of
from .references import renamed


def with_fresh_ids(steps: list[dict[str, Any]], taken: set[str]) -> list[dict[str, Any]]:
    """What they say about each other follows the new ids."""
    copies, names, used = deepcopy(steps), {}, set(taken)
    for step in walk(copies):
        names[step["id"]] = fresh(step["id"] if step["id"] not in used else _bare(step["id"]), used)
        used.add(names[step["id"]])
        step["id"] = names[step["id"]]
    return renamed({"steps": copies}, {old: new for old, new in names.items() if old != new})["steps"]


def _bare(step_id: str) -> str:
    """`call_2` -> `call`, so that its copy becomes `call_3` and not `call_2_2`."""
    head, _, tail = step_id.rpartition("_")
    return head if head and tail.isdigit() else step_id


def named(steps: list[dict[str, Any]]) -> str:
    return label_of(steps[0]) if len(steps) == 1 else f"{len(steps)} steps"
