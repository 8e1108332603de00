"""What the compiler makes of a node: a closure, and its value when that is already known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import syntax
from .errors import EvaluationError, Kind, SyntaxProblem
from .fuel import Evaluation

Closure = Callable[[Evaluation], Any]
_UNKNOWN = object()


class Code:
    """A compiled node."""

    __slots__ = ("run", "value")

    def __init__(self, run: Closure, value: Any = _UNKNOWN) -> None:
        self.run = run
        self.value = value

    @property
    def is_constant(self) -> bool:
        return self.value is not _UNKNOWN

    @classmethod
    def constant(cls, value: Any) -> Code:
        return cls(lambda run: value, value)


@dataclass(frozen=True, slots=True)
class Site:
    """A node's place in the source: where an error is to blame, and how the writer wrote its parts."""

    source: str
    position: int  # 1-based

    @classmethod
    def of(cls, source: str, node: syntax.Node) -> Site:
        return cls(source, node.position + 1)

    def error(self, kind: Kind, message: str) -> EvaluationError:
        return EvaluationError(kind, message, self.position)

    def problem(self, message: str) -> SyntaxProblem:
        return SyntaxProblem(message, self.position, self.source)

    def located(self, error: EvaluationError) -> EvaluationError:
        """The same error, with this position when it has none yet."""
        if error.position is None:
            error.position = self.position
        return error


def written(source: str, node: syntax.Node) -> str:
    """A node as it was written, in one line and not too long, in backquotes."""
    return quoted(source[node.start : node.end])


def quoted(text: str) -> str:
    text = " ".join(text[:200].split())
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"
