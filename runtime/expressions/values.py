"""The values of the language, as Python values of exact type.

null None · bool · int (64 bits, checked) · uint Uint · double float · string str · bytes · list · map dict
timestamp Timestamp · duration Duration · type TypeValue · optional Optional

Everything dispatches on `type(value)`; no attribute of a value is ever looked up by name. Maps from outside have text
keys. A map made by an expression may also have int, uint and bool keys; Python's dict takes True and 1 for the same
key, so bool keys are stored as BoolKey (see map_key and key_value).
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from .errors import EvaluationError

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SECOND = 1_000_000_000


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Timestamp(int):
    """A point in time: nanoseconds since 1970-01-01T00:00:00Z. Years 1 to 9999."""

    __slots__ = ()


class Duration(int):
    """A length of time in nanoseconds, within 64 bits (292 years)."""

    __slots__ = ()


class TypeValue(NamedTuple):
    """A type as a value: what type(x) gives."""

    name: str


class Optional:
    """A value that may be absent: what `a.?b` gives."""

    __slots__ = ("present", "value")

    def __init__(self, present: bool, value: Any = None) -> None:
        self.present = present
        self.value = value


ABSENT = Optional(False)


class BoolKey:
    """A bool as a map's key; one object for each of the two values."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE_KEY, FALSE_KEY = BoolKey(True), BoolKey(False)

NUMBERS = frozenset({int, float, Uint})
KNOWN = frozenset(
    {type(None), bool, int, Uint, float, str, bytes, list, dict, Timestamp, Duration, TypeValue, Optional}
)
NUMBERS_AND_TIMES = frozenset({int, float, Uint, bool, Timestamp, Duration})  # compared in constant time

TYPES = {
    type(None): TypeValue("null_type"),
    bool: TypeValue("bool"),
    int: TypeValue("int"),
    Uint: TypeValue("uint"),
    float: TypeValue("double"),
    str: TypeValue("string"),
    bytes: TypeValue("bytes"),
    list: TypeValue("list"),
    dict: TypeValue("map"),
    Timestamp: TypeValue("google.protobuf.Timestamp"),
    Duration: TypeValue("google.protobuf.Duration"),
    TypeValue: TypeValue("type"),
    Optional: TypeValue("optional_type"),
}

_IN_WORDS = {
    type(None): "empty (null)",
    bool: "true or false",
    int: "a whole number",
    Uint: "an unsigned number",
    float: "a number",
    str: "text",
    bytes: "bytes",
    list: "a list",
    dict: "a map",
    Timestamp: "a point in time",
    Duration: "a length of time",
    TypeValue: "a type",
    Optional: "an optional value",
}


def in_words(value: Any) -> str:
    """What kind of value it is, for messages."""
    return kind_in_words(type(value))


def kind_in_words(kind: type) -> str:
    return _IN_WORDS.get(kind, "a value that expressions cannot use")


def adopt(value: Any) -> Any:
    """Take a value of Python's own time types for ours; refuse kinds that are not data."""
    kind = type(value)
    if kind in KNOWN:
        return value
    if kind is datetime:
        return timestamp_from(value)
    if kind is timedelta:
        return Duration((value // timedelta(microseconds=1)) * 1000)
    raise EvaluationError("type", f"A value of the Python type {kind.__name__} cannot be used in an expression.")


def timestamp_from(moment: datetime) -> Timestamp:
    if moment.tzinfo is None:
        raise EvaluationError("value", "A date and time without a time zone cannot be used in an expression.")
    return Timestamp(((moment - EPOCH) // timedelta(microseconds=1)) * 1000)


def map_key(key: Any) -> Any:
    """How a key is stored in a dict, or None when a value of this kind can be no key."""
    kind = type(key)
    if kind is str or kind is int or kind is Uint:
        return key
    if kind is bool:
        return TRUE_KEY if key else FALSE_KEY
    return None


def lookup_key(key: Any) -> Any:
    """The same for looking up, where a double may stand for the integer that it equals."""
    if type(key) is float:
        return int(key) if key.is_integer() else None
    return map_key(key)


def key_value(key: Any) -> Any:
    """The key as an expression sees it."""
    return key.value if type(key) is BoolKey else key
