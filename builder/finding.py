"""Finding steps of a flow by name, id, type, note, or by what stands in their settings; all of them as an outline. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runtime.definition import children, walk
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .changewords import field_title, plain
from .editing.places import label_of
from .editing.triggers import trigger_label

MOST = 30
AROUND = 32


@dataclass(frozen=True, slots=True)
class Hit:
    """`where` says what matched and `excerpt` shows it; `field` leads to it in the panel, empty for the step itself. `depth`: in how
    many steps it stands, of an outline."""

    step: str
    type: str
    name: str
    where: str
    excerpt: str
    field: str = ""
    depth: int = 0


def found(definition: dict[str, Any], query: str) -> list[Hit]:
    """One for each step or trigger that matches, by its best match: names first, then ids, types, and texts."""
    word = " ".join(query.split()).lower()
    if not word:
        return []
    ranked = []
    for owner, name, kind in _owners(definition):
        best = next((hit for hit in _places(owner, name, kind) if word in hit[3].lower()), None)
        if best:
            rank, where, field, text = best
            ranked.append((rank, Hit(owner["id"], owner["type"], name, where, _around(text, word), field)))
    ranked.sort(key=lambda one: one[0])
    return [hit for _, hit in ranked[:MOST]]


def outline(definition: dict[str, Any]) -> list[Hit]:
    """Every trigger and step, in the order of the page."""
    triggers = [Hit(one["id"], one["type"], trigger_label(one), "", "") for one in definition.get("triggers") or []]
    return [*triggers, *_inside(definition.get("steps") or [], 0)]


def _inside(steps: list[dict[str, Any]], depth: int) -> Iterator[Hit]:
    for step in steps:
        yield Hit(step["id"], step["type"], label_of(step), "", "", depth=depth)
        for _, inner in children(step):
            yield from _inside(inner, depth + 1)


def _owners(definition: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, Any]]:
    for trigger in definition.get("triggers") or []:
        yield trigger, trigger_label(trigger), trigger_kinds().get(trigger["type"])
    for step in walk(definition.get("steps") or []):
        yield step, label_of(step), step_types().get(step["type"])


def _places(owner: dict[str, Any], name: str, kind: Any) -> Iterator[tuple[int, str, str, str]]:
    """(rank, what it is, field, text) of all that can be found in a step, the best first."""
    yield 0, "", "", name
    yield 1, "Id", "", owner["id"]
    yield 2, "Type", "", f"{kind.label} ({owner['type']})" if kind else owner["type"]
    yield 3, "Note", "note", owner.get("note") or ""
    for index, branch in enumerate(owner.get("branches") or []):
        yield 4, "Lane", f"branches.{index}.label", branch.get("label") or branch["id"]
        yield 4, "Rule", f"branches.{index}.when", branch.get("when") or ""
    for field, value in (owner.get("config") or {}).items():
        for path, text in _texts(value, field):
            yield 4, field_title(owner["type"], path), f"config.{path}", text


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every value with its dotted path; keys are found too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}", str(key)
            yield from _texts(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{path}.{index}")
    elif value is not None:
        yield path, value if isinstance(value, str) else plain(value)


def _around(text: str, word: str) -> str:
    """The match with what stands beside it, in one line."""
    line = " ".join(text.split())
    at = max(0, line.lower().find(word))
    start, end = max(0, at - AROUND), at + len(word) + AROUND
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
