"""One evaluation: its names, its variables, and what it may still spend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import BudgetExceeded


class Evaluation:
    """What every closure gets. Made anew for each evaluation; closures themselves hold no state.

    steps   counts work: one for each operator, call and path, charged before it runs; more where one of them does
            work that grows with its input.
    memory  counts bytes that the expression builds: text, lists, maps. Never given back.
    """

    __slots__ = ("names", "variables", "steps", "memory")

    def __init__(self, names: Mapping[str, Any], slots: int, steps: int, memory: int) -> None:
        self.names = names
        self.variables = [None] * slots if slots else None
        self.steps = steps
        self.memory = memory
        if steps < 0:
            raise too_many_steps()

    def charge(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise too_many_steps()

    def lend(self, size: int) -> None:
        """Bytes that are needed for a moment and given back."""
        self.allocate(size)
        self.memory += size

    def allocate(self, size: int) -> None:
        self.memory -= size
        if self.memory < 0:
            raise BudgetExceeded(
                "This expression builds too much data and was stopped. Work on fewer items or shorter text."
            )


def too_many_steps() -> BudgetExceeded:
    return BudgetExceeded("This expression does too much work and was stopped. Use fewer nested loops or fewer items.")


def text_size(text: str) -> int:
    """An upper bound of the bytes that Python holds for the characters of a text."""
    return len(text) if text.isascii() else 4 * len(text)


def search_steps(text: str, part: str) -> int:
    """What it costs to look for `part` in `text`: CPython's search is linear only for long texts."""
    length, width = len(text), len(part)
    if width > 8 and length < 30_000:
        return length * min(width, 100) // 2048
    return length // 64
