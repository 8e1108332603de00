"""The nodes of a parsed expression. Offsets count characters from 0 in the whole source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal as OneOf


@dataclass(frozen=True, slots=True)
class Node:
    start: int
    end: int
    position: int  # the offset to blame: an operator, a field's name, a function's name


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    operand: Node
    field: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Index(Node):
    operand: Node
    index: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class Has(Node):
    operand: Select


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral(Node):
    elements: tuple[tuple[Node, bool], ...]  # (element, is it `?element`)


@dataclass(frozen=True, slots=True)
class MapLiteral(Node):
    entries: tuple[tuple[Node, Node, bool], ...]  # (key, value, is it `?key`)


@dataclass(frozen=True, slots=True)
class Unary(Node):
    operator: OneOf["!", "-"]
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Logic(Node):
    """`a && b && c` or `a || b || c`: one node, however long."""

    operator: OneOf["&&", "||"]
    operands: list[Node]


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    test: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """A macro that binds a variable: all, exists, exists_one, filter, map, sortBy, groupBy, optMap, optFlatMap."""

    macro: str
    range: Node
    variable: str
    condition: Node | None  # only of map(x, condition, body)
    body: Node
