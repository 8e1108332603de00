"""An expression: as rules where rules can say it, as text otherwise."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from runtime.expressions import SyntaxProblem, compile

from ...fields import ConfigField
from ..base import FieldError, Offer, Widget
from ..conditions import ALL, ALONE, ANY, COMPARISONS, Rule, RuleError, Rules, compose, decompose
from .text import clean


class Expression(Widget):
    """One expression in one field, for values: a list to go through, a value to collect."""

    kind = "expression"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        return {"template": braced(value)}

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        return read_expression(post.get("value", ""))


class Condition(Widget):
    """An expression that is true or false."""

    kind, grouped = "condition", True

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        rules = decompose(value) if value else Rules(ALL, ())
        return {
            "rules": rules,
            "items": [_shown(item) for item in rules.items] if rules else [],
            "as_rules": rules is not None,
            "match": rules.match if rules else ALL,
            "expression": value or "",
            "comparisons": COMPARISONS,
            "alone": ALONE,
            "blank": {"left": "", "comparison": "==", "right": ""},
        }

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        if post.get("mode") == "expression":
            return read_expression(post.get("expression", ""))
        rules = read_rules(post)
        if not rules.items:
            return None
        try:
            expression = compose(rules)
            compile(expression)
        except RuleError as wrong:
            raise FieldError(str(wrong), wrong.row) from None
        except SyntaxProblem as wrong:
            raise FieldError(str(wrong), unreadable=True) from None
        return expression


def read_rules(post: QueryDict) -> Rules:
    """Rules are posted as parallel lists `group left comparison right`; group 0 is the top, the others stand in it."""
    top: list[Rule | list[Rule]] = []
    groups: dict[str, list[Rule]] = {}
    columns = (post.getlist("group"), post.getlist("left"), post.getlist("comparison"), post.getlist("right"))
    for group, left, comparison, right in zip(*columns, strict=False):
        rule = Rule(unbraced(clean(left)), comparison, "" if comparison in ALONE else clean(right).strip())
        if not rule.left and not rule.right:
            continue
        if group in ("", "0"):
            top.append(rule)
        elif group in groups:
            groups[group].append(rule)
        else:
            groups[group] = [rule]
            top.append(groups[group])
    match = ANY if post.get("match") == ANY else ALL
    inner = ALL if match == ANY else ANY
    return Rules(match, tuple(Rules(inner, tuple(one)) if isinstance(one, list) else one for one in top))


def read_expression(text: str) -> str | None:
    source = unbraced(clean(text))
    if not source:
        return None
    try:
        compile(source)
    except SyntaxProblem as wrong:
        raise FieldError(str(wrong), unreadable=True) from None
    return source


def unbraced(text: str) -> str:
    """`{{ a.b }}` -> `a.b`: fields for values send what was inserted as a template."""
    stripped = text.strip()
    if stripped.startswith("{{") and stripped.endswith("}}") and stripped.count("{{") == 1:
        return stripped[2:-2].strip()
    return stripped


def braced(expression: Any) -> str:
    return f"{{{{ {expression} }}}}" if expression else ""


def _shown(item: Rule | Rules) -> dict[str, Any]:
    if isinstance(item, Rules):
        return {"group": True, "match": item.match, "rules": [_shown(rule) for rule in item.each()]}
    return {
        "left": braced(item.left),
        "comparison": item.comparison,
        "right": item.right,
        "alone": item.comparison in ALONE,
        "incomplete": item.incomplete(),
    }


WIDGETS = (Expression(), Condition())
