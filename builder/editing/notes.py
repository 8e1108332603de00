"""Operations on free notes: text beside a step, or above the flow. A definition without any has no `notes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.definition import children, walk

from .ids import fresh
from .places import Edit, EditError, copied, step_of

Note = dict[str, Any]


def add_note(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """Optionally `text` and `beside`, a step."""
    draft = copied(definition)
    notes = draft.setdefault("notes", [])
    note = {"id": fresh("note", (one["id"] for one in notes)), "text": str(operation.get("text") or "")}
    notes.append(_beside(note, _home(draft, operation)))
    return Edit(draft, "Add a note", picked=(note["id"],))


def change_note(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`note`, `text`."""
    draft = copied(definition)
    note_of(draft, operation["note"])["text"] = str(operation["text"])
    return Edit(draft, "Change a note", picked=(operation["note"],))


def move_note(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`note`, `beside`: a step, or empty for the top."""
    draft = copied(definition)
    place = draft["notes"].index(note_of(draft, operation["note"]))
    draft["notes"][place] = _beside(draft["notes"][place], _home(draft, operation))
    return Edit(draft, "Move a note", picked=(operation["note"],))


def remove_note(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`note`."""
    draft = copied(definition)
    draft["notes"].remove(note_of(draft, operation["note"]))
    if not draft["notes"]:
        del draft["notes"]
    return Edit(draft, "Remove a note")


def note_of(definition: dict[str, Any], note_id: Any) -> Note:
    found = next((note for note in definition.get("notes") or [] if note["id"] == note_id), None)
    if found is None:
        raise EditError("There is no such note any more.")
    return found


def at_home(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """`after`, in which a note whose step has gone stands beside the step before that one in its lane, else beside the one that
    holds the lane, else at the top."""
    if not any(note.get("beside") for note in after.get("notes") or []):
        return after
    left = {step["id"] for step in walk(after.get("steps") or [])}
    homes = dict(_homes(before.get("steps") or [], "", left))
    return {**after, "notes": [_moved(note, left, homes) for note in after["notes"]]}


def _homes(steps: list[dict[str, Any]], home: str, left: set[str]) -> Iterator[tuple[str, str]]:
    """Each step, and the nearest to it that is left."""
    for step in steps:
        home = step["id"] if step["id"] in left else home
        yield step["id"], home
        for _, inner in children(step):
            yield from _homes(inner, home, left)


def _moved(note: Note, left: set[str], homes: dict[str, str]) -> Note:
    beside = note.get("beside")
    return note if not beside or beside in left or beside not in homes else _beside(note, homes[beside])


def _home(draft: dict[str, Any], operation: dict[str, Any]) -> str:
    """The step that `beside` names; empty for the top. Raises EditError."""
    beside = operation.get("beside")
    return step_of(draft, str(beside))["id"] if beside else ""


def _beside(note: Note, step_id: str) -> Note:
    """A note that stands there. Absent says the same as empty, and is what is written."""
    rest = {name: value for name, value in note.items() if name != "beside"}
    return rest | {"beside": step_id} if step_id else rest


OPERATIONS = {"add_note": add_note, "change_note": change_note, "move_note": move_note, "remove_note": remove_note}
