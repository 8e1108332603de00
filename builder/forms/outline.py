"""A JSON value as rows of an outline, so that nested data can be edited without writing JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .plain import from_text, to_text

VALUE, GROUP, LIST = "value", "group", "list"


class OutlineError(ValueError):
    """`row` is the index of the row to blame."""

    def __init__(self, row: int, message: str):
        super().__init__(message)
        self.row = row


@dataclass(frozen=True, slots=True)
class Row:
    """`depth` counts from 0. Items of a list have no key. `text` is only of values."""

    depth: int
    key: str
    kind: str
    text: str = ""
    in_list: bool = False


def rows(value: Any, depth: int = 0) -> list[Row]:
    """The rows of what stands in a group or list. Empty groups and lists are values (`{}`, `[]`)."""
    found: list[Row] = []
    in_list = isinstance(value, list)
    for key, item in enumerate(value) if in_list else value.items():
        kind = GROUP if isinstance(item, dict) and item else LIST if isinstance(item, list) and item else VALUE
        text = to_text(item) if kind == VALUE else ""
        found.append(Row(depth, "" if in_list else str(key), kind, text, in_list))
        if kind != VALUE:
            found += rows(item, depth + 1)
    return found


def value_of(found: Iterable[Row]) -> dict[str, Any]:
    """The group that the rows make. A row with neither key nor value is one that nobody has filled in yet."""
    top: dict[str, Any] = {}
    open_: list[Any] = [top]
    for index, row in enumerate(found):
        if row.depth >= len(open_):
            raise OutlineError(index, "This row stands under nothing.")
        del open_[row.depth + 1 :]
        holder = open_[row.depth]
        if not isinstance(holder, list) and not row.key.strip():
            if row.kind == VALUE and not row.text.strip():
                continue
            raise OutlineError(index, "Give this field a name.")
        item: Any = {} if row.kind == GROUP else [] if row.kind == LIST else from_text(row.text)
        if isinstance(holder, list):
            holder.append(item)
        elif row.key.strip() in holder:
            raise OutlineError(index, f"“{row.key.strip()}” is there twice.")
        else:
            holder[row.key.strip()] = item
        if row.kind != VALUE:
            open_.append(item)
    return top
