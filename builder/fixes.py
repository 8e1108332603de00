"""Problems that one press puts right: a problem and what is known of its definition give the operation that does it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runtime.definition import Problem
from runtime.steps import step_types
from runtime.steps.fields import UNREADABLE
from runtime.triggers import trigger_kinds

from .dataflow import Known, put_right
from .dataflow.habits import readable
from .editing.places import label_of
from .editing.triggers import trigger_label
from .fields import config_field
from .texts import texts

LONGEST_LABEL = 48

Fix = dict[str, Any]


def with_fix(problem: Problem, known: Known) -> Problem:
    """With `fix` as `{"label", "operation"}` where there is one. A reference that is written wrongly brings its own."""
    if not problem.fix and problem.kind == UNREADABLE:
        problem = replace(problem, fix=_respelled(problem, known))
    if problem.fix:
        written = {name: problem.fix[name] for name in ("old", "new")}
        operation = {"op": "repair", "owner": problem.step, "field": problem.field, **written}
        return replace(problem, fix={**problem.fix, "operation": operation})
    step = known.places.step(problem.step)
    fix = _of_step(problem, step) if step else _of_trigger(problem, known.definition)
    return replace(problem, fix=fix) if fix else problem


def _respelled(problem: Problem, known: Known) -> Fix | None:
    """For a text that is no expression, but would be one as other products spell it."""
    for text in texts(known.definition):
        inside = text.field == problem.field or text.field.startswith(f"{problem.field}.")
        if text.owner == problem.step and inside and not readable(text.source, text.kind):
            new = put_right(known, text)
            return {"old": text.source, "new": new, "label": use_label(new)} if new else None
    return None


def use_label(new: str) -> str:
    """For the button that puts a text in the place of another."""
    return f"Use {new}" if len(new) <= LONGEST_LABEL else "Write it so that it can be read"


def _of_step(problem: Problem, step: dict[str, Any]) -> Fix | None:
    kind, field = step_types().get(step["type"]), problem.field
    if kind is None:
        return None
    if field == "branches" and kind.children == "branches":
        return {"label": "Add a lane", "operation": {"op": "add_lane", "step": step["id"]}}
    if field == "on_interrupted" and not kind.outside:
        return _unset(step, field, f"Remove the rule of {label_of(step)}")
    if field.startswith("branches.") and field.endswith(".when") and _is_for_the_rest(step, field):
        return _unset(step, field, f"Remove the rule of the last lane of {label_of(step)}")
    if _unknown(kind.Config, field):
        return _unset(step, field, f"Remove “{field.rpartition('.')[2]}” from {label_of(step)}")
    return None


def _of_trigger(problem: Problem, definition: dict[str, Any]) -> Fix | None:
    trigger = next((one for one in definition.get("triggers") or [] if one["id"] == problem.step), None)
    kind = trigger_kinds().get(trigger["type"]) if trigger else None
    if trigger is None or kind is None or not _unknown(kind.Config, problem.field):
        return None
    label = f"Remove “{problem.field.rpartition('.')[2]}” from {trigger_label(trigger)}"
    operation = {"op": "configure_trigger", "trigger": trigger["id"], "set": {problem.field: None}, "label": label}
    return {"label": "Remove it", "operation": operation}


def _unset(step: dict[str, Any], field: str, label: str) -> Fix:
    operation = {"op": "configure", "step": step["id"], "set": {field: None}, "label": label}
    return {"label": "Remove it", "operation": operation}


def _is_for_the_rest(step: dict[str, Any], field: str) -> bool:
    """A lane that takes no rule has one: any lane of a parallel, the last one of a condition."""
    index = int(field.split(".")[1])
    last = index == len(step["branches"]) - 1
    return bool(step["branches"][index].get("when")) and (last or step["type"] != "condition")


def _unknown(model: Any, field: str) -> bool:
    parts = field.split(".")
    return len(parts) == 2 and parts[0] == "config" and config_field(model, parts[1]) is None
