"""Operations on one step or several at once: move, remove, duplicate, wrap, turn off.

They read `step`, or `steps`: ids in any order, from any lanes. A step inside another one that was named goes with it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from runtime.definition import walk

from .copies import named, with_fresh_ids
from .ids import taken_ids
from .kinds import new_step
from .places import Edit, EditError, Place, copied, holds_body, label_of, place_of, sequence, step_of

Steps = list[dict[str, Any]]


def move(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """To `place`, as it is before the move; side by side, in the order of the page."""
    draft = copied(definition)
    chosen, place = chosen_steps(draft, operation), Place.read(operation["place"], draft)
    if place.parent in {inner["id"] for inner in walk(chosen)}:
        raise EditError("A step cannot be moved into itself.")
    target = sequence(draft, place)
    ahead = sum(1 for step in target[: place.index] if step in chosen)
    _take_out(draft, chosen)
    index = min(place.index, len(target) + ahead) - ahead
    target[index:index] = chosen
    return _edit(draft, "Move", chosen)


def remove(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """With all that they hold."""
    draft = copied(definition)
    chosen = chosen_steps(draft, operation)
    place = place_of(draft, chosen[0]["id"])
    _take_out(draft, chosen)
    steps = sequence(draft, place)
    neighbour = steps[min(place.index, len(steps) - 1)]["id"] if steps else place.parent
    return Edit(draft, f"Remove {named(chosen)}", neighbour)


def duplicate(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """Copies right after the last of them."""
    draft = copied(definition)
    chosen = chosen_steps(draft, operation)
    place = place_of(draft, chosen[-1]["id"])
    copies = with_fresh_ids(chosen, taken_ids(draft))
    sequence(draft, place)[place.index + 1 : place.index + 1] = copies
    return _edit(draft, "Duplicate", copies)


def wrap(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`type` of a container: the steps go into its first lane, or its body. They must follow each other."""
    draft = copied(definition)
    chosen = chosen_steps(draft, operation)
    place, last = place_of(draft, chosen[0]["id"]), place_of(draft, chosen[-1]["id"])
    steps = sequence(draft, place)
    if (place.parent, place.lane) != (last.parent, last.lane) or last.index - place.index != len(chosen) - 1:
        raise EditError("Only steps that follow each other can be wrapped together. Move them side by side first.")
    box = new_step(operation["type"], taken_ids(draft))
    if holds_body(box):
        box["steps"] = chosen
    elif box.get("branches"):
        box["branches"][0]["steps"] = chosen
    else:
        raise EditError(f"“{label_of(box)}” cannot hold other steps.")
    steps[place.index : last.index + 1] = [box]
    return Edit(draft, f"Wrap in {label_of(box)}", box["id"])


def toggle(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """Off, or on when all of them were off. A step that is off is passed over by runs."""
    draft = copied(definition)
    chosen = chosen_steps(draft, operation)
    on = all(step.get("off") for step in chosen)
    for step in chosen:
        step["off"] = True
        if on:
            del step["off"]
    return _edit(draft, "Turn on" if on else "Turn off", chosen)


def chosen_steps(definition: dict[str, Any], operation: dict[str, Any]) -> Steps:
    """The steps of the definition that were named, in the order of the page, without those inside another of them."""
    ids = operation["steps"] if "steps" in operation else [operation["step"]]
    if not isinstance(ids, list) or not ids:
        raise EditError("Choose a step first.")
    named_ = {step_of(definition, step_id)["id"] for step_id in ids}
    chosen: Steps = []
    inside: set[str] = set()
    for step in walk(definition["steps"]):
        if step["id"] in named_ and step["id"] not in inside:
            chosen.append(step)
            inside |= {inner["id"] for inner in walk([step])}
    return chosen


def copies_of(definition: dict[str, Any], ids: list[str]) -> Steps:
    """The steps as they are, for the clipboard."""
    return deepcopy(chosen_steps(definition, {"steps": ids}))


def _take_out(draft: dict[str, Any], chosen: Steps) -> None:
    for step in chosen:
        place = place_of(draft, step["id"])
        del sequence(draft, place)[place.index]


def _edit(draft: dict[str, Any], verb: str, steps: Steps) -> Edit:
    return Edit(draft, f"{verb} {named(steps)}", steps[0]["id"], tuple(step["id"] for step in steps))


OPERATIONS = {"move": move, "remove": remove, "duplicate": duplicate, "wrap": wrap, "toggle": toggle}
