"""From values of the language to JSON, to Python, and to text."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime, timedelta
from typing import Any

from . import limits
from .errors import EvaluationError
from .fuel import Evaluation
from .functions.conversions import format_double, format_whole
from .operators import too_deep
from .times import format_duration, format_timestamp
from .values import EPOCH, Duration, Optional, Timestamp, TypeValue, Uint, adopt, in_words, key_value

JSON = Any  # None, bool, int, float, str, list, dict with text keys


def to_json(value: Any, run: Evaluation | None = None) -> JSON:
    """A value as JSON data, newly built, so that nobody shares lists and maps with it.

    Timestamps become RFC 3339 texts, durations "3600s", bytes base64, types their names, keys that are no texts their
    texts, absent optionals null. With `run`, what is built is taken from its memory.
    Raises EvaluationError: "value" for NaN, infinity, keys that become the same text, and more than DATA_DEPTH levels;
    "overflow" for whole numbers beyond 64 bits.
    """
    return _Builder(run, _json_leaf, _json_key).build(value, 0)


def to_python(value: Any, run: Evaluation | None = None) -> Any:
    """The same with Python's own types: datetime in UTC (cut to microseconds), timedelta, bytes, int; NaN is kept."""
    return _Builder(run, _python_leaf, key_value).build(value, 0)


def to_text(value: Any, run: Evaluation | None = None) -> str:
    """How a value reads inside a text: see README.md."""
    kind = type(value)
    if kind is str:
        return value
    if value is None:
        return ""
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return format_whole(value)
    if kind is float:
        return format_double(_finite(value))
    value = to_json(value, run)
    return value if type(value) is str else "" if value is None else compact_json(value)


def compact_json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Builder:
    """Copies a value, level by level. A class so that the walk carries one argument and not five."""

    __slots__ = ("run", "leaf", "key")

    def __init__(self, run: Evaluation | None, leaf: Any, key: Any) -> None:
        self.run = run
        self.leaf = leaf
        self.key = key

    def build(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            if self.run is not None:
                self.run.allocate(len(value) + 2)
            return value
        if kind is Optional:
            return self.build(value.value, depth) if value.present else None
        if kind is not list and kind is not dict:
            return self.leaf(value)
        if depth >= limits.DATA_DEPTH:
            raise too_deep()
        if self.run is not None:
            self.run.allocate(16 + 8 * len(value))
        if kind is list:
            return [self.build(item, depth + 1) for item in value]
        return self.build_map(value, depth)

    def build_map(self, entries: dict, depth: int) -> dict:
        built = {}
        for key, item in entries.items():
            name = key if type(key) is str else self.key(key)
            if name in built:
                raise EvaluationError("value", f"Two keys of the map become the same text, `{name}`.")
            if self.run is not None and type(name) is str:
                self.run.allocate(len(name) + 2)
            built[name] = self.build(item, depth + 1)
        return built


def _json_leaf(value: Any) -> JSON:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int or kind is Uint:
        return _within_64_bits(value)
    if kind is float:
        return _finite(value)
    if kind is Timestamp:
        return format_timestamp(value)
    if kind is Duration:
        return format_duration(value)
    if kind is bytes:
        return base64.b64encode(value).decode()
    if kind is TypeValue:
        return value.name
    return _json_leaf(adopt(value))


def _python_leaf(value: Any) -> Any:
    kind = type(value)
    if kind is Timestamp:
        return EPOCH + timedelta(microseconds=int(value) // 1000)
    if kind is Duration:
        return timedelta(microseconds=int(value) // 1000)
    if kind is Uint:
        return int(value)
    if kind is TypeValue:
        return value.name
    if kind is datetime or kind is timedelta:
        return value
    return adopt(value)


def _json_key(key: Any) -> str:
    value = key_value(key)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or type(value) is Uint:
        return format_whole(value)
    raise EvaluationError("type", f"A map cannot have {in_words(value)} as a key.")


def _within_64_bits(value: int) -> int:
    if limits.INT_MIN <= value <= limits.UINT_MAX:
        return int(value)
    raise EvaluationError("overflow", "The number is too large for a whole number (64 bits).")


def _finite(value: float) -> float:
    if math.isfinite(value):
        return value
    name = format_double(value)
    raise EvaluationError("value", f"The result is {name}, which is no number. Check for division by zero.")
