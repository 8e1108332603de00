"""What can be saved and is going to fail: connections that the team does not have, as happens to flows from elsewhere, and what
steps say of their settings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from runtime.definition import Problem, walk
from runtime.steps import step_types
from runtime.steps.base import StepType
from runtime.triggers import trigger_kinds

from .fields import ConfigField, config_fields


def missing_connections(definition: dict[str, Any], known: Collection[str]) -> Iterator[Problem]:
    """Warnings: the connection can still be made before the first run."""
    for owner, model in _owners(definition):
        for field, name in _named(owner.get("config"), model, "config"):
            if name not in known:
                words = f"This team has no connection “{name}”. Choose another one, or make it under Connections."
                yield Problem(owner["id"], field, words, warning=True)


def doubts(definition: dict[str, Any]) -> Iterator[Problem]:
    """Warnings: what the steps themselves say of their settings."""
    for step in walk(definition.get("steps") or []):
        kind = step_types().get(step["type"])
        if not kind or type(kind).doubts is StepType.doubts or step.get("off"):  # most kinds have none
            continue
        if _is_sound(kind.Config, step.get("config") or {}):
            for field, words in kind.doubts(step):
                yield Problem(step["id"], f"config.{field}", words, warning=True)


def _is_sound(model: type[BaseModel], config: dict[str, Any]) -> bool:
    try:
        model.model_validate(config)
    except ValidationError:
        return False
    return True


def _owners(definition: dict[str, Any]) -> Iterator[tuple[dict[str, Any], type[BaseModel]]]:
    """Triggers and steps of a known kind, with the model of their config."""
    for trigger in definition.get("triggers") or []:
        if kind := trigger_kinds().get(trigger["type"]):
            yield trigger, kind.Config
    for step in walk(definition.get("steps") or []):
        if type_ := step_types().get(step["type"]):
            yield step, type_.Config


@cache
def _may_name(model: type[BaseModel]) -> tuple[ConfigField, ...]:
    return tuple(field for field in config_fields(model) if field.kind == "connection" or field.kind == "group" and field.model)


def _named(config: Any, model: type[BaseModel], place: str) -> Iterator[tuple[str, str]]:
    if not isinstance(config, dict):
        return
    for field in _may_name(model):
        value, here = config.get(field.name), f"{place}.{field.name}"
        if field.kind == "connection" and isinstance(value, str) and value:
            yield here, value
        elif field.kind == "group" and field.model:
            yield from _named(value, field.model, here)
