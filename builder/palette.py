"""The palette as a page: every step type and trigger kind, told from its own model and its module's first words."""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from pydantic import BaseModel, ValidationError

from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .editing.kinds import new_step
from .fields import ConfigField
from .forms.plain import to_text
from .forms.setup import specs_of

KINDS = {
    "text": "text, may hold {{ }}", "long_text": "text, may hold {{ }}", "string": "text", "prose": "text",
    "integer": "whole number", "number": "number", "boolean": "yes or no", "choice": "choice", "duration": "duration, such as 2h",
    "expression": "expression", "json": "any value, may hold {{ }}", "values": "values, may hold {{ }}", "pairs": "names and values",
    "addresses": "list, may hold {{ }}", "attachments": "list, may hold {{ }}", "strings": "list", "connection": "connection", "schema": "fields of the result",
    "labels": "labels", "examples": "inputs and answers", "form_fields": "form fields", "page_fields": "form fields", "flow": "flow", "zone": "time zone",
    "calendar": "country, or a part of it: DE, DE-BY", "expressions": "expressions",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    title: str
    kind: str
    text: str
    needed: bool
    usual: str
    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """What stands in `backticks` has become code; `items` are those of a list that follows the text."""

    text: SafeString
    items: tuple[SafeString, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One type. `example` is what is inserted when it is pasted in the builder."""

    type: str
    label: str
    summary: str
    about: tuple[Paragraph, ...]
    example: str
    settings: tuple[Setting, ...]
    traits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    entries: tuple[Entry, ...]


@cache
def sections() -> tuple[Section, ...]:
    """Triggers first, then the steps by category, in the order of the picker."""
    by_category: dict[str, list[Entry]] = {}
    for kind in step_types().values():
        by_category.setdefault(kind.category, []).append(_entry(kind, _step(kind), _traits(kind)))
    triggers = tuple(_entry(kind, _trigger(kind), ()) for kind in trigger_kinds().values())
    return Section("Triggers", triggers), *(Section(name, tuple(entries)) for name, entries in by_category.items())


def _entry(kind: Any, example: dict[str, Any], traits: tuple[str, ...]) -> Entry:
    shown = json.dumps(example, indent=2, ensure_ascii=False)
    settings = tuple(_setting(name, spec) for name, spec in specs_of(kind.Config))
    return Entry(kind.type, kind.label, kind.summary, _about(kind), shown, settings, traits)


def _about(kind: Any) -> tuple[Paragraph, ...]:
    """The paragraphs of the module's docstring; the type's name, with which it begins, stands above them. Lines that begin with a
    dash are the items of a list."""
    text = (inspect.getdoc(sys.modules[type(kind).__module__]) or "").removeprefix(f"{kind.label}: ")
    text = text[:1].upper() + text[1:]
    return tuple(_paragraph(part) for part in text.split("\n\n") if part.strip())


def _paragraph(source: str) -> Paragraph:
    text, *items = re.split(r"(?:^|\n)- ", source)
    return Paragraph(_marked(text), tuple(map(_marked, items)))


def _marked(text: str) -> SafeString:
    parts = " ".join(text.split()).split("`")
    return mark_safe("".join(format_html("<code>{}</code>", part) if number % 2 else conditional_escape(part) for number, part in enumerate(parts)))


def _traits(kind: Any) -> tuple[str, ...]:
    traits = []
    if kind.outside:
        traits.append("Calls the outside: it has attempts, retries, a time-out and a rule for interruptions, on its Safety tab.")
    if kind.children == "branches":
        traits.append("Holds lanes of steps.")
    if kind.children == "steps":
        traits.append("Holds steps.")
    return tuple(traits)


def _step(kind: Any) -> dict[str, Any]:
    step = new_step(kind.type, set())
    shown = {"id": step["id"], "type": step["type"]} | ({"config": kind.example} if kind.example else {})
    return shown | {name: value for name, value in step.items() if name not in (*shown, "config")}


def _trigger(kind: Any) -> dict[str, Any]:
    return {"id": kind.type, "type": kind.type, "config": kind.example or _least(kind.Config)}


def _least(model: type[BaseModel]) -> dict[str, Any]:
    """A config that works with as little as possible."""
    try:
        model.model_validate({})
        return {}
    except ValidationError:
        return {info.alias or name: (info.examples or [""])[0] for name, info in model.model_fields.items() if info.is_required()}


def _setting(name: str, spec: ConfigField) -> Setting:
    usual = "" if spec.default in (None, "", [], {}) or isinstance(spec.default, BaseModel) else to_text(spec.default)
    if spec.kind == "choice":
        usual = spec.word(spec.default) if spec.default is not None else ""
    choices = tuple((str(one), spec.word(one)) for one in spec.choices)
    return Setting(name, spec.title, KINDS.get(spec.kind, spec.kind), spec.description, spec.required, usual, choices)
