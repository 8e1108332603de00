"""What a condition's rules say about the sample data, in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runtime.expressions import ExpressionError, compile

from .forms.conditions import COMPARISONS, SYMBOLS, Rule, RuleError, Rules, compose, decompose
from .forms.plain import from_text, to_text
from .forms.widgets.expression import unbraced
from .tree import short

MOST_RULES = 3
STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """`id` names the element, `text` is empty where the samples do not reach."""

    id: str
    text: str = ""


def verdict(element: str, expression: str | None, names: Mapping[str, Any]) -> Verdict:
    """`Rule 1 with the sample data: 82 > 70 is true`."""
    if not expression:
        return Verdict(element)
    rules = decompose(expression)
    if rules is None:
        found = _value(expression, names)
        return Verdict(element, f"With the sample data this is {_word(found)}." if isinstance(found, bool) else "")
    several = sum(1 for _ in rules.each()) > 1
    told = [
        line
        for number, rule in enumerate(rules.each(), start=1)
        if (line := _told(rule, names, number if several else 0))
    ]
    return Verdict(element, ". ".join(told[:MOST_RULES]))


def _told(rule: Rule, names: Mapping[str, Any], number: int) -> str:
    if rule.incomplete():
        return ""
    try:
        result = _value(compose(Rules("all", (rule,))), names)
    except RuleError:
        return ""
    if not isinstance(result, bool):
        return ""
    left = _value(rule.left, names)
    words = rule.comparison if rule.comparison in SYMBOLS else COMPARISONS[rule.comparison]
    right = " ".join(_right(rule, names))
    said = f"{_quoted(left)} {words}{' ' + right if right else ''}"
    return f"{f'Rule {number} with' if number else 'With'} the sample data: {said} is {_word(result)}"


def _right(rule: Rule, names: Mapping[str, Any]) -> Iterator[str]:
    if not rule.right:
        return
    if "{{" in rule.right:
        yield _quoted(_value(unbraced(rule.right), names))
    else:
        yield _quoted(from_text(rule.right))


def _quoted(value: Any) -> str:
    return (
        f"“{short(value)}”"
        if isinstance(value, str)
        else short(value)
        if isinstance(value, (list, dict))
        else to_text(value)
    )


def _value(expression: str, names: Mapping[str, Any]) -> Any:
    """None also where the samples do not reach."""
    try:
        return compile(expression).evaluate(names, steps=STEPS)
    except (ExpressionError, ValueError):
        return None


def _word(value: bool) -> str:
    return "true" if value else "false"
