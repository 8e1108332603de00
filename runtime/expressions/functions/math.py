"""Numbers: the specification's math extension, but for its bit operations."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from .. import operators
from ..errors import EvaluationError
from ..fuel import Evaluation
from ..values import Uint
from .lists import extreme
from .registry import ANY, NUMBER, function

_MOST_ARGUMENTS = 8


def _declare_extreme(name: str, relation: str) -> None:
    def of_arguments(run: Evaluation, *items: Any) -> Any:
        return extreme(run, list(items), relation, name)

    def of_list(run: Evaluation, items: list) -> Any:
        return extreme(run, items, relation, name)

    function(f"math.{name}", list)(of_list)
    for count in range(1, _MOST_ARGUMENTS + 1):
        function(f"math.{name}", *[ANY] * count)(of_arguments)


_declare_extreme("greatest", ">")
_declare_extreme("least", "<")


@function("math.abs", NUMBER)
def absolute(run: Evaluation, value: int | float) -> int | float:
    return operators.whole(abs(value)) if type(value) is int else abs(value)


@function("math.sign", NUMBER)
def sign(run: Evaluation, value: int | float) -> int | float:
    if value != value:
        return value
    return type(value)((value > 0) - (value < 0))


@function("math.ceil", NUMBER)
def ceil(run: Evaluation, value: int | float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


@function("math.floor", NUMBER)
def floor(run: Evaluation, value: int | float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


@function("math.trunc", NUMBER)
def trunc(run: Evaluation, value: int | float) -> float:
    return float(math.trunc(value)) if math.isfinite(value) else value


@function("math.round", NUMBER)
@function("math.round", NUMBER, int)
def nearest(run: Evaluation, value: int | float, digits: int = 0) -> float:
    """Halves away from zero, as people round; `digits` after the point, 0 to 15."""
    if not 0 <= digits <= 15:
        raise EvaluationError("value", "math.round() keeps 0 to 15 digits after the point.")
    if not math.isfinite(value) or abs(value) >= 2.0**52:
        return float(value)
    # The shortest text of a double is what the writer sees: 2.675 rounds to 2.68 though the double lies below it.
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


@function("math.isNaN", NUMBER)
def is_nan(run: Evaluation, value: int | float) -> bool:
    return value != value


@function("math.isInf", NUMBER)
def is_infinite(run: Evaluation, value: int | float) -> bool:
    return math.isinf(value)


@function("math.isFinite", NUMBER)
def is_finite(run: Evaluation, value: int | float) -> bool:
    return math.isfinite(value)


@function("math.abs", Uint)
def absolute_unsigned(run: Evaluation, value: Uint) -> Uint:
    return value
