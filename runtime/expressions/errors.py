"""What can be wrong with an expression, in words for the person who wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Literal

from .suggest import suggest

Kind = Literal["missing", "type", "overflow", "division", "budget", "value"]


class ExpressionError(Exception):
    """Base of everything that compiling or evaluating may raise.

    message   plain words: what is wrong and what to do
    position  1-based column in `source`, or None when no place is to blame
    source    the expression or template as it was written, or None
    path      in a tree of templates, the keys that lead to the text: ("to", 0)
    """

    path: tuple[str | int, ...] = ()

    def __init__(self, message: str, position: int | None = None, source: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.source = source

    def __str__(self) -> str:
        return self.message if self.position is None else f"{self.message} (column {self.position})"


class SyntaxProblem(ExpressionError):
    """The text is no valid expression; raised when compiling, so a definition with one cannot be saved."""


class EvaluationError(ExpressionError):
    """The expression is valid but has no value for these names.

    kind  "missing"   a name, field, key or index is not there
          "type"      an operator or function got a value of the wrong kind
          "overflow"  a number left its range
          "division"  division or remainder by zero
          "value"     right kind, impossible value (a malformed date, NaN in a result)
          "budget"    too many steps or too much memory, see BudgetExceeded
    """

    # What the writer may have meant: (the unknown name, the known ones, what to say when none is near). Looked up only
    # when the error leaves the evaluator: `||` and exists() may swallow thousands of errors per evaluation.
    near: tuple[str, Iterable[object], str] | None = None

    def __init__(self, kind: Kind, message: str, position: int | None = None, source: str | None = None) -> None:
        super().__init__(message, position, source)
        self.kind: Kind = kind

    def complete(self, source: str) -> EvaluationError:
        """Add what only the outermost caller knows."""
        if self.source is None:
            self.source = source
        if self.near is not None:
            name, known, otherwise = self.near
            self.near = None
            guess = suggest(name, (key for key in islice(known, 200) if type(key) is str))
            self.message += f" Did you mean `{guess}`?" if guess else otherwise
            self.args = (self.message,)
        return self


class BudgetExceeded(EvaluationError):
    """The evaluation was stopped: it would have taken too many steps or too much memory."""

    def __init__(self, message: str, position: int | None = None, source: str | None = None) -> None:
        super().__init__("budget", message, position, source)
