"""pure: a run laid over the drawing of its version: the state of every step, and in one line how it went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from builder.templatetags.formats import duration
from runtime.paths import step_of

from .drawing import Card, Drawing, Flow, Lane
from .drawing import Node as Drawn
from .runtree import Node

TELLING = ("attention", "failed", "running", "waiting", "cancelled", "succeeded", "queued", "skipped")


def laid_over(drawing: Drawing, nodes: Sequence[Node]) -> Drawing:
    started = next((node.name for node in nodes if node.kind == "trigger"), "")
    triggers = tuple(replace(card, run="succeeded" if card.name == started else "") for card in drawing.triggers)
    return replace(drawing, triggers=triggers, flow=_flow(drawing.flow, by_step(nodes, TELLING)))


def by_step(nodes: Iterable[Node], telling: Sequence[str]) -> dict[str, Node]:
    """Of several places at which a step stands, as in iterations, the one whose state comes first among these."""
    found: dict[str, Node] = {}
    for node in nodes:
        if node.kind == "step":
            step = step_of(node.path)
            if step not in found or telling.index(node.state) < telling.index(found[step].state):
                found[step] = node
    return found


def _flow(flow: Flow, found: dict[str, Node]) -> Flow:
    return replace(flow, nodes=tuple(_node(node, found) for node in flow.nodes))


def _node(drawn: Drawn, found: dict[str, Node]) -> Drawn:
    return replace(
        drawn,
        card=_card(drawn.card, found.get(drawn.id)),
        lanes=tuple(_lane(lane, found) for lane in drawn.lanes),
        body=_lane(drawn.body, found) if drawn.body else None,
        error=tuple(_lane(lane, found) for lane in drawn.error),
    )


def _lane(lane: Lane, found: dict[str, Node]) -> Lane:
    return replace(lane, flow=_flow(lane.flow, found))


def _card(card: Card, node: Node | None) -> Card:
    """In place of what the step is set to do: what it did. Marks and problems of the builder have no place here."""
    if node is None:
        return replace(card, run="queued", problem="")
    return replace(card, run=node.state, line=_line(node) or card.line, problem="")


def _line(node: Node) -> str:
    parts: list[Any] = []
    if node.note is not None and node.note.moment is None:
        parts.append(f"{node.note.before}{node.note.bold}")
    if node.loop is not None or node.aside:
        parts.append(node.aside)
    if node.time is not None:
        parts.append(duration(node.time))
    if node.attempts and node.attempts > 1:
        parts.append(f"{node.attempts:,} attempts")
    return " · ".join(part for part in parts if part)
