"""Operations on steps: insert, paste, move, remove, duplicate, wrap, unwrap, configure, rename."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from runtime.definition import RESERVED_IDS, children, walk
from runtime.steps import step_types

from .ids import fresh, made_from, slug, taken_ids
from .places import Edit, EditError, Place, copied, holds_body, label_of, place_of, sequence, step_of
from .references import renamed
from .values import set_values


def insert(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`type`, `place`, and optionally `name`: a new step that already works where its kind brings an example."""
    draft = copied(definition)
    step = new_step(operation["type"], taken_ids(draft), str(operation.get("name") or ""))
    _put(draft, [step], Place.read(operation["place"], draft))
    return Edit(draft, f"Add {label_of(step)}", step["id"])


def paste(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`steps`, `place`: copies with ids of their own; what they say about each other follows the new ids."""
    draft = copied(definition)
    pasted = _with_fresh_ids(operation["steps"], taken_ids(draft))
    if not pasted:
        raise EditError("There is nothing to paste.")
    _put(draft, pasted, Place.read(operation["place"], draft))
    return Edit(draft, f"Paste {_named(pasted)}", pasted[0]["id"])


def move(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, `place` as it is before the move."""
    draft = copied(definition)
    place, step = Place.read(operation["place"], draft), step_of(draft, operation["step"])
    if place.parent in {inner["id"] for inner in walk([step])}:
        raise EditError("A step cannot be moved into itself.")
    old, target = place_of(draft, step["id"]), sequence(draft, place)
    sequence(draft, old).remove(step)
    ahead = (old.parent, old.lane) == (place.parent, place.lane) and old.index < place.index
    target.insert(place.index - ahead, step)
    return Edit(draft, f"Move {label_of(step)}", step["id"])


def remove(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, with all that it holds."""
    draft = copied(definition)
    place = place_of(draft, operation["step"])
    steps = sequence(draft, place)
    step = steps.pop(place.index)
    neighbour = steps[min(place.index, len(steps) - 1)]["id"] if steps else place.parent
    return Edit(draft, f"Remove {label_of(step)}", neighbour)


def duplicate(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`: a copy right after it."""
    draft = copied(definition)
    place = place_of(draft, operation["step"])
    step = sequence(draft, place)[place.index]
    [copy] = _with_fresh_ids([step], taken_ids(draft))
    sequence(draft, place).insert(place.index + 1, copy)
    return Edit(draft, f"Duplicate {label_of(step)}", copy["id"])


def wrap(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`, `type` of a container: the step goes into its first lane, or its body."""
    draft = copied(definition)
    place = place_of(draft, operation["step"])
    steps = sequence(draft, place)
    box = new_step(operation["type"], taken_ids(draft))
    if holds_body(box):
        box["steps"] = [steps[place.index]]
    elif box.get("branches"):
        box["branches"][0]["steps"] = [steps[place.index]]
    else:
        raise EditError(f"“{label_of(box)}” cannot hold other steps.")
    steps[place.index] = box
    return Edit(draft, f"Wrap in {label_of(box)}", box["id"])


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
    return Edit(draft, f"Unwrap {label_of(box)}", inner[0]["id"] if inner else place.parent)


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
    return Edit(_rename(draft, step["id"], new_id), f"Rename {step['id']} to {new_id}", new_id)


def toggle(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`step`: off when it was on, and back. A step that is off is passed over by runs."""
    draft = copied(definition)
    step = step_of(draft, operation["step"])
    if step.pop("off", False):
        return Edit(draft, f"Turn on {label_of(step)}", step["id"])
    step["off"] = True
    return Edit(draft, f"Turn off {label_of(step)}", step["id"])


def new_step(type_: str, taken: set[str], name: str = "") -> dict[str, Any]:
    """A step of a kind, with the kind's example, lanes for a condition or parallel, a body for a loop."""
    kind = step_types().get(type_)
    if kind is None:
        raise EditError(f"There is no step of type “{type_}”.")
    step: dict[str, Any] = {"id": fresh(name or kind.label, taken), "type": type_}
    if name:
        step["name"] = name
    if kind.example:
        step["config"] = deepcopy(kind.example)
    if type_ == "condition":
        step["branches"] = [
            {"id": "yes", "label": "Yes", "steps": []},
            {"id": "no", "label": "No", "steps": []},
        ]
    elif kind.children == "branches":
        step["branches"] = [{"id": f"lane_{n}", "label": f"Lane {n}", "steps": []} for n in (1, 2)]
    elif kind.children == "steps":
        step["steps"] = []
    return step


def _put(draft: dict[str, Any], steps: list[dict[str, Any]], place: Place) -> None:
    sequence(draft, place)[place.index : place.index] = steps


def _rename(draft: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    if old == new:
        return draft
    step_of(draft, old)["id"] = new
    return renamed(draft, {old: new})


def _with_fresh_ids(steps: list[dict[str, Any]], taken: set[str]) -> list[dict[str, Any]]:
    copies, names, used = deepcopy(steps), {}, set(taken)
    for step in walk(copies):
        names[step["id"]] = fresh(step["id"] if step["id"] not in used else _bare(step["id"]), used)
        used.add(names[step["id"]])
        step["id"] = names[step["id"]]
    return renamed({"steps": copies}, {old: new for old, new in names.items() if old != new})["steps"]


def _bare(step_id: str) -> str:
    """`call_2` -> `call`, so that its copy becomes `call_3` and not `call_2_2`."""
    head, _, tail = step_id.rpartition("_")
    return head if head and tail.isdigit() else step_id


def _named(steps: list[dict[str, Any]]) -> str:
    return label_of(steps[0]) if len(steps) == 1 else f"{len(steps)} steps"


FIELDS = {"name", "note", "off", "config", "retry", "timeout", "on_error", "on_interrupted", "branches"}

OPERATIONS = {
    "insert": insert,
    "paste": paste,
    "move": move,
    "remove": remove,
    "duplicate": duplicate,
    "wrap": wrap,
    "unwrap": unwrap,
    "configure": configure,
    "rename": rename,
    "toggle": toggle,
}
