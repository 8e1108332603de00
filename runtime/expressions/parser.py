"""Tokens to nodes, after the grammar of the CEL specification.

Operators are parsed with two explicit stacks, so that Python's own stack grows only with brackets, and those are
counted: see limits.NESTING.
"""

from __future__ import annotations

from dataclasses import replace

from . import limits, syntax
from .errors import SyntaxProblem
from .lexer import Token

_LEVELS = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3}
_LEVELS |= {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_CONSTANTS = {"true": True, "false": False, "null": None}
# The specification also reserves `loop`, which is one of the names that a workflow offers.
_RESERVED = frozenset(
    "as break const continue else for function if import let package namespace return var void while".split()
)
_WRITTEN = {"and": "&&", "or": "||", "not": "!", "is": "==", "if": "`test ? this : that`"}  # for those who guess
_LITERALS = frozenset({"int", "uint", "double", "string", "bytes"})
MACROS = {"all": (2,), "exists": (2,), "exists_one": (2,), "existsOne": (2,), "map": (2, 3), "filter": (2,)} | {
    "sortBy": (2,), "groupBy": (2,)
}  # fmt: skip
MACROS |= {"optMap": (2,), "optFlatMap": (2,)}


def parse(text: str, tokens: list[Token]) -> syntax.Node:
    """The one expression that the tokens are. Raises SyntaxProblem."""
    parser = _Parser(text, tokens)
    if tokens[0].kind == "end":
        raise parser.problem("An expression is missing here.", tokens[0])
    node = parser.expression()
    if parser.token.kind != "end":
        raise parser.unexpected()
    return node


class _Parser:
    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self.token = tokens[0]
        self.nesting = -1

    def expression(self) -> syntax.Node:
        """`test ? then : otherwise`, or only `test`."""
        self.nesting += 1
        if self.nesting > limits.NESTING:
            raise self.problem(f"This is nested deeper than {limits.NESTING} levels. Split it into steps.", self.token)
        tests: list[tuple[syntax.Node, syntax.Node, int]] = []
        node = self.operations()
        while self.is_operator("?"):
            position = self.advance().start
            then = self.operations()
            self.expect(":")
            tests.append((node, then, position))
            node = self.operations()
        for test, then, position in reversed(tests):
            node = syntax.Conditional(test.start, node.end, position, test, then, node)
        self.nesting -= 1
        return node

    def operations(self) -> syntax.Node:
        """Operands joined by binary operators: the shunting-yard algorithm."""
        operands = [self.operand()]
        pending: list[Token] = []
        while True:
            level = _LEVELS.get(self.token.value, 0) if self.token.kind in ("operator", "name") else 0
            while pending and _LEVELS[pending[-1].value] >= max(level, 1):
                right = operands.pop()
                operands.append(_combine(pending.pop(), operands.pop(), right))
            if level == 0:
                return operands[0]
            pending.append(self.advance())
            operands.append(self.operand())

    def operand(self) -> syntax.Node:
        """A primary with its prefix operators and its selections, indexes and calls."""
        prefix = self.prefix()
        node = self.primary(negative=prefix is not None and prefix[0].value == "-" and prefix[1] % 2 == 1)
        if prefix is not None and type(node) is syntax.Literal and node.start == prefix[0].start:
            prefix = None  # the minus belongs to the number: -1.abs() is (-1).abs()
        while self.token.kind == "operator" and self.token.value in (".", "["):
            node = self.selection(node) if self.token.value == "." else self.index(node)
        if prefix is not None:
            token, count = prefix
            for _ in range(2 - count % 2):  # `!!x` also checks that x is a bool, so two are not none
                node = syntax.Unary(token.start, node.end, token.start, token.value, node)
        return node

    def prefix(self) -> tuple[Token, int] | None:
        if not (self.is_operator("!") or self.is_operator("-")):
            return None
        first, count = self.token, 0
        while self.is_operator(first.value):
            last = self.advance()
            count += 1
        if self.is_operator("!") or self.is_operator("-"):
            raise self.unexpected()
        return (first if count % 2 == 0 else last, count)

    def primary(self, negative: bool) -> syntax.Node:
        token = self.token
        if token.kind in _LITERALS:
            return self.literal(negative)
        if token.kind == "name":
            return self.name()
        if token.kind == "operator":
            if token.value == "(":
                self.advance()
                node = self.expression()
                return replace(node, start=token.start, end=self.expect(")").end)
            if token.value == "[":
                return self.list_literal()
            if token.value == "{":
                return self.map_literal()
            if token.value == ".":  # `.name` is the outermost name
                self.advance()
                return self.name()
        raise self.unexpected()

    def literal(self, negative: bool) -> syntax.Node:
        token = self.advance()
        value, start = token.value, token.start
        if token.kind in ("int", "double") and negative:
            value, start = -value, self.tokens[self.at - 2].start
        elif token.kind == "int" and value > limits.INT_MAX:
            raise self.problem(f"`{value}` is too large for a whole number.", token)
        return syntax.Literal(start, token.end, start, value)

    def name(self) -> syntax.Node:
        token = self.token
        if token.kind != "name":
            raise self.unexpected()
        self.advance()
        if token.value in _CONSTANTS:
            return syntax.Literal(token.start, token.end, token.start, _CONSTANTS[token.value])
        if token.value == "in":
            raise self.problem("`in` needs a value before it.", token)
        if token.value in _RESERVED:
            raise self.problem(f"`{token.value}` is a reserved word and cannot be a name.", token)
        if self.is_operator("("):
            return self.function(token)
        if self.is_operator("{"):
            raise self.problem(f"`{token.value}{{...}}`: message types are not supported; use a map.", self.token)
        return syntax.Name(token.start, token.end, token.start, token.value)

    def function(self, name: Token) -> syntax.Node:
        arguments, end = self.arguments()
        if name.value == "has":
            return self.has(name, arguments, end)
        return syntax.Call(name.start, end, name.start, name.value, None, arguments)

    def has(self, name: Token, arguments: tuple[syntax.Node, ...], end: int) -> syntax.Node:
        if len(arguments) != 1 or type(arguments[0]) is not syntax.Select or arguments[0].optional:
            raise self.problem("has() needs one field, as in has(trigger.body.email).", name)
        return syntax.Has(name.start, end, name.start, arguments[0])

    def selection(self, operand: syntax.Node) -> syntax.Node:
        self.advance()
        optional = self.skip("?")
        field = self.token
        if field.kind not in ("name", "quoted"):
            raise self.problem("A field's name is missing after the point.", field)
        self.advance()
        if self.is_operator("(") and field.kind == "name" and not optional:
            arguments, end = self.arguments()
            if field.value in MACROS:
                return self.comprehension(operand, field, arguments, end)
            return syntax.Call(operand.start, end, field.start, field.value, operand, arguments)
        return syntax.Select(operand.start, field.end, field.start, operand, field.value, optional)

    def comprehension(
        self, operand: syntax.Node, macro: Token, arguments: tuple[syntax.Node, ...], end: int
    ) -> syntax.Node:
        if len(arguments) not in MACROS[macro.value]:
            raise self.problem(f"{macro.value}() needs a variable and an expression: {macro.value}(x, ...).", macro)
        variable, *condition, body = arguments
        if type(variable) is not syntax.Name:
            raise self.problem(f"The first argument of {macro.value}() must be a variable's name.", macro)
        macro_name = "exists_one" if macro.value == "existsOne" else macro.value
        return syntax.Comprehension(
            operand.start,
            end,
            macro.start,
            macro_name,
            operand,
            variable.name,
            condition[0] if condition else None,
            body,
        )

    def index(self, operand: syntax.Node) -> syntax.Node:
        opening = self.advance()
        optional = self.skip("?")
        index = self.expression()
        end = self.expect("]").end
        return syntax.Index(operand.start, end, opening.start, operand, index, optional)

    def arguments(self) -> tuple[tuple[syntax.Node, ...], int]:
        self.advance()
        found = []
        while not self.is_operator(")"):
            found.append(self.expression())
            if not self.skip(","):
                break
            if self.is_operator(")"):
                raise self.problem("An argument is missing after the comma.", self.token)
        return tuple(found), self.expect(")").end

    def list_literal(self) -> syntax.Node:
        opening = self.advance()
        elements = []
        while not self.is_operator("]"):
            optional = self.skip("?")
            elements.append((self.expression(), optional))
            if not self.skip(","):
                break
        end = self.expect("]").end
        return syntax.ListLiteral(opening.start, end, opening.start, tuple(elements))

    def map_literal(self) -> syntax.Node:
        opening = self.advance()
        entries = []
        while not self.is_operator("}"):
            optional = self.skip("?")
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self.skip(","):
                break
        end = self.expect("}").end
        return syntax.MapLiteral(opening.start, end, opening.start, tuple(entries))

    def advance(self) -> Token:
        token = self.token
        self.at += 1
        self.token = self.tokens[self.at]
        return token

    def skip(self, operator: str) -> bool:
        found = self.is_operator(operator)
        if found:
            self.advance()
        return found

    def expect(self, operator: str) -> Token:
        if not self.is_operator(operator):
            if self.token.kind == "end":
                raise self.problem(f"`{operator}` is missing at the end.", self.token)
            raise self.problem(f"`{operator}` is expected here, not `{self.shown()}`.", self.token)
        return self.advance()

    def is_operator(self, operator: str) -> bool:
        return self.token.kind == "operator" and self.token.value == operator

    def unexpected(self) -> SyntaxProblem:
        if self.token.kind == "end":
            return self.problem("The expression ends too early: a value is missing.", self.token)
        word = self.shown() if self.token.kind == "name" else ""
        if word.lower() not in _WRITTEN and self.at and self.tokens[self.at - 1].value == "not":
            word = "not"
        remedy = f" Write {_WRITTEN[word.lower()]} for {word}." if word.lower() in _WRITTEN else ""
        return self.problem(f"`{self.shown()}` is not expected here.{remedy}", self.token)

    def shown(self) -> str:
        return self.text[self.token.start : self.token.end][:40]

    def problem(self, message: str, token: Token) -> SyntaxProblem:
        return SyntaxProblem(message, token.start + 1, self.text)


def _combine(operator: Token, left: syntax.Node, right: syntax.Node) -> syntax.Node:
    if operator.value not in ("&&", "||"):
        return syntax.Binary(left.start, right.end, operator.start, operator.value, left, right)
    operands = left.operands if type(left) is syntax.Logic and left.operator == operator.value else [left]
    operands.append(right)
    return syntax.Logic(left.start, right.end, operator.start, operator.value, operands)
