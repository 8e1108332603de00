"""Steps of a kind: a new one, and one that becomes another kind."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pydantic import BaseModel, ValidationError

from runtime.definition import children
from runtime.steps import step_types
from runtime.steps.base import StepType

from ..fields import config_fields
from .ids import fresh
from .places import ERROR_LANE, Edit, EditError, copied, label_of, place_of, sequence

CHOSEN = {"choice", "duration"}
"""Kinds of fields that a new step begins with, as in the kind's example: what is text, data or an address comes from whoever
makes the flow."""


def new_step(type_: str, taken: set[str], name: str = "") -> dict[str, Any]:
    """A step of a kind, with lanes for a condition or parallel, a body for a loop. What it needs and cannot know is missing, so
    that its problems say so."""
    kind = kind_of(type_)
    step: dict[str, Any] = {"id": fresh(name or kind.label, taken), "type": type_}
    if name:
        step["name"] = name
    if config := _begun(kind):
        step["config"] = config
    return step | _room(kind)


def _begun(kind: StepType) -> dict[str, Any]:
    chosen = {field.name for field in config_fields(kind.Config) if field.kind in CHOSEN}
    return {name: deepcopy(value) for name, value in (kind.example or {}).items() if name in chosen}


def replace_type(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, `type`: the step becomes one of another kind. Its id, name and note stay, and what both kinds know:
    fields of the same name whose values are good for the new kind, the steps inside, what to do when it fails."""
    draft, kind = copied(definition), kind_of(operation["type"])
    place = place_of(draft, operation["step"])
    steps = sequence(draft, place)
    old = steps[place.index]
    if old["type"] == kind.type:
        raise EditError(f"“{label_of(old)}” is of this type already.")
    new = {name: old[name] for name in ("id", "name", "note", "off", "timeout", "on_error", "retry") if name in old}
    new |= {"type": kind.type} | _refilled(old, kind)
    if config := _shared(old.get("config") or {}, kind):
        new["config"] = config
    if kind.outside and "on_interrupted" in old:
        new["on_interrupted"] = old["on_interrupted"]
    steps[place.index] = {name: new[name] for name in ("id", "type", *new)}
    return Edit(draft, f"Make {label_of(old)} {_a(kind.label)}", old["id"])


def kind_of(type_: Any) -> StepType:
    kind = step_types().get(type_) if isinstance(type_, str) else None
    if kind is None:
        raise EditError(f"There is no step of type “{type_}”.")
    return kind


def _room(kind: StepType) -> dict[str, Any]:
    """The lanes or the body of a new container."""
    if kind.type == "condition":
        lanes = (("yes", "Yes"), ("no", "No"))
    else:
        lanes = (("lane_1", "Lane 1"), ("lane_2", "Lane 2"))
    if kind.children == "branches":
        return {"branches": [{"id": id_, "label": label, "steps": []} for id_, label in lanes]}
    return {"steps": []} if kind.children == "steps" else {}


def _refilled(old: dict[str, Any], kind: StepType) -> dict[str, Any]:
    """The room of the new kind with the steps that the old one held: lane for lane where both have lanes."""
    inside = [step for lane, steps in children(old) if lane != ERROR_LANE for step in steps]
    room, branches = _room(kind), old.get("branches")
    if "steps" in room:
        return {"steps": inside}
    if "branches" in room and branches:
        kept = [{name: lane[name] for name in ("id", "label", "steps") if name in lane} for lane in branches]
        return {"branches": kept if len(kept) > 1 else [*kept, room["branches"][1]]}
    if "branches" in room:
        room["branches"][0]["steps"] = inside
    elif inside:
        raise EditError(f"“{label_of(old)}” holds steps, and {_a(kind.label)} cannot. Take its steps out first.")
    return room


def _shared(config: dict[str, Any], kind: StepType) -> dict[str, Any]:
    """What the new kind begins with, and the old values that it can use."""
    result = _begun(kind)
    for name, value in config.items():
        if _fits(kind.Config, {**result, name: value}, name):
            result[name] = deepcopy(value)
    return result


def _fits(model: type[BaseModel], config: dict[str, Any], name: str) -> bool:
    try:
        model.model_validate(config)
    except ValidationError as wrong:
        return all(error["loc"] and error["loc"][0] != name for error in wrong.errors())
    return True


def _a(label: str) -> str:
    return f"{'an' if label[:1] in 'AEIOU' else 'a'} {label}"


OPERATIONS = {"replace_type": replace_type}
