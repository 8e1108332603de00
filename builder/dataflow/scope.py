"""What one step may know of another: whether it has surely run there, perhaps, or not yet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runtime.definition import children
from runtime.steps.parallel import joins_early

from ..editing.places import ERROR_LANE

Step = dict[str, Any]


class Reach(StrEnum):
    """How a step stands to the place that names it. Only the first two can be used."""

    SURE = "sure"
    MAYBE = "maybe"
    LATER = "later"
    OTHER_LANE = "other_lane"
    ALONGSIDE = "alongside"
    INSIDE_LOOP = "inside_loop"
    UNKNOWN = "unknown"


USABLE = (Reach.SURE, Reach.MAYBE)
AT_END = frozenset({"config.collect"})
"""Fields of a loop that are read at the end of an iteration: they see the steps inside."""
SEES_ITS_LOOP = AT_END | {"config.while"}
"""Fields of a loop in which `loop` is the loop itself and not the one around it."""


@dataclass(frozen=True, slots=True)
class Link:
    """One level of the way to a step: the sequence it stands in (parent id, lane), and where."""

    parent: str
    lane: str
    index: int
    step: Step


@dataclass(frozen=True, slots=True)
class Seen:
    """`through` is the container to blame and `lane` the one of its lanes, where `reach` is not SURE or LATER."""

    reach: Reach
    through: Step | None = None
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """The way to every step, by id, in the order of the page."""

    ways: dict[str, tuple[Link, ...]]

    @classmethod
    def of(cls, definition: dict[str, Any]) -> Places:
        ways: dict[str, tuple[Link, ...]] = {}
        _collect(definition.get("steps") or [], "", "", (), ways)
        return cls(ways)

    def step(self, step_id: str) -> Step | None:
        way = self.ways.get(step_id)
        return way[-1].step if way else None

    def loops(self, step_id: str, inside: bool = False) -> list[Step]:
        """The loops around a step, outermost first; with `inside`, as its own body sees it."""
        way = self.ways.get(step_id, ())
        around = [above.step for above, below in zip(way, way[1:], strict=False) if below.lane != ERROR_LANE]
        around += [way[-1].step] if inside and way else []
        return [step for step in around if step.get("type") == "loop"]

    def seen(self, owner: str, target: str, *, at_end: bool = False) -> Seen:
        """How `target` stands to `owner`. With `at_end`, from the end of the owner's own body (a loop's `collect`)."""
        here, there = self.ways.get(owner, ()), self.ways.get(target, ())
        if not there:
            return Seen(Reach.UNKNOWN)
        shared = _shared(here, there)
        if shared == len(there):
            handled = shared < len(here) and here[shared].lane == ERROR_LANE
            return Seen(Reach.SURE if handled else Reach.LATER)
        if shared == len(here):
            return self._inside(there[shared + 1 :], there[shared:]) if at_end else Seen(Reach.LATER)
        left, right = here[shared], there[shared]
        if (left.parent, left.lane) != (right.parent, right.lane):
            return _across(here[shared - 1].step, left.lane, right.lane)
        if right.index > left.index:
            return Seen(Reach.LATER)
        return self._inside(there[shared + 1 :], there[shared:])

    def _inside(self, deeper: tuple[Link, ...], boxes: tuple[Link, ...]) -> Seen:
        """A step in containers that have ended: every loop hides it, every choice makes it uncertain."""
        found = Seen(Reach.SURE)
        for link, box in zip(deeper, boxes, strict=False):
            if box.step.get("type") == "loop" and link.lane == "":
                return Seen(Reach.INSIDE_LOOP, box.step)
            if found.reach is Reach.SURE and (link.lane == ERROR_LANE or _may_be_left_out(box.step)):
                found = Seen(Reach.MAYBE, box.step, link.lane)
        return found


def _may_be_left_out(step: Step) -> bool:
    """Whether a lane of it may not have run to its end."""
    return step.get("type") == "condition" or step.get("type") == "parallel" and joins_early(step.get("config") or {})


def _collect(
    steps: list[Step], parent: str, lane: str, above: tuple[Link, ...], ways: dict[str, tuple[Link, ...]]
) -> None:
    for index, step in enumerate(steps):
        way = (*above, Link(parent, lane, index, step))
        ways.setdefault(step["id"], way)
        for name, inner in children(step):
            _collect(inner, step["id"], name, way, ways)


def _shared(here: tuple[Link, ...], there: tuple[Link, ...]) -> int:
    """How many levels both ways have in common."""
    count = 0
    while count < min(len(here), len(there)) and here[count].step is there[count].step:
        count += 1
    return count


def _across(box: Step, own: str, other: str) -> Seen:
    """Two lanes of one container."""
    if own == ERROR_LANE:
        hidden = box.get("type") == "loop"
        return Seen(Reach.INSIDE_LOOP if hidden else Reach.MAYBE, box, other)
    if box.get("type") == "parallel" and other != ERROR_LANE:
        return Seen(Reach.ALONGSIDE, box, other)
    return Seen(Reach.OTHER_LANE, box, other)


def lane_label(box: Step, lane: str) -> str:
    if lane == ERROR_LANE:
        return "If it fails"
    branch = next((one for one in box.get("branches") or [] if one["id"] == lane), None)
    return str(branch.get("label") or lane) if branch else lane
