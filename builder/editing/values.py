"""Setting values by dotted paths."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .places import EditError


def set_values(owner: dict[str, Any], values: dict[str, Any], allowed: set[str]) -> None:
    """Set each dotted path of `values` in `owner`, in place; None removes. Maps on the way are made, lists are not."""
    if not isinstance(values, dict):
        raise EditError("The fields to set are no map of names to values.")
    for path, value in values.items():
        head = path.split(".")[0]
        if head not in allowed:
            raise EditError(f"The field “{head}” cannot be set.")
        _set(owner, path.split("."), deepcopy(value), path)


def _set(target: Any, parts: list[str], value: Any, path: str) -> None:
    *way, last = parts
    for part in way:
        target = _step_into(target, part, path)
    if isinstance(target, list):
        _set_item(target, last, value, path)
    elif value is None:
        target.pop(last, None)
    else:
        target[last] = value


def _step_into(target: Any, part: str, path: str) -> Any:
    if isinstance(target, list):
        return target[_index(target, part, path)]
    inner = target.get(part)
    if not isinstance(inner, (dict, list)):
        inner = target[part] = {}
    return inner


def _set_item(target: list[Any], part: str, value: Any, path: str) -> None:
    if value is None:
        del target[_index(target, part, path)]
    else:
        target[_index(target, part, path)] = value


def _index(target: list[Any], part: str, path: str) -> int:
    if not (part.isdecimal() and len(part) < 10) or int(part) >= len(target):
        raise EditError(f"There is no “{path}” any more.")
    return int(part)
