"""What of a draft a test run runs: everything, or only the way to one step; with pinned outputs in place of steps. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from runtime.definition import walk

from .editing.places import label_of

Step = dict[str, Any]


def up_to(definition: dict[str, Any], step_id: str) -> dict[str, Any]:
    """The definition without what comes after a step. Other lanes of a condition stay, since one of them may be taken;
    those of a parallel are no part of the way. An id that is not there cuts nothing."""
    cut = deepcopy(definition)
    steps, found = _way(cut.get("steps") or [], step_id)
    return {**cut, "steps": steps} if found else definition


def _way(steps: list[Step], step_id: str) -> tuple[list[Step], bool]:
    for index, step in enumerate(steps):
        if step["id"] == step_id or _cut_inside(step, step_id):
            return steps[: index + 1], True
    return steps, False


def _cut_inside(step: Step, step_id: str) -> bool:
    """Whether the step is somewhere in this one, which then holds only the way to it."""
    if isinstance(step.get("on_error"), dict):
        step["on_error"]["steps"], found = _way(step["on_error"].get("steps") or [], step_id)
        if found:
            return True
    if step.get("steps"):
        step["steps"], found = _way(step["steps"], step_id)
        if found:
            (step.get("config") or {}).pop("collect", None)  # it may speak of steps that are cut
            return True
    branches = step.get("branches") or []
    for branch in branches:
        branch["steps"], found = _way(branch.get("steps") or [], step_id)
        if found:
            if step.get("type") == "parallel":
                step["branches"] = [branch]
            return True
    return False


def with_pins(definition: dict[str, Any], pins: Mapping[str, Any]) -> dict[str, Any]:
    """Every pinned step replaced by one that gives the pinned output, at once and without an effect."""
    if not pins:
        return definition
    changed = deepcopy(definition)
    for step in list(walk(changed.get("steps") or [])):
        if step["id"] in pins and not step.get("off"):
            kept = {"id": step["id"], "name": f"{label_of(step)} (pinned)"[:200]}
            step.clear()
            step.update(kept, type="set", config={"values": literal(pins[kept["id"]])})
    return changed


def literal(value: Any) -> Any:
    """Data is data: braces in it must not be read as a template."""
    if isinstance(value, str):
        return value.replace("{{", '{{ "{{" }}')
    if isinstance(value, list):
        return [literal(item) for item in value]
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    return value
