"""Where steps stand, and how to find a place for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime import paths
from runtime.definition import children, find
from runtime.jsonvalues import copy_json
from runtime.steps import step_types

BODY, ERROR_LANE = "", "on_error"


class EditError(ValueError):
    """The operation cannot be applied, and why, in words for the person who edits."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What an operation gave. `label` names it for undo ("Add Delay"), `focus` is the step or trigger to select
    next, `picked` are all the steps that it was about."""

    definition: dict[str, Any]
    label: str
    focus: str = ""
    picked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Before the `index`-th step of a sequence: the top one (no `parent`), a branch by its id, a loop's body (lane ""),
    or a step's error lane (`on_error`). An index past the end means the end."""

    parent: str = ""
    lane: str = BODY
    index: int = 0

    @classmethod
    def read(cls, value: Any, definition: dict[str, Any]) -> Place:
        """`{"parent", "lane", "index"}`, or `{"after": step id}`, which stays right when others insert above it."""
        if isinstance(value, dict) and isinstance(value.get("after"), str):
            place = place_of(definition, value["after"])
            return cls(place.parent, place.lane, place.index + 1)
        if not isinstance(value, dict) or not isinstance(value.get("index", 0), int):
            raise EditError("Say where: a parent, a lane and an index, or after which step.")
        return cls(str(value.get("parent") or ""), str(value.get("lane") or ""), max(0, value.get("index", 0)))

    def json(self) -> dict[str, Any]:
        return {"parent": self.parent, "lane": self.lane, "index": self.index}


def copied(definition: dict[str, Any]) -> dict[str, Any]:
    """A copy to change freely, with the two lists that every definition has."""
    copy = copy_json(definition)
    copy.setdefault("triggers", [])
    copy.setdefault("steps", [])
    return copy


def step_of(definition: dict[str, Any], step_id: str) -> dict[str, Any]:
    step = find(definition, step_id)
    if step is None:
        raise EditError(f"There is no step “{step_id}” any more.")
    return step


def sequence(definition: dict[str, Any], place: Place) -> list[dict[str, Any]]:
    """The list, to be changed in place, that `place` points into."""
    if not place.parent:
        return definition["steps"]
    owner = step_of(definition, place.parent)
    if place.lane == ERROR_LANE and isinstance(owner.get("on_error"), dict):
        return owner["on_error"].setdefault("steps", [])
    for branch in owner.get("branches") or []:
        if branch["id"] == place.lane:
            return branch.setdefault("steps", [])
    if place.lane == BODY and holds_body(owner):
        return owner.setdefault("steps", [])
    raise EditError(f"“{label_of(owner)}” has no such lane any more.")


def place_of(definition: dict[str, Any], step_id: str) -> Place:
    """Where a step stands now."""
    found = _search(definition.get("steps") or [], Place(), step_id)
    if found is None:
        raise EditError(f"There is no step “{step_id}” any more.")
    return found


def _search(steps: list[dict[str, Any]], place: Place, step_id: str) -> Place | None:
    for index, step in enumerate(steps):
        if step["id"] == step_id:
            return Place(place.parent, place.lane, index)
        for lane, inner in children(step):
            if found := _search(inner, Place(step["id"], lane), step_id):
                return found
    return None


def holds_body(step: dict[str, Any]) -> bool:
    kind = step_types().get(step.get("type", ""))
    return step.get("steps") is not None or bool(kind and kind.children == "steps")


def label_of(step: dict[str, Any]) -> str:
    """The name on the card: the step's own, else that of its kind."""
    kind = step_types().get(step.get("type", ""))
    return str(step.get("name") or (kind.label if kind else step.get("type", "")))


def name_at(definition: dict[str, Any], path: str) -> str:
    """What the step at a place of a run is called; its id where the definition does not hold it."""
    step = paths.step_of(path)
    return label_of(find(definition, step) or {}) or step
