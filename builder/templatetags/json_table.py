"""`{% json_table output reads as table %}`: JSON as people read it in a spreadsheet, next to how a machine wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django import template

from runtime.tokens import without_signatures

from ..dataflow.paths import Path, written
from .json_view import DISGUISES

register = template.Library()

MOST_PAIRS = 200
MOST_GRIDS = 10
MOST_ROWS = 100
MOST_COLUMNS = 12
LONGEST_TEXT = 200
DEEPEST = 5
"""What lies deeper is told by its size. Everything is in the JSON beside it."""

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Cell:
    """`css` is the class that the JSON beside it gives such a value, "num" besides for numbers."""

    text: str
    css: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """`reference` is what an expression writes to read the value; empty where none can."""

    name: str
    reference: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class Grid:
    """A list, an item a row. `left_rows` and `left_columns` are not shown."""

    name: str
    reference: str
    count: int
    columns: list[str]
    rows: list[list[Cell | None]]
    left_rows: int
    left_columns: int


@dataclass(slots=True)
class Table:
    pairs: list[Pair] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    left: int = 0
    """Values and lists for which there was no room."""


@register.simple_tag
def json_table(value: Any, reads: str = "") -> Table | None:
    """Single values by their names, lists of objects a grid each. `reads` is the expression that gives `value`
    (`steps.qualify.output`). None where there is nothing to tabulate."""
    if not value or not isinstance(value, dict | list):
        return None
    value, table = without_signatures(value), Table()
    if isinstance(value, list):
        table.grids.append(_grid((), value, reads))
        return table
    for path, inner in _leaves(value):
        if _is_rows(inner):
            room = len(table.grids) < MOST_GRIDS
            if room:
                table.grids.append(_grid(path, inner, reads))
        else:
            room = len(table.pairs) < MOST_PAIRS
            if room:
                table.pairs.append(Pair(_name(path), _reference(path, reads), _cell(inner)))
        table.left += not room
    return table


def _leaves(value: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value below that is no object, and objects that are empty or lie too deep."""
    for key, inner in value.items():
        here = (*path, str(key))
        if isinstance(inner, dict) and inner and len(here) < DEEPEST:
            yield from _leaves(inner, here)
        else:
            yield here, inner


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _grid(path: tuple[str, ...], items: list[Any], reads: str) -> Grid:
    shown = [dict(_leaves(item)) if isinstance(item, dict) else {(): item} for item in items[:MOST_ROWS]]
    columns = list(dict.fromkeys(key for row in shown for key in row))
    kept = columns[:MOST_COLUMNS]
    return Grid(
        _name(path),
        _reference(path, reads),
        len(items),
        [_name(key) or "value" for key in kept],
        [[_cell(row[key]) if key in row else None for key in kept] for row in shown],
        len(items) - len(shown),
        len(columns) - len(kept),
    )


def _name(path: Path) -> str:
    return _shown(" › ".join(str(part) for part in path))


def _reference(path: Path, reads: str) -> str:
    return f"{{{{ {written([reads, *path])} }}}}" if reads else ""


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, bool):
        return Cell({None: "null", True: "true", False: "false"}[value], "b")
    if isinstance(value, int | float):
        return Cell(str(value), "d num")
    if isinstance(value, dict | list):
        noun = "key" if isinstance(value, dict) else "item"
        if isinstance(value, list) and value and len(value) <= MOST_COLUMNS and not any(isinstance(item, dict | list) for item in value):
            return Cell(_shown(", ".join(_cell(item).text for item in value)))
        return Cell(f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}", "muted")
    return Cell(_shown(str(value))) if value != "" else Cell("empty", "muted")


def _shown(text: str) -> str:
    """Cut, and with escapes for what would hide or reorder what is around it."""
    cut = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
    return CONTROLS.sub(_escape, DISGUISES.sub(_escape, cut))


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"
