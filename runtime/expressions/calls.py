"""Closures for function calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import syntax
from .code import Closure, Code, Site, written
from .errors import EvaluationError
from .fuel import Evaluation
from .functions import FUNCTIONS, NAMESPACES, Function, find
from .suggest import suggest
from .values import Optional, in_words, kind_in_words

if TYPE_CHECKING:
    from .compiler import Compiler


def build(compiler: Compiler, node: syntax.Call) -> Code:
    style, operands = _style(compiler, node)
    site = compiler.site(node)
    called = find(style, node.function)
    problem = _unknown(style, node) if called is None else _wrong_count(called, len(operands))
    if problem:
        if compiler.checked:
            raise site.problem(problem)
        return Code(_failing(site, problem))
    codes = [compiler.build(operand) for operand in operands]
    texts = [written(compiler.source, operand) for operand in operands]
    special = _bound(called, codes, texts, site, compiler.checked)
    return compiler.fold(special or _general(called, [code.run for code in codes], texts, site), *codes)


def _style(compiler: Compiler, node: syntax.Call) -> tuple[str, tuple[syntax.Node, ...]]:
    if node.target is None:
        return "global", node.arguments
    target = node.target
    if type(target) is syntax.Name and target.name in NAMESPACES and compiler.slot(target.name) is None:
        return target.name, node.arguments
    return "method", (target, *node.arguments)


def _unknown(style: str, node: syntax.Call) -> str:
    name = node.function
    if style == "method" and find("global", name):
        return f"{name}() is not called with a point: write {name}(x)."
    if style == "global" and find("method", name):
        return f"{name}() is called with a point: write x.{name}(...)."
    shown = f"{style}.{name}()" if style in NAMESPACES else f"{name}()"
    guess = suggest(name, (known for other, known in FUNCTIONS if other == style))
    return f"There is no function {shown}." + (f" Did you mean `{guess}`?" if guess else "")


def _wrong_count(called: Function, count: int) -> str | None:
    arities = called.arities()
    if count in arities:
        return None
    implicit = called.style == "method"
    wanted = " or ".join(str(arity - implicit) for arity in arities)
    return f"{called.shown} takes {wanted} argument{'' if wanted == '1' else 's'}, not {count - implicit}."


def _failing(site: Site, message: str) -> Closure:
    def fail(run: Evaluation) -> Any:
        raise site.error("missing", message)

    return fail


def _bound(called: Function, codes: list[Code], texts: list[str], site: Site, checked: bool) -> Closure | None:
    """For x.endsWith("constant") and its like: the constant is prepared once."""
    if called.bind_constant is None or len(codes) != 2 or not codes[1].is_constant or type(codes[1].value) is not str:
        return None
    try:
        test = called.bind_constant(codes[1].value)
    except EvaluationError as error:
        if checked:
            raise site.problem(error.message) from None
        return _failing(site, error.message)
    operand = codes[0].run

    def call(run: Evaluation) -> Any:
        value = operand(run)
        if type(value) is str:
            return test(run, value)
        raise _unfit(called, [value, ""], texts, site)

    return call


def _general(called: Function, operands: list[Closure], texts: list[str], site: Site) -> Closure:
    overloads, implementation = called.overloads, called.implementation

    def call(run: Evaluation) -> Any:
        values = [operand(run) for operand in operands]
        kinds = tuple([type(value) for value in values])
        found = overloads.get(kinds) or implementation(kinds)
        if found is None:
            raise _unfit(called, values, texts, site)
        try:
            return found(run, *values)
        except EvaluationError as error:
            raise site.located(error)

    return call


def _unfit(called: Function, values: list[Any], texts: list[str], site: Site) -> EvaluationError:
    """Blame the first value that no overload takes at its place."""
    signatures = [signature for signature in called.signatures if len(signature) == len(values)]
    fitting = signatures
    for index, (value, text) in enumerate(zip(values, texts)):
        fitting = [signature for signature in fitting if signature[index] in (type(value), object)]
        if not fitting:
            break
        signatures = fitting
    wanted = _either(dict.fromkeys(kind_in_words(signature[index]) for signature in signatures))
    return site.error(
        "type", f"{text} is {in_words(value)}, and {called.shown} needs {wanted} there.{_remedy(value, text)}"
    )


def _either(kinds: Iterable[str]) -> str:
    *others, last = kinds
    return f"{', '.join(others)} or {last}" if others else last


def _remedy(value: Any, text: str) -> str:
    name = text[1:-1]
    if value is None:
        return "" if name == "null" else f" Check `{name} != null` first, or give a default."
    if type(value) is Optional:
        return f" It may be absent: give a default, {name}.orValue(...)."
    return ""
