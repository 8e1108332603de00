"""Closures for the macros that go through a list or a map's keys, and optMap and optFlatMap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import syntax
from .code import Closure, Code, Site
from .errors import BudgetExceeded, EvaluationError
from .fuel import Evaluation
from .functions.lists import order
from .values import ABSENT, KNOWN, Optional, adopt, in_words, key_value, map_key

if TYPE_CHECKING:
    from .compiler import Compiler


class Loop:
    """What all of them share: where the items come from, where the variable is kept, what one round costs."""

    __slots__ = ("macro", "range", "text", "slot", "cost", "site", "body_site", "body_text")

    def __init__(self, compiler: Compiler, node: syntax.Comprehension, slot: int, cost: int) -> None:
        self.macro = node.macro
        self.text = compiler.written(node.range)
        self.slot = slot
        self.cost = cost
        self.site = compiler.site(node)
        tested = node.condition or node.body
        self.body_site = Site(compiler.source, tested.start + 1)
        self.body_text = compiler.written(tested)

    def items(self, value: Any) -> list:
        kind = type(value)
        if kind is list:
            return value
        if kind is dict:
            return [key_value(key) for key in value]
        remedy = ""
        if value is None:
            remedy = " Where it may be empty, select it with `.?` and add .orValue([])."
        elif kind is Optional:
            remedy = " Add .orValue([])."
        raise self.site.error(
            "type", f"{self.text} is {in_words(value)}, and {self.macro}() needs a list or a map.{remedy}"
        )

    def not_a_bool(self, value: Any) -> EvaluationError:
        message = f"{self.body_text} is {in_words(value)}, and {self.macro}() needs true or false there."
        return self.body_site.error("type", message)


def build(compiler: Compiler, node: syntax.Comprehension) -> Code:
    source = compiler.build(node.range)
    slot, cost, (condition, body) = compiler.build_repeated(node.variable, node.condition, node.body)
    loop = Loop(compiler, node, slot, cost)
    if condition is not None:
        return Code(_map_some(loop, source.run, condition.run, body.run))
    return Code(_MACROS[node.macro](loop, source.run, body.run))


def _map(loop: Loop, source: Closure, body: Closure) -> Closure:
    slot, cost = loop.slot, loop.cost

    def map_all(run: Evaluation) -> list:
        items = loop.items(source(run))
        run.charge(len(items) * cost)
        run.allocate(16 + 8 * len(items))
        variables, results = run.variables, []
        for item in items:
            variables[slot] = item if type(item) in KNOWN else adopt(item)
            results.append(body(run))
        return results

    return map_all


def _sort_by(loop: Loop, source: Closure, body: Closure) -> Closure:
    keys_of = _map(loop, lambda run: run.variables[loop.slot], body)

    def sort_all(run: Evaluation) -> list:
        items = loop.items(source(run))
        run.variables[loop.slot] = items
        keys = keys_of(run)
        try:
            return [items[place] for place in order(run, keys)]
        except EvaluationError as error:
            raise loop.body_site.located(error) from None

    return sort_all


def _group_by(loop: Loop, source: Closure, body: Closure) -> Closure:
    slot, cost = loop.slot, loop.cost

    def group_all(run: Evaluation) -> dict:
        items = loop.items(source(run))
        run.charge(len(items) * cost)
        variables, groups = run.variables, {}
        for item in items:
            variables[slot] = item if type(item) in KNOWN else adopt(item)
            value = body(run)
            key = map_key(value)
            if key is None:
                raise loop.body_site.error("type", f"{loop.body_text} is {in_words(value)}, and groupBy() needs a text or whole number there.")
            groups.setdefault(key, []).append(variables[slot])
        run.allocate(64 + 96 * len(groups) + 8 * len(items))
        return groups

    return group_all


def _filter(loop: Loop, source: Closure, body: Closure) -> Closure:
    variable: Closure = lambda run: run.variables[loop.slot]  # noqa: E731
    return _map_some(loop, source, body, variable)


def _map_some(loop: Loop, source: Closure, condition: Closure, body: Closure) -> Closure:
    slot, cost = loop.slot, loop.cost

    def map_some(run: Evaluation) -> list:
        items = loop.items(source(run))
        run.charge(len(items) * cost)
        variables, results = run.variables, []
        for item in items:
            variables[slot] = item if type(item) in KNOWN else adopt(item)
            wanted = condition(run)
            if wanted is True:
                results.append(body(run))
            elif wanted is not False:
                raise loop.not_a_bool(wanted)
        run.allocate(16 + 8 * len(results))
        return results

    return map_some


def _all(loop: Loop, source: Closure, body: Closure) -> Closure:
    return _any_or_all(loop, source, body, deciding=False)


def _exists(loop: Loop, source: Closure, body: Closure) -> Closure:
    return _any_or_all(loop, source, body, deciding=True)


def _any_or_all(loop: Loop, source: Closure, body: Closure, deciding: bool) -> Closure:
    """Like `||` and `&&` over the items: an error does not matter when another item decides."""
    slot, cost = loop.slot, loop.cost

    def decide(run: Evaluation) -> bool:
        failure: EvaluationError | None = None
        for item in loop.items(source(run)):
            run.charge(cost)
            run.variables[slot] = item if type(item) in KNOWN else adopt(item)
            try:
                value = body(run)
            except BudgetExceeded:
                raise
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is deciding:
                return deciding
            if type(value) is not bool:
                failure = failure or loop.not_a_bool(value)
        if failure is not None:
            raise failure
        return not deciding

    return decide


def _exists_one(loop: Loop, source: Closure, body: Closure) -> Closure:
    def one(run: Evaluation) -> bool:
        items = loop.items(source(run))
        run.charge(len(items) * loop.cost)
        count = 0
        for item in items:
            run.variables[loop.slot] = item if type(item) in KNOWN else adopt(item)
            value = body(run)
            if type(value) is not bool:
                raise loop.not_a_bool(value)
            count += value
        return count == 1

    return one


def _opt_map(loop: Loop, source: Closure, body: Closure) -> Closure:
    return _of_present(loop, source, lambda run: Optional(True, body(run)))


def _opt_flat_map(loop: Loop, source: Closure, body: Closure) -> Closure:
    return _of_present(loop, source, lambda run: _optional(loop, body(run)))


def _of_present(loop: Loop, source: Closure, given: Closure) -> Closure:
    def apply(run: Evaluation) -> Optional:
        value = _optional(loop, source(run))
        if not value.present:
            return ABSENT
        run.charge(loop.cost)
        run.variables[loop.slot] = value.value
        return given(run)

    return apply


def _optional(loop: Loop, value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise loop.site.error("type", f"{loop.macro}() needs an optional value, as a.?b gives, not {in_words(value)}.")


_MACROS = {
    "map": _map,
    "filter": _filter,
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "sortBy": _sort_by,
    "groupBy": _group_by,
    "optMap": _opt_map,
    "optFlatMap": _opt_flat_map,
}
