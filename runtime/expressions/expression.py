"""A compiled expression."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from . import limits, syntax
from .code import Closure
from .compiler import Compiler
from .errors import BudgetExceeded, EvaluationError, SyntaxProblem
from .fuel import Evaluation
from .lexer import Token, tokens
from .parser import parse
from .references import Path, References
from .results import JSON, to_json, to_python

_MATCHES = re.compile(r"matches\s*[(/]")
_AS_THEY_ARE = frozenset({str, bool, type(None)})


class Program:
    """The closure of one expression, and what must be known to run it."""

    __slots__ = ("run", "slots", "cost", "references", "is_path")

    def __init__(self, run: Closure, slots: int, cost: int, references: References, is_path: bool) -> None:
        self.run = run
        self.slots = slots
        self.cost = cost
        self.references = references
        self.is_path = is_path  # it only reads: its result is the caller's own data, and costs no memory

    @classmethod
    def build(cls, text: str, found: list[Token], checked: bool = True) -> Program:
        """Raises SyntaxProblem with a position in `text`."""
        try:
            node = parse(text, found)
            compiler = Compiler(text, checked)
            code = compiler.build(node)
            references = References.of(node)
        except RecursionError:  # see too_deep
            raise SyntaxProblem("This is nested too deep.", found[0].start + 1, text) from None
        return cls(code.run, compiler.slots, compiler.cost, references, _is_path(node))


class Expression:
    """An expression that can be evaluated any number of times, by any number of threads."""

    __slots__ = ("source", "_program", "references", "references_with_default")

    def __init__(self, source: str, program: Program) -> None:
        self.source = source
        self._program = program
        # The paths that it reads, in order: ("steps", "qualify", "output", "score").
        self.references: tuple[Path, ...] = program.references.paths
        # Those of them that may be missing: has(a.b) ? a.b : c, a.?b.orValue(c).
        self.references_with_default: frozenset[Path] = program.references.guarded

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def evaluate(
        self,
        names: Mapping[str, Any],
        *,
        steps: int = limits.STEPS,
        memory: int = limits.MEMORY,
        raw: bool = False,
    ) -> JSON:
        """The value for these names, as JSON data (see to_json); with raw, in Python's own types (see to_python).

        names   JSON data; datetime (with a zone) and timedelta are taken, too
        steps   how much work it may do
        memory  how many bytes it may build
        Raises EvaluationError.
        """
        program = self._program
        try:
            run = Evaluation(names, program.slots, steps - program.cost, memory)
            value = program.run(run)
            if type(value) in _AS_THEY_ARE:
                return value
            return (to_python if raw else to_json)(value, None if program.is_path else run)
        except EvaluationError as error:
            raise error.complete(self.source)
        except RecursionError:
            raise too_deep(self.source) from None
        except OverflowError:
            raise too_large(self.source) from None


@lru_cache(maxsize=limits.CACHED_EXPRESSIONS)
def compile(source: str, *, checked: bool = True) -> Expression:
    """Compile an expression, or give the one that was compiled before.

    checked  refuse unknown functions, wrong numbers of arguments and bad constant patterns here. Without it they are
             errors when they run, as the specification has it for expressions that were not type-checked
    Raises SyntaxProblem with a position.
    """
    if len(source) > limits.SOURCE_LENGTH:
        raise SyntaxProblem(f"The expression is longer than {limits.SOURCE_LENGTH:,} characters.", 1, source[:100])
    check_patterns(patterns_in(source), source)
    try:
        return Expression(source, Program.build(source, tokens(source), checked))
    except SyntaxProblem as problem:
        if not source.lstrip().startswith("{{"):
            raise
        message = "This is an expression already: leave out the `{{` and `}}`."
        raise SyntaxProblem(message, problem.position, source) from None


def patterns_in(text: str) -> int:
    """How many regular expressions it may hold, before it is read; a comment may stand before the bracket."""
    return len(_MATCHES.findall(text)) if "matches" in text else 0


def check_patterns(count: int, source: str = "") -> None:
    """Raise SyntaxProblem for more regular expressions than are compiled in one go."""
    if count > limits.PATTERNS:
        words = f"This uses matches() more than {limits.PATTERNS} times. Put several patterns into one, with | between them."
        raise SyntaxProblem(words, 1, source[:100])


def _is_path(node: syntax.Node) -> bool:
    while type(node) is syntax.Select or type(node) is syntax.Index:
        node = node.operand
    return type(node) is syntax.Name


def too_deep(source: str) -> BudgetExceeded:
    """Instead of Python's RecursionError, which the limits keep away unless the caller itself stands very deep."""
    return BudgetExceeded("The expression or its data is nested too deep.", source=source)


def too_large(source: str) -> EvaluationError:
    """Instead of Python's OverflowError: numbers beyond 64 bits that were given as data, and their like."""
    return EvaluationError("overflow", "A number is too large to calculate with.", source=source)
