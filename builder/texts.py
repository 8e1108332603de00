"""Every expression and template of a definition: where it stands, and how to rewrite it.

References are found and renamed through here, so that both see the same texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import BaseModel

from runtime.definition import LONGEST_REMEMBERED, walk
from runtime.jsonvalues import copy_json
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .fields import EXPRESSIONS, TEMPLATES, config_fields


@dataclass(frozen=True, slots=True)
class Text:
    """`field` is dotted from the step (`config.json.email`, `branches.0.when`); `owner` is a step or trigger id, or
    empty for the workflow itself. `kind` is `expression` or `template`."""

    owner: str
    field: str
    source: str
    kind: str


def texts(definition: dict[str, Any]) -> Iterator[Text]:
    """All of them, in the order of the page."""
    for slot in _of_flow(definition):
        yield slot.text
    for step in walk(definition.get("steps") or []):
        own = json.dumps(_without_what_is_inside(step))
        for text in _texts_in(own) if len(own) > LONGEST_REMEMBERED else _remembered(own):
            yield Text(step["id"], *text)


def _without_what_is_inside(step: dict[str, Any]) -> dict[str, Any]:
    """All of a step that holds texts of its own."""
    own = {name: step[name] for name in ("type", "config", "timeout", "on_interrupted") if name in step}
    return own | {"branches": [{"when": one.get("when")} for one in step["branches"]]} if step.get("branches") else own


def _texts_in(step: str) -> tuple[tuple[str, str, str], ...]:
    """Field, source and kind of the texts of a step in JSON."""
    return tuple((slot.text.field, slot.text.source, slot.text.kind) for slot in _of_step({"id": "", **json.loads(step)}))


_remembered = lru_cache(maxsize=4096)(_texts_in)
"""Of hundreds of steps an edit changes one."""


def rewritten(definition: dict[str, Any], change: Callable[[Text], str]) -> dict[str, Any]:
    """A copy with each text replaced by what `change` gives for it."""
    result = copy_json(definition)
    for slot in list(_slots(result)):
        slot.holder[slot.key] = change(slot.text)
    return result


_STRING = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""", re.DOTALL)
_PART = re.compile(r"(?<=\{\{)(.*?)(?=\}\})", re.DOTALL)


def in_code(source: str, kind: str, change: Callable[[str], str], *, quoted: bool = False) -> str:
    """The text with its code changed: of a template what stands in `{{ }}`, and no texts in quotes unless `quoted` says so."""
    if kind == "template":
        end = source.rfind("}}") + 2  # what opens behind it ends nowhere, and each brace would be followed to the end
        return _PART.sub(lambda part: in_code(part[0], "expression", change, quoted=quoted), source[:end]) + source[end:]
    if quoted:
        return change(source)
    return "".join(change(piece) if index % 2 == 0 else piece for index, piece in enumerate(_STRING.split(source)))


class _Slot(NamedTuple):
    """Where a text is held: `holder[key]`."""

    holder: Any
    key: Any
    text: Text


def _slots(definition: dict[str, Any]) -> Iterator[_Slot]:
    yield from _of_flow(definition)
    for step in walk(definition.get("steps") or []):
        yield from _of_step(step)


def _of_flow(definition: dict[str, Any]) -> Iterator[_Slot]:
    yield from _in(definition, "title", "", "title", "template")
    yield from _in(definition, "search", "", "search", "expression")
    if isinstance(definition.get("limits"), dict):
        for name in ("key", "priority"):
            yield from _in(definition["limits"], name, "", f"limits.{name}", "expression")
    for trigger in definition.get("triggers") or []:
        kind = trigger_kinds().get(trigger.get("type"))
        if kind and isinstance(trigger.get("config"), dict):
            yield from _config(trigger["config"], kind.Config, trigger["id"], "config")


def _of_step(step: dict[str, Any]) -> Iterator[_Slot]:
    kind, owner = step_types().get(step.get("type", "")), step["id"]
    if kind and isinstance(step.get("config"), dict):
        yield from _config(step["config"], kind.Config, owner, "config")
    for index, branch in enumerate(step.get("branches") or []):
        yield from _in(branch, "when", owner, f"branches.{index}.when", "expression")
    yield from _in(step, "timeout", owner, "timeout", "template")
    rule = step.get("on_interrupted")
    if isinstance(rule, dict) and isinstance(rule.get("check"), dict):
        for name, reading in (("request", "template"), ("happened", "expression"), ("output", "expression")):
            yield from _in(rule["check"], name, owner, f"on_interrupted.check.{name}", reading)


def _config(config: dict[str, Any], model: type[BaseModel], owner: str, place: str) -> Iterator[_Slot]:
    for field in config_fields(model):
        value, here = config.get(field.name), f"{place}.{field.name}"
        if field.kind == "group" and field.model and isinstance(value, dict):
            yield from _config(value, field.model, owner, here)
        elif field.kind == "groups" and field.model and isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    yield from _config(item, field.model, owner, f"{here}.{index}")
        elif field.kind in EXPRESSIONS:
            yield from _in(config, field.name, owner, here, "expression")
        elif field.kind in TEMPLATES:
            yield from _in(config, field.name, owner, here, "template")


def _in(holder: Any, key: Any, owner: str, place: str, kind: str) -> Iterator[_Slot]:
    """Every string in `holder[key]`, at any depth; keys of maps are names and never templates."""
    value = holder.get(key) if isinstance(holder, dict) else holder[key]
    if isinstance(value, str):
        yield _Slot(holder, key, Text(owner, place, value, kind))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from _in(value, index, owner, f"{place}.{index}", kind)
    elif isinstance(value, dict):
        for inner in value:
            yield from _in(value, inner, owner, f"{place}.{inner}", kind)
