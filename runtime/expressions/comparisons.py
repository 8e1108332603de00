"""Closures for binary operators, special ones first, and what they say when the operands do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import limits, operators
from .code import Closure, Code, Site
from .errors import EvaluationError
from .fuel import Evaluation
from .values import NUMBERS, NUMBERS_AND_TIMES, Duration, Optional, Timestamp, in_words

_LONGEST_FREE = 256  # comparing with a constant text up to this length is not worth charging for
_FREE = frozenset({type(None), bool, int, float, str})


class Operands(NamedTuple):
    """Both sides of an operator, and how the writer wrote them."""

    left: Code
    right: Code
    site: Site
    left_text: str
    right_text: str


def binary(symbol: str, operands: Operands) -> Closure:
    if symbol == "==" or symbol == "!=":
        return _equality(symbol == "==", operands)
    if symbol in operators.RELATIONS:
        return _relation(symbol, operands)
    if symbol == "in":
        return _membership(operands)
    return _arithmetic(symbol, operands)


def _equality(wanted: bool, operands: Operands) -> Closure:
    left, right, site = operands.left.run, operands.right.run, operands.site

    def general(run: Evaluation, a: Any, b: Any) -> bool:
        try:
            return operators.equal(run, a, b) is wanted
        except EvaluationError as error:
            raise site.located(error)

    for constant, other in ((operands.right, left), (operands.left, right)):
        if constant.is_constant and type(constant.value) in _FREE:
            return _equality_with(constant.value, other, wanted, general)
    return lambda run: general(run, left(run), right(run))


def _equality_with(constant: Any, other: Closure, wanted: bool, general: Callable[..., bool]) -> Closure:
    """For a constant of a simple kind, on either side."""
    kind = type(constant)
    if kind is str and len(constant) > _LONGEST_FREE:
        return lambda run: general(run, other(run), constant)

    def equals_constant(run: Evaluation) -> bool:
        value = other(run)
        if type(value) is kind:
            return (value == constant) is wanted
        return general(run, value, constant)

    return equals_constant


def _relation(symbol: str, operands: Operands) -> Closure:
    left, right, relation = operands.left.run, operands.right.run, operators.RELATIONS[symbol]
    if operands.right.is_constant and type(operands.right.value) in NUMBERS:
        limit = operands.right.value

        def compare_with_number(run: Evaluation) -> bool:
            value = left(run)
            if type(value) in NUMBERS:
                return relation(value, limit)
            raise _incomparable(symbol, value, limit, operands)

        return compare_with_number

    def compare(run: Evaluation) -> bool:
        a, b = left(run), right(run)
        kind = type(a)
        if kind is type(b) and kind in NUMBERS_AND_TIMES:
            return relation(a, b)
        try:
            return operators.ordered(run, symbol, a, b)
        except EvaluationError as error:
            if error.kind != "type":
                raise operands.site.located(error)
        raise _incomparable(symbol, a, b, operands)

    return compare


def _membership(operands: Operands) -> Closure:
    left, right = operands.left.run, operands.right.run

    def is_member(run: Evaluation) -> bool:
        item, container = left(run), right(run)
        try:
            return operators.contained(run, item, container)
        except EvaluationError as error:
            if error.kind != "type":
                raise operands.site.located(error)
        remedy = " For text, write text.contains(part)." if type(container) is str else ""
        kind = in_words(container)
        raise operands.site.error(
            "type", f"{operands.right_text} is {kind}, and `in` looks into lists and maps.{remedy}"
        )

    return is_member


def _arithmetic(symbol: str, operands: Operands) -> Closure:
    left, right = operands.left.run, operands.right.run
    calculate = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}.get(symbol)
    smallest, largest = limits.INT_MIN, limits.INT_MAX

    def general(run: Evaluation, a: Any, b: Any) -> Any:
        try:
            return operators.arithmetic(run, symbol, a, b)
        except EvaluationError as error:
            if error.kind != "type":
                raise operands.site.located(error)
        raise _unfit(symbol, a, b, operands)

    if calculate is None:
        return lambda run: general(run, left(run), right(run))

    def arithmetic(run: Evaluation) -> Any:
        a, b = left(run), right(run)
        if type(a) is int and type(b) is int:
            result = calculate(a, b)
            if smallest <= result <= largest:
                return result
        return general(run, a, b)

    return arithmetic


def _incomparable(symbol: str, a: Any, b: Any, operands: Operands) -> EvaluationError:
    message = f"{operands.left_text} is {in_words(a)} and {operands.right_text} is {in_words(b)}"
    if type(a) in NUMBERS:
        message = f"{operands.right_text} is {in_words(b)}, and {symbol} compares it with a number"
    elif type(b) in NUMBERS:
        message = f"{operands.left_text} is {in_words(a)}, and {symbol} compares numbers"
    else:
        message += f", and {symbol} compares two numbers, two texts or two points in time"
    return operands.site.error("type", message + _remedy(a, b, operands, "number"))


def _unfit(symbol: str, a: Any, b: Any, operands: Operands) -> EvaluationError:
    message = f"{symbol} cannot work on {operands.left_text} ({in_words(a)}) and {operands.right_text} ({in_words(b)})"
    target = "text" if symbol == "+" and str in (type(a), type(b)) else "number"
    return operands.site.error("type", message + _remedy(a, b, operands, target))


def _remedy(a: Any, b: Any, operands: Operands, target: str) -> str:
    """How to make both sides fit, where one of them is easily turned into the other's kind."""
    for value, other, text in ((a, b, operands.left_text), (b, a, operands.right_text)):
        name = text[1:-1]
        if value is None:
            return "." if name == "null" else f". Check `{name} != null` first, or give a default."
        if type(value) is Optional:
            return f". It may be absent: give a default, {name}.orValue(...)."
        if type(value) is str and type(other) in (Timestamp, Duration):
            return f": use {'timestamp' if type(other) is Timestamp else 'duration'}({name})."
        if target == "number" and type(value) is str and type(other) in NUMBERS:
            return f": use int({name}) or double({name})."
        if target == "text" and type(other) is str and type(value) is not str:
            return f": use string({name})." if type(value) not in (list, dict) else f": use json_text({name})."
    return "."
