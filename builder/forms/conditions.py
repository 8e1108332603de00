"""Rules (a value, a comparison, another value; all or any) <-> an expression. What rules cannot say stays an
expression."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from runtime.expressions import SyntaxProblem, syntax
from runtime.expressions.lexer import tokens
from runtime.expressions.parser import parse

from .plain import from_text, to_text

ALL, ANY = "all", "any"

COMPARISONS = {
    "==": "is",
    "!=": "is not",
    ">": "is greater than",
    ">=": "is at least",
    "<": "is less than",
    "<=": "is at most",
    "contains": "contains",
    "not contains": "does not contain",
    "startsWith": "starts with",
    "not startsWith": "does not start with",
    "endsWith": "ends with",
    "not endsWith": "does not end with",
    "in": "is one of",
    "not in": "is not one of",
    "empty": "is empty",
    "not empty": "is not empty",
    "true": "is true",
    "false": "is false",
    "has": "is there",
    "not has": "is not there",
    "matches": "matches the pattern",
}
ALONE = {"empty", "not empty", "true", "false", "has", "not has"}
"""Comparisons with nothing on the right."""
SYMBOLS = {"==", "!=", ">", ">=", "<", "<="}
METHODS = {"contains", "startsWith", "endsWith", "matches"}
NEED_VALUE = {*SYMBOLS, *METHODS, "not contains", "not startsWith", "not endsWith", "in", "not in"} - {"==", "!="}


@dataclass(frozen=True, slots=True)
class Rule:
    """`left` is an expression; `right` is a value as `plain` writes it, or `{{ expression }}`."""

    left: str
    comparison: str
    right: str = ""

    def incomplete(self) -> bool:
        return self.comparison in NEED_VALUE and not self.right.strip()


@dataclass(frozen=True, slots=True)
class Rules:
    match: str
    items: tuple[Rule | Rules, ...]

    def each(self) -> Iterator[Rule]:
        for item in self.items:
            yield from item.each() if isinstance(item, Rules) else (item,)


class RuleError(ValueError):
    """`row` counts the rules from 0, groups opened."""

    def __init__(self, row: int, message: str):
        super().__init__(message)
        self.row = row


def compose(rules: Rules) -> str:
    """The expression that is true when the rules are. Raises RuleError."""
    count = iter(range(10_000))
    return _compose(rules, count)


def _compose(rules: Rules, count: Iterator[int]) -> str:
    parts = []
    for item in rules.items:
        if isinstance(item, Rules):
            inner = _compose(item, count)
            if inner:
                parts.append(f"({inner})" if len(item.items) > 1 else inner)
        else:
            parts.append(_one(item, next(count)))
    return (" || " if rules.match == ANY else " && ").join(parts)


def _one(rule: Rule, row: int) -> str:
    left = rule.left.strip()
    if not left:
        raise RuleError(row, "Choose the value to check.")
    node = _parsed(left)
    if node is None:
        raise RuleError(row, "The value to check is not an expression that can be read.")
    guarded = left if isinstance(node, (syntax.Name, syntax.Select, syntax.Index, syntax.Call)) else f"({left})"
    match rule.comparison:
        case "true":
            return guarded
        case "false":
            return f"!{guarded}"
        case "has" | "not has":
            if not isinstance(node, syntax.Select):
                raise RuleError(row, "Only a field can be asked for being there.")
            return f"has({left})" if rule.comparison == "has" else f"!has({left})"
        case "empty" | "not empty":
            return f"size({left}) {'==' if rule.comparison == 'empty' else '>'} 0"
    right = _right(rule.right, row)
    if rule.comparison in SYMBOLS:
        return f"{guarded} {rule.comparison} {right}"
    negated, name = rule.comparison.startswith("not "), rule.comparison.removeprefix("not ")
    if name == "in":
        positive = f"{guarded} in {right}"
        return f"!({positive})" if negated else positive
    if name not in METHODS:
        raise RuleError(row, f"There is no comparison “{rule.comparison}”.")
    return f"{'!' if negated else ''}{guarded}.{name}({right})"


def _right(text: str, row: int) -> str:
    stripped = text.strip()
    if stripped.startswith("{{") and stripped.endswith("}}") and stripped.count("{{") == 1:
        inner = stripped[2:-2].strip()
        if _parsed(inner) is None:
            raise RuleError(row, "The value to compare with is not an expression that can be read.")
        return (
            inner
            if isinstance(_parsed(inner), (syntax.Name, syntax.Select, syntax.Index, syntax.Call))
            else f"({inner})"
        )
    if "{{" in stripped:
        raise RuleError(row, "Compare with text or with one value, not with both in one field.")
    return json.dumps(from_text(text.strip()), ensure_ascii=False)


@lru_cache(maxsize=2048)
def decompose(expression: str) -> Rules | None:
    """The rules that an expression says, or None where it says more than rules can. Kept: every drawing asks again."""
    node = _parsed(expression)
    if node is None:
        return None
    rules = _rules(node, expression)
    if rules is None:
        return None
    try:
        back = _parsed(compose(rules))
    except RuleError:
        return None
    return rules if back is not None and _same(node, back) else None


def rule_with(expression: str, reference: str) -> int | None:
    """The number, from 0, of the first rule that reads `reference`; None where it is not written as rules."""
    rules = decompose(expression)
    return next((row for row, rule in enumerate(rules.each() if rules else ()) if reference in f"{rule.left} {rule.right}"), None)


def _rules(node: syntax.Node, source: str, depth: int = 0) -> Rules | None:
    if not isinstance(node, syntax.Logic):
        rule = _rule(node, source)
        return Rules(ALL, (rule,)) if rule else None
    items: list[Rule | Rules] = []
    for operand in node.operands:
        inside = isinstance(operand, syntax.Logic)
        item = _rules(operand, source, depth + 1) if inside and depth == 0 else _rule(operand, source)
        if item is None:
            return None
        items.append(item)
    return Rules(ANY if node.operator == "||" else ALL, tuple(items))


def _rule(node: syntax.Node, source: str) -> Rule | None:
    match node:
        case syntax.Binary(
            operator=("==" | ">") as operator,
            left=syntax.Call(function="size", target=None, arguments=(inner,)),
            right=syntax.Literal(value=0),
        ):
            return Rule(_slice(inner, source), "empty" if operator == "==" else "not empty")
        case syntax.Binary(operator=operator, left=left, right=right) if operator in SYMBOLS or operator == "in":
            return Rule(_slice(left, source), operator, _shown(right, source))
        case syntax.Call(function=name, target=target, arguments=(argument,)) if name in METHODS and target is not None:
            return Rule(_slice(target, source), name, _shown(argument, source))
        case syntax.Has(operand=operand):
            return Rule(_slice(operand, source), "has")
        case syntax.Unary(operator="!", operand=inner):
            return _negated(inner, source)
        case syntax.Name() | syntax.Select() | syntax.Index() | syntax.Call():
            return Rule(_slice(node, source), "true")
    return None


def _negated(node: syntax.Node, source: str) -> Rule | None:
    if isinstance(node, (syntax.Name, syntax.Select, syntax.Index)):
        return Rule(_slice(node, source), "false")
    rule = _rule(node, source)
    if rule is None or f"not {rule.comparison}" not in COMPARISONS or rule.comparison == "empty":
        return None
    return Rule(rule.left, f"not {rule.comparison}", rule.right)


def _shown(node: syntax.Node, source: str) -> str:
    """A literal as people type it, everything else as `{{ }}`."""
    written = _slice(node, source)
    if isinstance(node, syntax.Literal) and isinstance(node.value, (str, bool, int, float, type(None))):
        return to_text(node.value)
    if isinstance(node, (syntax.ListLiteral, syntax.MapLiteral)):
        try:
            return to_text(json.loads(written))
        except ValueError:
            pass
    return f"{{{{ {written} }}}}"


def _slice(node: syntax.Node, source: str) -> str:
    """As it is written, without brackets around all of it: composing puts them back where they are needed."""
    written = source[node.start : node.end]
    while written.startswith("(") and written.endswith(")") and _parsed(written[1:-1]) is not None:
        written = written[1:-1].strip()
    return written


def _parsed(expression: str) -> syntax.Node | None:
    try:
        return parse(expression, tokens(expression))
    except SyntaxProblem:
        return None


def _same(left: Any, right: Any) -> bool:
    """Equal but for where things stand in the text."""
    if type(left) is not type(right):
        return False
    if isinstance(left, syntax.Node):
        names = [field.name for field in fields(left) if field.name not in ("start", "end", "position")]
        return all(_same(getattr(left, name), getattr(right, name)) for name in names)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right
