"""Values of one kind from values of another, and type()."""

from __future__ import annotations

import math
import re
from typing import Any

from .. import limits, operators
from ..errors import EvaluationError
from ..fuel import Evaluation, text_size
from ..times import format_duration, format_timestamp, parse_duration, parse_timestamp, shorten
from ..values import SECOND, TYPES, Duration, Optional, Timestamp, TypeValue, Uint, adopt
from .registry import ANY, function

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:NaN|Inf|Infinity)", re.IGNORECASE)
_BOOLS = dict.fromkeys(("1", "t", "true", "TRUE", "True"), True)
_BOOLS |= dict.fromkeys(("0", "f", "false", "FALSE", "False"), False)


@function("int", int)
@function("uint", Uint)
@function("double", float)
@function("bool", bool)
@function("string", str)
@function("bytes", bytes)
@function("timestamp", Timestamp)
@function("duration", Duration)
@function("dyn", ANY)
def identity(run: Evaluation, value: Any) -> Any:
    return value


@function("type", ANY)
def type_of(run: Evaluation, value: Any) -> TypeValue:
    return TYPES[type(adopt(value))]


@function("int", Uint)
def int_from_uint(run: Evaluation, value: Uint) -> int:
    return operators.whole(int(value))


@function("int", float)
def int_from_double(run: Evaluation, value: float) -> int:
    """Towards zero. The two ends of the range are refused: a double cannot tell them from what lies beyond."""
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("overflow", f"{format_double(value)} is too large for a whole number.")
    return int(value)


@function("int", str)
def int_from_text(run: Evaluation, value: str) -> int:
    return operators.whole(_whole_from(value))


@function("int", Timestamp)
def int_from_timestamp(run: Evaluation, value: Timestamp) -> int:
    """Whole seconds since 1970."""
    return int(value) // SECOND


@function("int", Duration)
def int_from_duration(run: Evaluation, value: Duration) -> int:
    """Whole seconds."""
    return int(value) // SECOND if value >= 0 else -(-int(value) // SECOND)


@function("uint", int)
def uint_from_int(run: Evaluation, value: int) -> Uint:
    return operators.unsigned(value)


@function("uint", float)
def uint_from_double(run: Evaluation, value: float) -> Uint:
    if math.isnan(value) or not -1.0 < value < 2.0**64:
        raise EvaluationError("overflow", f"{format_double(value)} does not fit an unsigned number.")
    return operators.unsigned(int(value))


@function("uint", str)
def uint_from_text(run: Evaluation, value: str) -> Uint:
    return operators.unsigned(_whole_from(value))


def _whole_from(text: str) -> int:
    if len(text) <= 4000 and _WHOLE.fullmatch(text):
        return int(text) if len(text) <= 40 else int(text.lstrip("+-0")[:40] or "0")
    raise EvaluationError("value", f"`{shorten(text)}` is not a whole number.")


@function("double", (int, Uint))
def double_from_whole(run: Evaluation, value: int) -> float:
    return float(value)


@function("double", str)
def double_from_text(run: Evaluation, value: str) -> float:
    if len(value) <= 400 and _DOUBLE.fullmatch(value):
        return float(value)
    raise EvaluationError("value", f"`{shorten(value)}` is not a number.")


@function("bool", str)
def bool_from_text(run: Evaluation, value: str) -> bool:
    known = _BOOLS.get(value)
    if known is None:
        raise EvaluationError("value", f"`{shorten(value)}` is neither true nor false.")
    return known


@function("bytes", str)
def bytes_from_text(run: Evaluation, value: str) -> bytes:
    run.allocate(text_size(value))
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise EvaluationError("value", "The text holds half a character.") from None


@function("string", bytes)
def text_from_bytes(run: Evaluation, value: bytes) -> str:
    run.allocate(4 * len(value))
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("value", "These bytes are not text in UTF-8.") from None


@function("string", (int, Uint))
def text_from_whole(run: Evaluation, value: int) -> str:
    return format_whole(value)


@function("string", float)
def text_from_double(run: Evaluation, value: float) -> str:
    return format_double(value)


@function("string", bool)
def text_from_bool(run: Evaluation, value: bool) -> str:
    return "true" if value else "false"


@function("string", Timestamp)
def text_from_timestamp(run: Evaluation, value: Timestamp) -> str:
    return format_timestamp(value)


@function("string", Duration)
def text_from_duration(run: Evaluation, value: Duration) -> str:
    return format_duration(value)


@function("string", Optional)
def text_from_optional(run: Evaluation, value: Optional) -> str:
    raise EvaluationError("type", "string() needs a value, and this one may be absent: add .orValue(...).")


@function("timestamp", str)
def timestamp_from_text(run: Evaluation, value: str) -> Timestamp:
    return parse_timestamp(value)


@function("timestamp", int)
def timestamp_from_seconds(run: Evaluation, value: int) -> Timestamp:
    """Seconds since 1970."""
    return operators.timestamp(value * SECOND)


@function("duration", str)
def duration_from_text(run: Evaluation, value: str) -> Duration:
    return parse_duration(value)


def format_whole(value: int) -> str:
    """Decimal. Numbers beyond 64 bits can only come from outside; int's own text is quadratic in their length."""
    if not limits.INT_MIN <= value <= limits.UINT_MAX:
        raise EvaluationError("overflow", "The number is too large for a whole number (64 bits).")
    return str(int(value))


def format_double(value: float) -> str:
    """The shortest text that reads back as the same double, whole ones without ".0"; "1e+16" and more by exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")
