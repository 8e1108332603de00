"""Operations on triggers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from runtime.triggers import trigger_kinds

from .ids import fresh, taken_ids
from .places import Edit, EditError, copied
from .values import set_values

FIELDS = {"name", "config"}


def add_trigger(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`type`, optionally `name`."""
    kind = trigger_kinds().get(operation["type"])
    if kind is None:
        raise EditError(f"There is no trigger of type “{operation['type']}”.")
    draft, name = copied(definition), str(operation.get("name") or "")
    trigger: dict[str, Any] = {"id": fresh(name or kind.label, taken_ids(draft)), "type": kind.type}
    if name:
        trigger["name"] = name
    if kind.example:
        trigger["config"] = deepcopy(kind.example)
    draft["triggers"].append(trigger)
    return Edit(draft, f"Add {trigger_label(trigger)}", trigger["id"])


def put_trigger(draft: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A copy of a trigger, with an id of its own."""
    trigger = deepcopy(given) | {"id": fresh(given["id"], taken_ids(draft))}
    draft["triggers"].append(trigger)
    return trigger


def remove_trigger(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`trigger`."""
    draft = copied(definition)
    trigger = trigger_of(draft, operation["trigger"])
    draft["triggers"].remove(trigger)
    return Edit(draft, f"Remove {trigger_label(trigger)}")


def configure_trigger(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`trigger`, `set` as in `configure`."""
    draft = copied(definition)
    trigger = trigger_of(draft, operation["trigger"])
    set_values(trigger, operation["set"], allowed=FIELDS)
    return Edit(draft, str(operation.get("label") or f"Change {trigger_label(trigger)}"), trigger["id"])


def trigger_of(definition: dict[str, Any], trigger_id: str) -> dict[str, Any]:
    for trigger in definition.get("triggers") or []:
        if trigger["id"] == trigger_id:
            return trigger
    raise EditError(f"There is no trigger “{trigger_id}” any more.")


def trigger_label(trigger: dict[str, Any]) -> str:
    kind = trigger_kinds().get(trigger.get("type", ""))
    return str(trigger.get("name") or (kind.label if kind else trigger.get("type", "")))


OPERATIONS = {
    "add_trigger": add_trigger,
    "remove_trigger": remove_trigger,
    "configure_trigger": configure_trigger,
}
