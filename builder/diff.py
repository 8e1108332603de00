"""Two definitions -> what changed, step by step. Pure; steps are recognised by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runtime.definition import children, walk

from .editing.places import Place, label_of
from .editing.triggers import trigger_label
from .sequences import longest_common

ADDED, REMOVED, MOVED, CHANGED = "added", "removed", "moved", "changed"
NOTE = "note"
"""In the place of a type: a change of a free note."""
INSIDE = {"steps", "branches", "on_error"}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """`field` is dotted (`config.url`); None stands for a field that is not there."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one step, trigger, or (with an empty `owner`) to the workflow itself."""

    owner: str
    name: str
    kind: str
    type: str = ""
    fields: tuple[FieldChange, ...] = ()


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """In the order of the page after the change; what was removed comes last."""
    return [*_workflow(before, after), *_triggers(before, after), *_steps(before, after), *_notes(before, after)]


def marks(before: dict[str, Any] | None, after: dict[str, Any]) -> dict[str, str]:
    """Id -> "New", "Edited" or "Moved", for the cards. Nothing is marked when there is nothing to compare with."""
    if before is None:
        return {}
    return marks_of(changes(before, after))


def marks_of(found: list[Change]) -> dict[str, str]:
    """The same of changes that are known."""
    words = {ADDED: "New", CHANGED: "Edited", MOVED: "Moved"}
    return {change.owner: words[change.kind] for change in found if change.owner and change.kind in words}


def marks_before(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """The same from the other side: what becomes of the steps of `before`."""
    words = {REMOVED: "Removed", CHANGED: "Edited", MOVED: "Moved"}
    return {
        change.owner: words[change.kind] for change in changes(before, after) if change.owner and change.kind in words
    }


def _workflow(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    names = ("name", "description", "title", "search", "on_failure", "budget_run", "budget_day", "limits")
    fields = [change for name in names for change in differences(before.get(name), after.get(name), name)]
    if fields:
        yield Change("", "Flow settings", CHANGED, fields=tuple(fields))


def _triggers(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    old = {trigger["id"]: trigger for trigger in before.get("triggers") or []}
    new = {trigger["id"]: trigger for trigger in after.get("triggers") or []}
    for key, trigger in new.items():
        if key not in old:
            yield Change(key, trigger_label(trigger), ADDED, trigger["type"])
        elif fields := tuple(_fields(old[key], trigger)):
            yield Change(key, trigger_label(trigger), CHANGED, trigger["type"], fields)
    for key, trigger in old.items():
        if key not in new:
            yield Change(key, trigger_label(trigger), REMOVED, trigger["type"])


def _steps(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    old = {step["id"]: step for step in walk(before.get("steps") or [])}
    new = {step["id"]: step for step in walk(after.get("steps") or [])}
    moved = _moved(before, after)
    for key, step in new.items():
        if key not in old:
            yield Change(key, label_of(step), ADDED, step["type"])
        elif fields := tuple(_fields(old[key], step)):
            yield Change(key, label_of(step), CHANGED, step["type"], fields)
        elif key in moved:
            yield Change(key, label_of(step), MOVED, step["type"])
    for key, step in old.items():
        if key not in new:
            yield Change(key, label_of(step), REMOVED, step["type"])


def _notes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    old = {note["id"]: note for note in before.get("notes") or []}
    new = {note["id"]: note for note in after.get("notes") or []}
    for key in dict.fromkeys([*new, *old]):
        was, now = old.get(key, {}), new.get(key, {})
        kind = CHANGED if was and now else ADDED if now else REMOVED
        if fields := tuple(change for name in ("text", "beside") for change in differences(was.get(name), now.get(name), name)):
            yield Change("", "Note", kind, NOTE, fields)


def _moved(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """Those that stand in another sequence, and those that the longest run of unmoved neighbours passes over."""
    old, new = dict(sequences(before)), dict(sequences(after))
    home = {step: place for place, steps in old.items() for step in steps}
    known = set(home)
    moved: set[str] = set()
    for place, steps in new.items():
        strangers = {step for step in steps if step in known and home[step] != place}
        stayed = [step for step in steps if step in known and step not in strangers]
        kept = longest_common(stayed, [step for step in old.get(place, []) if step in stayed])
        moved |= strangers | (set(stayed) - set(kept))
    return moved


def sequences(definition: dict[str, Any]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """((parent, lane), the steps' ids) of each, the top one first."""
    top = definition.get("steps") or []
    yield (Place().parent, Place().lane), [step["id"] for step in top]
    for step in walk(top):
        for lane, inner in children(step):
            yield (step["id"], lane), [one["id"] for one in inner]


def _fields(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldChange]:
    """Differences of a step's own fields; the steps inside it are told by themselves, its lanes by name and rule."""
    yield from differences(own_of(old), own_of(new), "")


def own_of(step: dict[str, Any]) -> dict[str, Any]:
    """A step without the steps inside it."""
    own = {key: value for key, value in step.items() if key not in INSIDE}
    if step.get("branches") is not None:
        own["lanes"] = {
            branch["id"]: {key: value for key, value in branch.items() if key not in ("steps", "id")}
            for branch in step["branches"]
        }
        own["order of lanes"] = [branch["id"] for branch in step["branches"]]
    if "on_error" in step:
        own["on_error"] = "lane" if isinstance(step["on_error"], dict) else step["on_error"]
    return own


def differences(old: Any, new: Any, place: str) -> Iterator[FieldChange]:
    """Of two values, by dotted path below `place`; lists are told as a whole."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from differences(old.get(key), new.get(key), f"{place}.{key}" if place else str(key))
    else:
        yield FieldChange(place, old, new)
