"""A definition -> what the canvas draws, and two drawings -> the smallest parts to swap. Pure.

The templates under `canvas/` print these as nested lists. Ids of elements come from ids of steps, so that a part can be
found and swapped by itself: `node-<step>` is a step with everything under it, `step-<step>` its card,
`flow-<step>-<lane>` the list of a lane.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from runtime.definition import Problem, children, walk
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .editing.places import ERROR_LANE, holds_body, label_of
from .editing.triggers import trigger_label
from .forms.conditions import decompose
from .sequences import longest_common

LONGEST_LINE = 500
"""Characters of a step's line: a card shows fewer, and a row of braces takes a time that grows with its square."""
_HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Card:
    """`line` is the small text under the name, `mark` "New" or "Edited", `problem` the first of its problems,
    `retries` how often it is tried where that was said, `inside` how many steps it holds, `troubles` how many of these
    have a problem."""

    id: str
    type: str
    name: str
    line: str
    mark: str = ""
    problem: str = ""
    warning: bool = False
    off: bool = False
    note: str = ""
    retries: int = 0
    inside: int = 0
    troubles: int = 0
    logic: bool = False
    trigger: bool = False
    pinned: bool = False
    run: str = ""
    """Where a run is laid over the drawing: how the step stands in it."""

    @property
    def flagged(self) -> bool:
        return bool(self.off or self.retries or self.note or self.problem or self.pinned)


@dataclass(frozen=True, slots=True)
class Lane:
    """`through` is the lane that a step with an error lane takes when all is well: nothing stands in it."""

    id: str
    label: str
    flow: Flow
    spoken: str = ""
    through: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """Text on the canvas; `where` tells in words what it stands beside."""

    id: str
    text: str
    beside: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """One step. `lanes` of a condition hang under the card, those of a parallel and the `body` of a loop stand in a
    frame; `error` are the two lanes behind a step whose failure is handled."""

    card: Card
    lanes: tuple[Lane, ...] = ()
    body: Lane | None = None
    again: str = ""
    error: tuple[Lane, ...] = ()
    link: str = "next"
    after: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def id(self) -> str:
        return self.card.id

    @property
    def open(self) -> bool:
        """Nothing follows in this lane."""
        return self.link == "open"

    @property
    def framed(self) -> bool:
        return self.body is not None or self.card.type == "parallel"

    def shape(self) -> Any:
        """What must be equal for the inside to be swapped piece by piece."""
        lanes = [(lane.id, lane.label, lane.spoken, not lane.flow.nodes) for lane in self.every_lane()]
        return lanes, self.framed, self.again, self.link, self.after, self.card.name, self.notes

    def every_lane(self) -> tuple[Lane, ...]:
        return (*self.lanes, *((self.body,) if self.body else ()), *self.error)


@dataclass(frozen=True, slots=True)
class Flow:
    """A sequence. The top one has no parent and ends with the flow's end."""

    parent: str
    lane: str
    nodes: tuple[Node, ...] = ()

    @property
    def id(self) -> str:
        return f"flow-{self.parent}-{self.lane}" if self.parent else "flow"


@dataclass(frozen=True, slots=True)
class Drawing:
    """`triggers` stand above the top flow, `notes` above these."""

    name: str
    triggers: tuple[Card, ...]
    flow: Flow
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """`kind` is delete, card, node, insert (the node, after the element `target`, or first in it), triggers or notes."""

    kind: str
    target: str
    card: Card | None = None
    node: Node | None = None
    first: bool = False
    triggers: tuple[Card, ...] = field(default=())
    notes: tuple[Note, ...] = field(default=())


def drawing(
    definition: dict[str, Any],
    *,
    problems: Iterable[Problem] = (),
    marks: Mapping[str, str] = MappingProxyType({}),
    pins: Set[str] = frozenset(),
) -> Drawing:
    worst: dict[str, Problem] = {}
    for problem in problems:
        if problem.step not in worst or (worst[problem.step].warning and not problem.warning):
            worst[problem.step] = problem
    names = {step["id"]: label_of(step) for step in walk(definition.get("steps") or [])} if definition.get("notes") else {}
    notes = [_note(note, names) for note in definition.get("notes") or []]
    painter = _Painter(worst, marks, pins, tuple(notes))
    triggers = tuple(painter.trigger(trigger) for trigger in definition.get("triggers") or [])
    flow = painter.flow(definition.get("steps") or [], "", "")
    return Drawing(str(definition.get("name", "")), triggers, flow, tuple(note for note in notes if not note.beside))


def _note(note: dict[str, Any], names: Mapping[str, str]) -> Note:
    """One beside a step that is not there stands at the top."""
    beside = note.get("beside") or ""
    beside = beside if beside in names else ""
    return Note(note["id"], note.get("text", ""), beside, f"beside {names[beside]}" if beside else "at the top")


@dataclass(frozen=True, slots=True)
class _Painter:
    worst: Mapping[str, Problem]
    marks: Mapping[str, str]
    pins: Set[str]
    notes: tuple[Note, ...]

    def flow(self, steps: list[dict[str, Any]], parent: str, lane: str) -> Flow:
        last = len(steps) - 1
        inner = "open" if parent else "end"
        return Flow(parent, lane, tuple(self.node(step, "next" if n < last else inner) for n, step in enumerate(steps)))

    def node(self, step: dict[str, Any], link: str) -> Node:
        name, notes = label_of(step), tuple(note for note in self.notes if note.beside == step["id"])
        last = "before the end" if link == "end" else ""
        if not (step.get("branches") or isinstance(step.get("on_error"), dict) or holds_body(step)):
            return Node(self.card(step, name), again=_again(step), link=link, after=last or f"after {name}", notes=notes)
        inner = dict(children(step))
        error = ()
        if ERROR_LANE in inner:
            done = Lane("", "Done", Flow(step["id"], "done"), f"{name} is done", through=True)
            error = (done, self.lane(step, ERROR_LANE, "If it fails", inner[ERROR_LANE]))
        branches = step.get("branches") or []
        lanes = tuple(
            self.lane(step, branch["id"], branch.get("label") or branch["id"], inner[branch["id"]])
            for branch in branches
        )
        body = self.lane(step, "", name, step.get("steps") or []) if holds_body(step) else None
        within = [node for lane in (*lanes, *((body,) if body else ()), *error) for node in lane.flow.nodes]
        card = self.card(
            step,
            name,
            inside=sum(1 + node.card.inside for node in within),
            troubles=sum(bool(node.card.problem) + node.card.troubles for node in within),
        )
        after = f"after {name}" if not (lanes or error) or body else "after the lanes join"
        return Node(card, lanes, body, _again(step), error, link, last or after, notes)

    def lane(self, step: dict[str, Any], lane: str, label: str, steps: list[dict[str, Any]]) -> Lane:
        spoken = f"the {label} lane" if lane else label
        return Lane(lane, label, self.flow(steps, step["id"], lane), spoken)

    def card(self, step: dict[str, Any], name: str, inside: int = 0, troubles: int = 0) -> Card:
        kind = step_types().get(step["type"])
        config = step.get("config") or {}
        line = _line(kind, config) if kind else f"Unknown type {step['type']}"
        if step["type"] == "condition":
            line = _condition_line(step)
        off = bool(step.get("off"))
        return Card(
            step["id"],
            step["type"],
            name,
            "Off · skipped in runs" if off else line,
            off=off,
            note=step.get("note", ""),
            retries=int((step.get("retry") or {}).get("max_attempts") or 0),
            inside=inside,
            troubles=troubles,
            logic=bool(kind and kind.children),
            **self._flags(step["id"]),
        )

    def trigger(self, trigger: dict[str, Any]) -> Card:
        kind = trigger_kinds().get(trigger["type"])
        line = _line(kind, trigger.get("config") or {}) if kind else f"Unknown type {trigger['type']}"
        name = trigger_label(trigger)
        flags = self._flags(trigger["id"])
        return Card(trigger["id"], trigger["type"], name, _unlike(name, line, kind), trigger=True, **flags)

    def _flags(self, owner: str) -> dict[str, Any]:
        problem = self.worst.get(owner)
        return {
            "mark": self.marks.get(owner, ""),
            "pinned": owner in self.pins,
            "problem": problem.message if problem else "",
            "warning": bool(problem and problem.warning),
        }


def _unlike(name: str, line: str, kind: Any) -> str:
    """The line without its first word where a card without a name of its own says that already."""
    if line == name and kind:
        return kind.summary
    rest = line.removeprefix(f"{name} · ")
    return rest[:1].upper() + rest[1:]


def _last_name(hole: re.Match[str]) -> str:
    """`{{ steps.qualify.output.score }}` -> `‹score›`: a card has room for what a value is, not for where it comes
    from."""
    names = re.findall(r"[A-Za-z_]\w*", hole[1])
    return f"‹{names[-1]}›" if names else "‹…›"


def _line(kind: Any, config: dict[str, Any]) -> str:
    """A plug-in's line must not take the canvas down: a config in the middle of being written may be anything."""
    try:
        return _HOLE.sub(_last_name, str(kind.line(config))[:LONGEST_LINE])
    except Exception:  # noqa: BLE001
        return str(kind.summary)


def _condition_line(step: dict[str, Any]) -> str:
    rules = sum(_count_rules(branch["when"]) for branch in step.get("branches") or [] if branch.get("when"))
    return f"Condition · {rules} rule{'' if rules == 1 else 's'}" if rules else "Condition · no rule yet"


def _count_rules(expression: str) -> int:
    rules = decompose(expression)
    return sum(1 for _ in rules.each()) if rules else 1


def _again(step: dict[str, Any]) -> str:
    if step.get("type") == "parallel":
        config = step.get("config") or {}
        count = {"any": 1, "count": config.get("needed", 2)}.get(str(config.get("join", "all")))
        return "all lanes done" if count is None else f"{count} lane{'' if count == 1 else 's'} done"
    if not holds_body(step):
        return ""
    return "again while true" if (step.get("config") or {}).get("while") else "next item"


def every_card(drawn: Drawing) -> list[Patch]:
    """The swaps that draw each card anew, where nobody knows what the page shows of them."""
    return [Patch("triggers", "node-triggers", triggers=drawn.triggers), *_cards(drawn.flow)]


def _cards(flow: Flow) -> Iterator[Patch]:
    for node in flow.nodes:
        yield Patch("card", f"step-{node.id}", card=node.card)
        for lane in node.every_lane():
            yield from _cards(lane.flow)


def patches(before: Drawing, after: Drawing) -> list[Patch]:
    """The swaps that make `before` look like `after`. Deletions come first, so that a step that moved is never there
    twice."""
    found = [*_patches_of_flow(before.flow, after.flow)]
    if before.notes != after.notes:
        found.append(Patch("notes", "notes-top", notes=after.notes))
    if before.triggers != after.triggers:
        found.append(Patch("triggers", "node-triggers", triggers=after.triggers))
    return sorted(found, key=lambda patch: patch.kind != "delete")


def _patches_of_flow(old: Flow, new: Flow) -> Iterator[Patch]:
    before = {node.id: node for node in old.nodes}
    stays = set(longest_common([node.id for node in old.nodes], [node.id for node in new.nodes]))
    for node in old.nodes:
        if node.id not in stays:
            yield Patch("delete", f"node-{node.id}")
    previous = ""
    for node in new.nodes:
        if node.id in stays:
            yield from _patches_of_node(before[node.id], node)
        else:
            target = f"node-{previous}" if previous else ("node-triggers" if not new.parent else new.id)
            yield Patch("insert", target, node=node, first=not previous and bool(new.parent))
        previous = node.id


def _patches_of_node(old: Node, new: Node) -> Iterator[Patch]:
    if not (new.lanes or new.body or new.error) and old == new:
        return  # as most of them
    if old.shape() != new.shape():
        yield Patch("node", f"node-{new.id}", node=new)
        return
    if old.card != new.card:
        yield Patch("card", f"step-{new.id}", card=new.card)
    for before, after in zip(old.every_lane(), new.every_lane(), strict=True):
        yield from _patches_of_flow(before.flow, after.flow)
