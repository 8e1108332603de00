"""Operations on lanes: those of conditions and parallels, and the lane that a step takes when it fails."""

from __future__ import annotations

from typing import Any

from .ids import fresh
from .places import ERROR_LANE, Edit, EditError, copied, label_of, step_of


def add_lane(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, optionally `label`. A condition's new lane stands before the last one, which is for everything else."""
    draft = copied(definition)
    step = step_of(draft, operation["step"])
    branches = _branches(step)
    label = str(operation.get("label") or f"Lane {len(branches) + 1}")
    lane = {"id": fresh(label, {branch["id"] for branch in branches} | {ERROR_LANE}), "label": label, "steps": []}
    if step["type"] == "condition":
        branches.insert(max(0, len(branches) - 1), lane)
    else:
        branches.append(lane)
    return Edit(draft, f"Add a lane to {label_of(step)}", step["id"])


def remove_lane(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, `lane`: the lane and its steps."""
    draft = copied(definition)
    step = step_of(draft, operation["step"])
    if operation["lane"] == ERROR_LANE:
        step.pop("on_error", None)
        return Edit(draft, f"Remove the error lane of {label_of(step)}", step["id"])
    branches, index = _branches(step), _lane_index(step, operation["lane"])
    if len(branches) <= (2 if step["type"] == "condition" else 1):
        raise EditError(f"“{label_of(step)}” needs its last lanes. Remove or unwrap the step instead.")
    _refuse_last(step, index)
    lane = branches.pop(index)
    return Edit(draft, f"Remove the lane {lane.get('label') or lane['id']}", step["id"])


def move_lane(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, `lane`, `index` after the move. Order matters: a condition takes its first true lane."""
    draft = copied(definition)
    step = step_of(draft, operation["step"])
    branches, index = _branches(step), _lane_index(step, operation["lane"])
    target = min(max(0, int(operation["index"])), len(branches) - 1)
    _refuse_last(step, index)
    _refuse_last(step, target)
    lane = branches.pop(index)
    branches.insert(target, lane)
    return Edit(draft, f"Move the lane {lane.get('label') or lane['id']}", step["id"])


def add_error_lane(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`: from now on its failure is handled by steps of their own."""
    draft = copied(definition)
    step = step_of(draft, operation["step"])
    if not isinstance(step.get("on_error"), dict):
        step["on_error"] = {"steps": []}
    return Edit(draft, f"Add an error lane to {label_of(step)}", step["id"])


def _refuse_last(step: dict[str, Any], index: int) -> None:
    if step["type"] == "condition" and index == len(step["branches"]) - 1:
        raise EditError("The last lane of a condition is for everything else: it stays, and stays last.")


def _branches(step: dict[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(step.get("branches"), list):
        raise EditError(f"“{label_of(step)}” has no lanes.")
    return step["branches"]


def _lane_index(step: dict[str, Any], lane: str) -> int:
    for index, branch in enumerate(step["branches"]):
        if branch["id"] == lane:
            return index
    raise EditError(f"“{label_of(step)}” has no such lane any more.")


OPERATIONS = {
    "add_lane": add_lane,
    "remove_lane": remove_lane,
    "move_lane": move_lane,
    "add_error_lane": add_error_lane,
}
