"""Nodes to closures.

Each node becomes one closure over its children's closures, chosen as special as what is known allows: a comparison
with a constant, a function of a constant text, a path of plain fields. What does not depend on names is worked out
once, here. The work that a closure always does is counted here too and charged in one go (see `cost`), so that the
fuel costs nothing where it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import calls, choices, comparisons, comprehensions, limits, operators, paths, syntax
from .code import Closure, Code, Site, written
from .errors import EvaluationError
from .fuel import Evaluation
from .values import TYPES, Optional, in_words, key_value, map_key

TYPE_NAMES = {value.name: value for value in TYPES.values()}


class Compiler:
    """Compiles one expression. `slots` and `cost` are valid afterwards."""

    def __init__(self, source: str, checked: bool) -> None:
        self.source = source
        self.checked = checked
        self.cost = 0  # steps that running the code once always takes, without what comprehensions repeat
        self.slots = 0  # variables that are alive at the same time
        self.depth = 0
        self.scope: list[str] = []  # the variables in sight; their index is their slot
        self.folding = Evaluation({}, 0, limits.FOLDING_STEPS, limits.FOLDING_MEMORY)

    def build(self, node: syntax.Node) -> Code:
        self.depth += 1
        if self.depth > limits.CHAIN:
            raise self.site(node).problem(f"This hangs together over more than {limits.CHAIN} parts. Split it.")
        code = _BUILDERS[type(node)](self, node)
        self.depth -= 1
        return code

    def site(self, node: syntax.Node) -> Site:
        return Site.of(self.source, node)

    def written(self, node: syntax.Node) -> str:
        return written(self.source, node)

    def fold(self, run: Closure, *parts: Code) -> Code:
        """The code for a closure over these parts: its value, when all of theirs are known."""
        self.cost += 1
        if all(part.is_constant for part in parts):
            try:
                return Code.constant(run(self.folding))
            except EvaluationError:
                pass  # it is an error each time it runs, not before: `false && 1 / 0 > 0` is fine
        return Code(run)

    def build_repeated(self, variable: str, *nodes: syntax.Node | None) -> tuple[int, int, list[Code | None]]:
        """Compile bodies that run once per item: (slot of the variable, steps of one run, codes)."""
        outer, self.cost = self.cost, 0
        self.scope.append(variable)
        self.slots = max(self.slots, len(self.scope))
        codes = [None if node is None else self.build(node) for node in nodes]
        self.scope.pop()
        each, self.cost = self.cost, outer + 1
        return len(self.scope), each + 1, codes

    def slot(self, name: str) -> int | None:
        """Where a variable is kept, or None when the name is none."""
        for index in range(len(self.scope) - 1, -1, -1):
            if self.scope[index] == name:
                return index
        return None


def _literal(compiler: Compiler, node: syntax.Literal) -> Code:
    return Code.constant(node.value)


def _name(compiler: Compiler, node: syntax.Name) -> Code:
    slot = compiler.slot(node.name)
    if slot is not None:
        return Code(lambda run: run.variables[slot])
    if node.name in TYPE_NAMES:
        return Code.constant(TYPE_NAMES[node.name])
    compiler.cost += 1
    return Code(paths.read_name(node.name, compiler.site(node)))


def _chain(compiler: Compiler, node: syntax.Select | syntax.Index) -> Code:
    type_value = _type_name(compiler, node)
    if type_value is not None:
        return type_value
    compiler.cost += 1
    bottom, links = paths.segments(compiler.source, node, compiler.build)
    if type(bottom) is syntax.Name and compiler.slot(bottom.name) is None and bottom.name not in TYPE_NAMES:
        return Code(paths.read_from_name(bottom.name, links, compiler.site(bottom)))
    base = compiler.build(bottom)
    return compiler.fold(paths.read(base.run, links), base, *(link.code for link in links))


def _type_name(compiler: Compiler, node: syntax.Select | syntax.Index) -> Code | None:
    """google.protobuf.Timestamp and google.protobuf.Duration are names of types."""
    text = compiler.source[node.start : node.end] if type(node) is syntax.Select else ""
    if text.startswith("google.") and text in TYPE_NAMES and compiler.slot("google") is None:
        return Code.constant(TYPE_NAMES[text])
    return None


def _has(compiler: Compiler, node: syntax.Has) -> Code:
    compiler.cost += 1
    bottom, links = paths.segments(compiler.source, node.operand, compiler.build)
    base = compiler.build(bottom)
    return compiler.fold(paths.has(base.run, links), base, *(link.code for link in links))


def _list(compiler: Compiler, node: syntax.ListLiteral) -> Code:
    codes = [compiler.build(element) for element, _ in node.elements]
    size = 16 + 8 * len(codes)
    if any(optional for _, optional in node.elements):
        parts = [(code.run, optional) for code, (_, optional) in zip(codes, node.elements)]
        return compiler.fold(_list_with_optionals(parts, size, compiler.site(node)), *codes)
    items = [code.run for code in codes]

    def build_list(run: Evaluation) -> list:
        run.allocate(size)
        return [item(run) for item in items]

    return compiler.fold(build_list, *codes)


def _list_with_optionals(parts: list[tuple[Closure, bool]], size: int, site: Site) -> Closure:
    def build_list(run: Evaluation) -> list:
        run.allocate(size)
        items = []
        for part, optional in parts:
            value = part(run)
            if not optional:
                items.append(value)
            elif _is_present(value, site):
                items.append(value.value)
        return items

    return build_list


def _is_present(value: Any, site: Site) -> bool:
    if type(value) is not Optional:
        raise site.error("type", f"After `?` an optional value is needed, as a.?b gives, not {in_words(value)}.")
    return value.present


def _map(compiler: Compiler, node: syntax.MapLiteral) -> Code:
    codes = [(compiler.build(key), compiler.build(value), optional) for key, value, optional in node.entries]
    parts = [(key.run, value.run, optional) for key, value, optional in codes]
    size, site = 64 + 96 * len(parts), compiler.site(node)

    def build_map(run: Evaluation) -> dict:
        run.allocate(size)
        entries: dict = {}
        for key_part, value_part, optional in parts:
            key = key_part(run)
            stored = map_key(key)
            if stored is None:
                raise site.error(
                    "type", f"A map's key must be text, a whole number, true or false, not {in_words(key)}."
                )
            if stored in entries:
                raise site.error("value", f"The map has the key `{str(key_value(stored))[:40]}` twice.")
            value = value_part(run)
            if not optional:
                entries[stored] = value
            elif _is_present(value, site):
                entries[stored] = value.value
        return entries

    return compiler.fold(build_map, *(code for key, value, _ in codes for code in (key, value)))


def _unary(compiler: Compiler, node: syntax.Unary) -> Code:
    code, site, text = compiler.build(node.operand), compiler.site(node), compiler.written(node.operand)
    operand = code.run
    if node.operator == "!":
        return compiler.fold(choices.negation(operand, site, text), code)

    def negate(run: Evaluation) -> Any:
        try:
            return operators.negate(run, operand(run))
        except EvaluationError as error:
            raise site.located(error)

    return compiler.fold(negate, code)


def _binary(compiler: Compiler, node: syntax.Binary) -> Code:
    left, right = compiler.build(node.left), compiler.build(node.right)
    operands = comparisons.Operands(
        left, right, compiler.site(node), compiler.written(node.left), compiler.written(node.right)
    )
    return compiler.fold(comparisons.binary(node.operator, operands), left, right)


def _logic(compiler: Compiler, node: syntax.Logic) -> Code:
    codes = [compiler.build(operand) for operand in node.operands]
    texts = [compiler.written(operand) for operand in node.operands]
    sites = [Site(compiler.source, operand.start + 1) for operand in node.operands]
    parts = list(zip((code.run for code in codes), sites, texts))
    return compiler.fold(choices.logic(node.operator, parts), *codes)


def _conditional(compiler: Compiler, node: syntax.Conditional) -> Code:
    test, then, otherwise = (compiler.build(part) for part in (node.test, node.then, node.otherwise))
    if test.is_constant and type(test.value) is bool:
        return then if test.value else otherwise
    site = Site(compiler.source, node.test.start + 1)
    choose = choices.conditional(test.run, then.run, otherwise.run, site, compiler.written(node.test))
    return compiler.fold(choose, test, then, otherwise)


def _call(compiler: Compiler, node: syntax.Call) -> Code:
    return calls.build(compiler, node)


def _comprehension(compiler: Compiler, node: syntax.Comprehension) -> Code:
    return comprehensions.build(compiler, node)


_BUILDERS: dict[type, Callable[[Compiler, Any], Code]] = {
    syntax.Literal: _literal,
    syntax.Name: _name,
    syntax.Select: _chain,
    syntax.Index: _chain,
    syntax.Has: _has,
    syntax.Call: _call,
    syntax.ListLiteral: _list,
    syntax.MapLiteral: _map,
    syntax.Unary: _unary,
    syntax.Binary: _binary,
    syntax.Logic: _logic,
    syntax.Conditional: _conditional,
    syntax.Comprehension: _comprehension,
}
