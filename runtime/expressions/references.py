"""Which paths an expression reads from its names, and which of them may be missing without harm.

A path is a name followed by the fields and literal indexes that are selected from it. Variables of macros are no names,
and an index that is only known when running ends the path before it. A reading is guarded when it stands in has(), is
optional (`.?`), or stands where a has() on it, or on a part before it, has already said yes: the branch of a
conditional, the later operands of `&&`, and of `||` after a negated has().
"""

from __future__ import annotations

from collections.abc import Iterator

from . import syntax
from .functions import NAMESPACES
from .values import TYPES

Path = tuple[str | int, ...]
_TYPE_ROOTS = frozenset({value.name for value in TYPES.values()} | {"google"})


class References:
    """What one expression reads: path -> is every reading of it guarded? In order of first appearance."""

    def __init__(self) -> None:
        self.found: dict[Path, bool] = {}

    @classmethod
    def of(cls, node: syntax.Node) -> References:
        references = cls()
        _Collector(references).visit(node, frozenset(), frozenset())
        return references

    def add(self, path: Path, guarded: bool) -> None:
        self.found[path] = self.found.get(path, True) and guarded

    def include(self, other: References) -> None:
        for path, guarded in other.found.items():
            self.add(path, guarded)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self.found)

    @property
    def guarded(self) -> frozenset[Path]:
        return frozenset(path for path, guarded in self.found.items() if guarded)


class _Collector:
    def __init__(self, references: References) -> None:
        self.references = references

    def visit(self, node: syntax.Node, variables: frozenset[str], guards: frozenset[Path]) -> None:
        kind = type(node)
        if kind is syntax.Name or kind is syntax.Select or kind is syntax.Index:
            self.chain(node, variables, guards, tested=False)
        elif kind is syntax.Has:
            self.chain(node.operand, variables, guards, tested=True)
        elif kind is syntax.Conditional:
            self.visit(node.test, variables, guards)
            self.visit(node.then, variables, guards | promised(node.test, True, variables))
            self.visit(node.otherwise, variables, guards | promised(node.test, False, variables))
        elif kind is syntax.Logic:
            for operand in node.operands:
                self.visit(operand, variables, guards)
                guards |= promised(operand, node.operator == "&&", variables)
        elif kind is syntax.Comprehension:
            self.comprehension(node, variables, guards)
        else:
            for child in _children(node, variables):
                self.visit(child, variables, guards)

    def comprehension(self, node: syntax.Comprehension, variables: frozenset[str], guards: frozenset[Path]) -> None:
        self.visit(node.range, variables, guards)
        inner = variables | {node.variable}
        guards = frozenset(path for path in guards if path[0] != node.variable)
        if node.condition is not None:
            self.visit(node.condition, inner, guards)
            guards |= promised(node.condition, True, inner)
        self.visit(node.body, inner, guards)

    def chain(self, node: syntax.Node, variables: frozenset[str], guards: frozenset[Path], tested: bool) -> None:
        bottom, links = _links(node)
        if type(bottom) is not syntax.Name:
            self.visit(bottom, variables, guards)
        elif bottom.name not in variables and not _is_type(bottom, links):
            self.read(bottom.name, links, guards, tested)
        for link in links:
            if type(link) is syntax.Index and _literal_index(link.index) is None:
                self.visit(link.index, variables, guards)

    def read(self, name: str, links: list, guards: frozenset[Path], tested: bool) -> None:
        path: Path = (name,)
        optional = False
        for link in links:
            key = link.field if type(link) is syntax.Select else _literal_index(link.index)
            if key is None:
                break
            if link.optional and not optional:
                optional = True
                if len(path) > 1:  # what stands before the first `.?` must be there
                    self.references.add(path, _covered(path, guards))
            path += (key,)
        self.references.add(path, tested or optional or _covered(path, guards))


def promised(test: syntax.Node, outcome: bool, variables: frozenset[str]) -> frozenset[Path]:
    """The paths that are there when `test` has this outcome."""
    kind = type(test)
    if kind is syntax.Unary and test.operator == "!":
        return promised(test.operand, not outcome, variables)
    if kind is syntax.Logic and (test.operator == "&&") is outcome:
        return frozenset().union(*(promised(operand, outcome, variables) for operand in test.operands))
    if kind is syntax.Has and outcome:
        bottom, links = _links(test.operand)
        keys = [link.field if type(link) is syntax.Select else _literal_index(link.index) for link in links]
        if type(bottom) is syntax.Name and bottom.name not in variables and None not in keys:
            return frozenset({(bottom.name, *keys)})
    return frozenset()


def _covered(path: Path, guards: frozenset[Path]) -> bool:
    return any(path[:length] in guards for length in range(2, len(path) + 1))


def _links(node: syntax.Node) -> tuple[syntax.Node, list]:
    links = []
    while type(node) is syntax.Select or type(node) is syntax.Index:
        links.append(node)
        node = node.operand
    return node, links[::-1]


def _is_type(bottom: syntax.Name, links: list) -> bool:
    return bottom.name in _TYPE_ROOTS and (bottom.name != "google" or len(links) == 2)


def _literal_index(node: syntax.Node) -> str | int | None:
    return node.value if type(node) is syntax.Literal and type(node.value) in (str, int) else None


def _children(node: syntax.Node, variables: frozenset[str]) -> Iterator[syntax.Node]:
    if type(node) is syntax.Call:
        target = node.target
        namespace = type(target) is syntax.Name and target.name in NAMESPACES and target.name not in variables
        if target is not None and not namespace:
            yield target
        yield from node.arguments
    elif type(node) is syntax.ListLiteral:
        yield from (element for element, _ in node.elements)
    elif type(node) is syntax.MapLiteral:
        for key, value, _ in node.entries:
            yield from (key, value)
    elif type(node) is syntax.Unary:
        yield node.operand
    elif type(node) is syntax.Binary:
        yield from (node.left, node.right)
