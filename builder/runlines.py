"""pure: the nodes of the step table, each with its bars and its words placed on the axis."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .runtree import Node, Note, Span
from .waterfall import Axis

THINNEST = 0.4
ROOM_BEFORE = 24.0
"""Words stand before a bar that begins at least this far from the left, in per cent."""
LETTER = 2.0
"""The width of a letter where the axis is narrow, in per cent."""
ROOM_AFTER = 82.0
"""Words after a bar that ends farther right would be cut; the panel says them too."""


@dataclass(frozen=True, slots=True)
class Bar:
    css: str
    x: float
    width: float
    title: str

    @property
    def vars(self) -> str:
        return f"--x:{self.x:.2f};--w:{self.width:.2f}"


@dataclass(frozen=True, slots=True)
class Line:
    node: Node
    bars: tuple[Bar, ...]
    note: Note | None
    note_x: float
    note_before: bool

    @property
    def note_vars(self) -> str:
        return f"--x:{self.note_x:.2f}"


def lines(nodes: list[Node], axis: Axis) -> list[Line]:
    farthest = max((span.end for node in nodes for span in node.spans if span.kind == "next"), default=axis.end)
    return [_line(node, axis, farthest) for node in nodes]


def busy(nodes: list[Node]) -> list[tuple[datetime, datetime]]:
    """The spans that the axis has to show to scale: work, and loops and iterations that have ended."""
    return [
        (span.start, span.end)
        for node in nodes
        for span in node.spans
        if span.kind in ("work", "lost")
        or span.kind == "group" and node.state in ("succeeded", "failed") and (node.kind == "iteration" or node.loop)
    ]


def _line(node: Node, axis: Axis, farthest: datetime) -> Line:
    bars = tuple(_bar(span, axis, farthest) for span in node.spans)
    after = max((bar.x + bar.width for bar in bars), default=0.0) + 1.5
    before = bool(node.note and (node.note.leads or after + _width(node.note) > 100) and bars and bars[0].x >= ROOM_BEFORE)
    x = (bars[0].x - 1) if before else after
    note = node.note if node.note and (before or x < ROOM_AFTER) else None
    return Line(node, bars, note, x, before)


def _width(note: Note) -> float:
    """About how much of the axis its words take, in per cent."""
    return LETTER * (len(note.before) + len(note.bold) + (8 if note.moment else 0))


def _bar(span: Span, axis: Axis, farthest: datetime) -> Bar:
    css = "" if span.kind == "work" else f"bar--{span.kind}"
    if span.kind == "next":
        return Bar(css, axis.now, axis.ahead(span.end, farthest), span.title)
    x, end = axis.x(span.start), axis.x(span.end)
    return Bar(css, min(x, 100 - THINNEST), max(THINNEST, end - x), span.title)


def tick_word(seconds: float, duration: Any) -> str:
    """The label of a tick: "45 s", "1 m 30 s"; zero without decimals."""
    return "0 s" if not seconds else duration(int(seconds) if float(seconds).is_integer() else seconds)
