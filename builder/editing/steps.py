"""Operations on one step: insert, configure, rename, unwrap; and paste."""

from __future__ import annotations

from typing import Any

from runtime.definition import RESERVED_IDS, children
from runtime.triggers import trigger_kinds

from .copies import named, with_fresh_ids
from .ids import fresh, made_from, slug, taken_ids
from .kinds import new_step
from .places import Edit, EditError, Place, copied, holds_body, label_of, place_of, sequence, step_of
from .references import renamed
from .triggers import put_trigger, trigger_label
from .values import set_values


def insert(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`type`, `place`, and optionally `name`: a new step, to be filled in."""
    draft = copied(definition)
    step = new_step(operation["type"], taken_ids(draft), str(operation.get("name") or ""))
    _put(draft, [step], Place.read(operation["place"], draft))
    return Edit(draft, f"Add {label_of(step)}", step["id"])


def paste(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`steps`, `place`: copies with ids of their own; what they say about each other follows the new ids. Triggers among them go
    where triggers stand: no step type is called as a kind of trigger is."""
    draft, given = copied(definition), operation["steps"]
    begun = [put_trigger(draft, one) for one in given if one["type"] in trigger_kinds()]
    pasted = with_fresh_ids([one for one in given if one["type"] not in trigger_kinds()], taken_ids(draft))
    if not pasted and not begun:
        raise EditError("There is nothing to paste.")
    if not pasted:
        return Edit(draft, f"Paste {trigger_label(begun[0]) if len(begun) == 1 else f'{len(begun)} triggers'}", begun[0]["id"])
    _put(draft, pasted, Place.read(operation["place"], draft))
    return Edit(draft, f"Paste {named(pasted)}", pasted[0]["id"], tuple(step["id"] for step in pasted))


def unwrap(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`: the container goes, its steps stay in its place, lane after lane."""
    draft = copied(definition)
    place = place_of(draft, operation["step"])
    steps = sequence(draft, place)
    box = steps[place.index]
    inner = [step for lane, lane_steps in children(box) if lane != "on_error" for step in lane_steps]
    if not (box.get("branches") or holds_body(box)):
        raise EditError(f"“{label_of(box)}” holds no other steps.")
    steps[place.index : place.index + 1] = inner
    picked = tuple(step["id"] for step in inner)
    return Edit(draft, f"Unwrap {label_of(box)}", inner[0]["id"] if inner else place.parent, picked)


def configure(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, `set`: dotted field -> value, None to remove it. With `follow`, an id made from the old name follows a
    new name. `label` may name the edit."""
    draft = copied(definition)
    step = step_of(draft, operation["step"])
    old_name = label_of(step)
    set_values(step, operation["set"], allowed=FIELDS)
    label = str(operation.get("label") or f"Change {label_of(step)}")
    if operation.get("follow") and step.get("name") and made_from(step["id"], old_name):
        new_id = fresh(step["name"], taken_ids(draft) - {step["id"]})
        return Edit(_rename(draft, step["id"], new_id), label, new_id)
    return Edit(draft, label, step["id"])


def rename(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, `id`: the new id, with every reference rewritten."""
    draft, new_id = copied(definition), str(operation["id"]).strip()
    step = step_of(draft, operation["step"])
    if slug(new_id) != new_id:
        raise EditError(f"Use lower-case letters, digits and _, beginning with a letter. Try “{slug(new_id)}”.")
    if new_id != step["id"] and new_id in taken_ids(draft) | RESERVED_IDS:
        raise EditError(f"The id “{new_id}” is taken. Choose another one.")
    label = f"Rename {step['id']} to {new_id}"
    return Edit(_rename(draft, step["id"], new_id), label, new_id)


def _put(draft: dict[str, Any], steps: list[dict[str, Any]], place: Place) -> None:
    sequence(draft, place)[place.index : place.index] = steps


def _rename(draft: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if old == new:
        return draft
    step_of(draft, old)["id"] = new
    return renamed(draft, {old: new})


FIELDS = {"name", "note", "off", "config", "retry", "timeout", "on_error", "on_interrupted", "branches"}

OPERATIONS = {
    "insert": insert,
    "paste": paste,
    "unwrap": unwrap,
    "configure": configure,
    "rename": rename,
}
