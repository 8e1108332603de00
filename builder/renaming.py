"""What another id of a step would rewrite, told before it is done."""

from __future__ import annotations

from typing import Any

from runtime.definition import find, walk

from .diff import CHANGED, Change, FieldChange
from .editing.places import label_of
from .editing.references import rewritings
from .editing.triggers import trigger_label
from .texts import Text

FLOW = "This flow"


def rename_preview(definition: dict[str, Any], step: str, new_id: str) -> list[Change]:
    """One change per step, trigger or flow that speaks of the step, with the fields in which it does."""
    fields: dict[str, list[FieldChange]] = {}
    for text, after in rewritings(definition, step, new_id):
        fields.setdefault(text.owner, []).append(FieldChange(_field(definition, text), text.source, after))
    names, types = _owners(definition)
    return [
        Change(owner, names.get(owner, FLOW), CHANGED, types.get(owner, ""), tuple(found))
        for owner, found in fields.items()
    ]


def _field(definition: dict[str, Any], text: Text) -> str:
    """`branches.0.when` is told by its lane, as differences are."""
    head, _, rest = text.field.partition(".")
    owner = find(definition, text.owner) if head == "branches" else None
    if owner is None:
        return text.field
    index, _, part = rest.partition(".")
    return f"lanes.{owner['branches'][int(index)]['id']}.{part}"


def _owners(definition: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Id -> name, and id -> type, of everything that has texts."""
    names, types = {}, {}
    for trigger in definition.get("triggers") or []:
        names[trigger["id"]], types[trigger["id"]] = trigger_label(trigger), trigger["type"]
    for step in walk(definition.get("steps") or []):
        names[step["id"]], types[step["id"]] = label_of(step), step["type"]
    return names, types
