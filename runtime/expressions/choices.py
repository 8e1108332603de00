"""Closures for `!`, `&&`, `||` and `? :`.

`&&` and `||` are the same in both directions: an error on one side does not matter when the other side alone decides.
Only an exhausted budget always matters.
"""

from __future__ import annotations

from typing import Any

from .code import Closure, Site
from .errors import BudgetExceeded, EvaluationError
from .fuel import Evaluation
from .values import in_words

Part = tuple[Closure, Site, str]


def negation(operand: Closure, site: Site, text: str) -> Closure:
    def negate(run: Evaluation) -> bool:
        value = operand(run)
        if value is True:
            return False
        if value is False:
            return True
        raise _not_a_bool(site, text, value, "!")

    return negate


def conditional(test: Closure, then: Closure, otherwise: Closure, site: Site, text: str) -> Closure:
    def choose(run: Evaluation) -> Any:
        value = test(run)
        if value is True:
            return then(run)
        if value is False:
            return otherwise(run)
        raise _not_a_bool(site, text, value, "?")

    return choose


def logic(operator: str, parts: list[Part]) -> Closure:
    deciding = operator == "||"
    if len(parts) == 2:
        return _logic_of_two(operator, deciding, parts)

    def decide(run: Evaluation) -> bool:
        failure: EvaluationError | None = None
        for operand, site, text in parts:
            try:
                value = operand(run)
            except BudgetExceeded:
                raise
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is deciding:
                return deciding
            if type(value) is not bool:
                failure = failure or _not_a_bool(site, text, value, operator)
        if failure is not None:
            raise failure
        return not deciding

    return decide


def _logic_of_two(operator: str, deciding: bool, parts: list[Part]) -> Closure:
    (left, left_site, left_text), (right, right_site, right_text) = parts
    undecided = not deciding

    def decide(run: Evaluation) -> bool:
        failure: EvaluationError | None = None
        try:
            value = left(run)
        except BudgetExceeded:
            raise
        except EvaluationError as error:
            failure = error
        else:
            if value is deciding:
                return deciding
            if value is not undecided:
                failure = _not_a_bool(left_site, left_text, value, operator)
        try:
            value = right(run)
        except BudgetExceeded:
            raise
        except EvaluationError as error:
            raise failure or error
        if value is deciding:
            return deciding
        if failure is not None:
            raise failure
        if value is undecided:
            return undecided
        raise _not_a_bool(right_site, right_text, value, operator)

    return decide


def _not_a_bool(site: Site, text: str, value: Any, operator: str) -> EvaluationError:
    remedy = ""
    if type(value) is str:
        remedy = f' Compare it, as in {text[1:-1]} == "yes".'
    elif value is None:
        remedy = f" Check `{text[1:-1]} != null`, or give a default."
    return site.error("type", f"{text} is {in_words(value)}, and {operator} needs true or false.{remedy}")
