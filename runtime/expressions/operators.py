"""Equality, order and arithmetic over values.

Numbers of different kinds compare by their exact mathematical value, and an int and a double also add, subtract,
multiply and divide, giving a double (the specification has no such overloads). Errors carry no position here; the
closure that called adds it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from . import limits
from .errors import EvaluationError
from .fuel import Evaluation, text_size
from .values import (
    KNOWN,
    NUMBERS,
    NUMBERS_AND_TIMES,
    Duration,
    Optional,
    Timestamp,
    Uint,
    in_words,
    lookup_key,
)

TIMESTAMP_MIN, TIMESTAMP_MAX = -62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1
RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_LONG_TEXT = 256  # comparing shorter ones costs less than charging for it


def equal(run: Evaluation, a: Any, b: Any, depth: int = 0) -> bool:
    """`a == b`: false for values of different kinds.

    Only an optional and a value that is none are an error, for that is always a forgotten default.
    """
    kind = type(a)
    if kind is not type(b):
        if kind is Optional or type(b) is Optional:
            raise EvaluationError("type", "An optional value equals no other value. Give a default: .orValue(...).")
        return kind in NUMBERS and type(b) in NUMBERS and a == b
    if kind is str or kind is bytes:
        if len(a) > _LONG_TEXT:
            run.charge(len(a) // _LONG_TEXT)
        return a == b
    if kind is list or kind is dict:
        if len(a) != len(b):
            return False
        if depth >= limits.DATA_DEPTH:
            raise too_deep()
        run.charge(len(a))
        return (_equal_lists if kind is list else _equal_maps)(run, a, b, depth + 1)
    if kind is Optional:
        return a.present == b.present and (not a.present or equal(run, a.value, b.value, depth))
    return kind in KNOWN and a == b


# Plain loops and not all(...): a generator would double what each level takes of Python's stack.
def _equal_lists(run: Evaluation, a: list, b: list, depth: int) -> bool:
    for x, y in zip(a, b):
        if not equal(run, x, y, depth):
            return False
    return True


def _equal_maps(run: Evaluation, a: dict, b: dict, depth: int) -> bool:
    for key, value in a.items():
        if key not in b or not equal(run, value, b[key], depth):
            return False
    return True


def too_deep() -> EvaluationError:
    return EvaluationError("value", f"This value is nested deeper than {limits.DATA_DEPTH} levels.")


def ordered(run: Evaluation, symbol: str, a: Any, b: Any) -> bool:
    """`a < b` and its like."""
    kind, other = type(a), type(b)
    if kind is other:
        if kind is str or kind is bytes:
            if len(a) > _LONG_TEXT:
                run.charge(len(a) // _LONG_TEXT)
            return RELATIONS[symbol](a, b)
        if kind in NUMBERS_AND_TIMES:
            return RELATIONS[symbol](a, b)
    elif kind in NUMBERS and other in NUMBERS:
        return RELATIONS[symbol](a, b)
    raise EvaluationError("type", f"{symbol} cannot compare {in_words(a)} with {in_words(b)}.")


def contained(run: Evaluation, item: Any, container: Any) -> bool:
    """`item in container`: an element of a list, or a key of a map."""
    if type(container) is dict:
        key = lookup_key(item)
        return key is not None and key in container
    if type(container) is list:
        if type(item) is str:  # no other kind equals a text, so Python's own search is right
            run.charge(len(container) // 8 * (1 + len(item) // _LONG_TEXT))
            return item in container
        run.charge(len(container))
        return any(equal(run, item, element) for element in container)
    raise EvaluationError("type", f"`in` needs a list or a map after it, not {in_words(container)}.")


def arithmetic(run: Evaluation, symbol: str, a: Any, b: Any) -> Any:
    """`a + b` and its like for every pair of kinds that has one."""
    calculate = _ARITHMETIC.get((symbol, type(a), type(b)))
    if calculate is None:
        raise EvaluationError("type", f"{symbol} cannot join {in_words(a)} and {in_words(b)}.")
    return calculate(run, a, b)


def negate(run: Evaluation, a: Any) -> Any:
    if type(a) is int:
        return whole(-a)
    if type(a) is float:
        return -a
    if type(a) is Duration:
        return duration(-a)
    raise EvaluationError("type", f"- needs a number or a length of time after it, not {in_words(a)}.")


def whole(value: int) -> int:
    if limits.INT_MIN <= value <= limits.INT_MAX:
        return value
    raise EvaluationError("overflow", "The result is too large for a whole number (64 bits).")


def unsigned(value: int) -> Uint:
    if 0 <= value <= limits.UINT_MAX:
        return Uint(value)
    raise EvaluationError("overflow", "The result does not fit an unsigned number (0 to 18446744073709551615).")


def timestamp(nanos: int) -> Timestamp:
    if TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
        return Timestamp(nanos)
    raise EvaluationError("overflow", "The point in time is outside of the years 1 to 9999.")


def duration(nanos: int) -> Duration:
    if limits.INT_MIN <= nanos <= limits.INT_MAX:
        return Duration(nanos)
    raise EvaluationError("overflow", "The length of time is longer than 292 years.")


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("division", "Division by zero.")
    size = abs(int(a)) // abs(int(b))
    return size if (a < 0) == (b < 0) else -size


def _remainder(a: int, b: int) -> int:
    if b == 0:
        raise EvaluationError("division", "Remainder of a division by zero.")
    size = abs(int(a)) % abs(int(b))
    return -size if a < 0 else size


def _divide_doubles(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _join_text(run: Evaluation, a: str, b: str) -> str:
    run.allocate(text_size(a) + text_size(b))
    return a + b


def _join_bytes(run: Evaluation, a: bytes, b: bytes) -> bytes:
    run.allocate(len(a) + len(b))
    return a + b


def _join_lists(run: Evaluation, a: list, b: list) -> list:
    run.allocate(16 + 8 * (len(a) + len(b)))
    return a + b


def _table() -> dict[tuple[str, type, type], Callable[[Evaluation, Any, Any], Any]]:
    table: dict[tuple[str, type, type], Callable[[Evaluation, Any, Any], Any]] = {
        ("+", str, str): _join_text,
        ("+", bytes, bytes): _join_bytes,
        ("+", list, list): _join_lists,
        ("+", Timestamp, Duration): lambda run, a, b: timestamp(int(a) + b),
        ("+", Duration, Timestamp): lambda run, a, b: timestamp(int(a) + b),
        ("-", Timestamp, Duration): lambda run, a, b: timestamp(int(a) - b),
        ("-", Timestamp, Timestamp): lambda run, a, b: duration(int(a) - b),
        ("+", Duration, Duration): lambda run, a, b: duration(int(a) + b),
        ("-", Duration, Duration): lambda run, a, b: duration(int(a) - b),
    }
    whole_numbers = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _quotient, "%": _remainder}
    for symbol, calculate in whole_numbers.items():
        table[symbol, int, int] = lambda run, a, b, calculate=calculate: whole(calculate(a, b))
        table[symbol, Uint, Uint] = lambda run, a, b, calculate=calculate: unsigned(calculate(int(a), int(b)))
    doubles = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide_doubles}
    pairs = [(float, float), (float, int), (int, float), (float, Uint), (Uint, float)]
    for symbol, calculate in doubles.items():
        for left, right in pairs:
            table[symbol, left, right] = lambda run, a, b, calculate=calculate: calculate(float(a), float(b))
    return table


_ARITHMETIC = _table()
