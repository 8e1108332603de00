"""Editing, without storage and without a screen: a definition and an operation give a new definition.

`apply` is the only way in. An operation is JSON, `{"op": "insert", "type": "delay", "place": {...}}`; the functions
that answer to each `op` stand in `groups`, `steps`, `kinds`, `lanes`, `triggers`, `settings`, `notes` and `repair`, and say
what keys they read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from runtime.definition import PATTERNS, check, too_large
from runtime.jsonvalues import BadJson, check_json
from runtime.shape import Definition

from . import groups, kinds, lanes, notes, repair, settings, steps, triggers
from .places import Edit, EditError, Place

MODULES = (groups, steps, kinds, lanes, triggers, settings, notes, repair)
OPERATIONS = {name: act for module in MODULES for name, act in module.OPERATIONS.items()}


def apply(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """The definition after the operation; the one given stays as it was. Raises EditError in words for the editor.

    The result has a sound shape, so that everything else may rely on it; what it means may still have problems.
    """
    name = operation.get("op") if isinstance(operation, dict) else operation
    act = OPERATIONS.get(name) if isinstance(name, str) else None
    if act is None:
        raise EditError(f"There is no operation {name!r}.")
    _require_storable(operation)
    try:
        edit = act(definition, operation)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise EditError(f"The operation “{operation['op']}” is not complete: {wrong}.") from wrong
    _require_shape(edit.definition)
    if act is settings.replace:
        return edit  # a file's own notes, as they are
    return replace(edit, definition=notes.at_home(definition, edit.definition))


def _require_storable(operation: dict[str, Any]) -> None:
    """Whole definitions may nest deeper than values may; their text is checked with their shape."""
    try:
        check_json({key: value for key, value in operation.items() if key not in ("definition", "steps")})
    except BadJson as wrong:
        raise EditError(str(wrong)) from None


def _require_shape(definition: dict[str, Any]) -> None:
    if (oversize := too_large(definition)) and oversize.field == PATTERNS:
        raise EditError(f"That cannot be saved. {oversize.message}")
    try:
        Definition.model_validate(definition)
    except ValidationError:
        first = check(definition)[0]
        raise EditError(f"That cannot be saved. {first}") from None


__all__ = ["Edit", "EditError", "OPERATIONS", "Place", "apply"]
