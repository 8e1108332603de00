"""Editing, without storage and without a screen: a definition and an operation give a new definition.

`apply` is the only way in. An operation is JSON, `{"op": "insert", "type": "delay", "place": {...}}`; the functions that
answer to each `op` stand in `steps`, `lanes`, `triggers` and `settings`, and say what keys they read.
"""

from __future__ import annotations

from typing import Any

from . import lanes, settings, steps, triggers
from .places import Edit, EditError, Place

OPERATIONS = {**steps.OPERATIONS, **lanes.OPERATIONS, **triggers.OPERATIONS, **settings.OPERATIONS}


def apply(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """The definition after the operation; the one given stays as it was. Raises EditError in words for the editor."""
    act = OPERATIONS.get(operation.get("op", "") if isinstance(operation, dict) else "")
    if act is None:
        raise EditError(f"There is no operation {operation.get('op') if isinstance(operation, dict) else operation!r}.")
    try:
        return act(definition, operation)
    except (KeyError, TypeError) as wrong:
        raise EditError(f"The operation “{operation['op']}” is not complete: {wrong}.") from wrong


__all__ = ["Edit", "EditError", "OPERATIONS", "Place", "apply"]
