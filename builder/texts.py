"""Every expression and template of a definition: where it stands, and how to rewrite it.

References are found and renamed through here, so that both see the same texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from runtime.definition import walk
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .fields import EXPRESSIONS, TEMPLATES, config_fields

Change = Callable[["Text"], str]


@dataclass(frozen=True, slots=True)
class Text:
    """`field` is dotted from the step (`config.json.email`, `branches.0.when`); `owner` is a step or trigger id, or empty
    for the workflow itself. `kind` is `expression` or `template`."""

    owner: str
    field: str
    source: str
    kind: str


def texts(definition: dict[str, Any]) -> Iterator[Text]:
    """All of them, in the order of the page."""
    found: list[Text] = []
    rewritten(definition, lambda text: found.append(text) or text.source)
    return iter(found)


def texts_of(step: dict[str, Any]) -> list[Text]:
    """Those of one step, without the steps inside it."""
    found: list[Text] = []
    _step(step, lambda text: found.append(text) or text.source)
    return found


def rewritten(definition: dict[str, Any], change: Change) -> dict[str, Any]:
    """A copy with each text replaced by what `change` gives for it."""
    result = deepcopy(definition)
    if isinstance(result.get("title"), str):
        result["title"] = change(Text("", "title", result["title"], "template"))
    if isinstance(result.get("search"), list):
        result["search"] = _deep(result["search"], "", "search", "expression", change)
    for trigger in result.get("triggers") or []:
        kind = trigger_kinds().get(trigger.get("type"))
        if kind and isinstance(trigger.get("config"), dict):
            _config(trigger["config"], kind.Config, trigger["id"], "config", change)
    for step in walk(result.get("steps") or []):
        _step(step, change)
    return result


def _step(step: dict[str, Any], change: Change) -> None:
    kind = step_types().get(step.get("type", ""))
    if kind and isinstance(step.get("config"), dict):
        _config(step["config"], kind.Config, step["id"], "config", change)
    for index, branch in enumerate(step.get("branches") or []):
        if isinstance(branch.get("when"), str):
            branch["when"] = change(Text(step["id"], f"branches.{index}.when", branch["when"], "expression"))
    if isinstance(step.get("timeout"), str):
        step["timeout"] = change(Text(step["id"], "timeout", step["timeout"], "template"))
    rule = step.get("on_interrupted")
    if isinstance(rule, dict) and isinstance(rule.get("check"), dict):
        _check(rule["check"], step["id"], change)


def _check(check: dict[str, Any], owner: str, change: Change) -> None:
    place = "on_interrupted.check"
    for name, kind in (("request", "template"), ("happened", "expression"), ("output", "expression")):
        if name in check:
            check[name] = _deep(check[name], owner, f"{place}.{name}", kind, change)


def _config(config: dict[str, Any], model: type[BaseModel], owner: str, place: str, change: Change) -> None:
    for field in config_fields(model):
        if field.name not in config:
            continue
        value, here = config[field.name], f"{place}.{field.name}"
        if field.kind == "group" and field.model and isinstance(value, dict):
            _config(value, field.model, owner, here, change)
        elif field.kind == "groups" and field.model and isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    _config(item, field.model, owner, f"{here}.{index}", change)
        elif field.kind in EXPRESSIONS:
            config[field.name] = _deep(value, owner, here, "expression", change)
        elif field.kind in TEMPLATES:
            config[field.name] = _deep(value, owner, here, "template", change)


def _deep(value: Any, owner: str, place: str, kind: str, change: Change) -> Any:
    """Every string inside a value; keys are names and never templates."""
    if isinstance(value, str):
        return change(Text(owner, place, value, kind))
    if isinstance(value, list):
        return [_deep(item, owner, f"{place}.{index}", kind, change) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _deep(item, owner, f"{place}.{key}", kind, change) for key, item in value.items()}
    return value
