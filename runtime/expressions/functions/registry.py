"""How a function is declared and found.

    @function("text.charAt", str, int)
    def char_at(run, text, index): ...

declares the method charAt of a text with one whole number. The first word says how it is called:
"text.charAt" (any word but a namespace's) as x.charAt(i); "size" as size(x); "math.round" as math.round(x), because
`math` is a namespace. Implementations get the running evaluation first, charge it for work and memory that grow with
their input, and raise EvaluationError without a position.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

NAMESPACES = frozenset({"math", "strings", "optional", "base64"})
ANY = object  # a parameter that takes every kind of value
NUMBER = (int, float)

FUNCTIONS: dict[tuple[str, str], Function] = {}


class Function:
    """All overloads of one name in one style."""

    def __init__(self, style: str, name: str) -> None:
        self.style = style  # "method", "global", or a namespace
        self.name = name
        self.overloads: dict[tuple[type, ...], Callable[..., Any]] = {}
        self.wildcards: list[tuple[tuple[type, ...], Callable[..., Any]]] = []
        # For methods of a text whose only argument is a constant text: argument -> (run, text) -> value.
        self.bind_constant: Callable[[str], Callable[[Any, str], Any]] | None = None

    @property
    def shown(self) -> str:
        return f"{self.style}.{self.name}()" if self.style in NAMESPACES else f"{self.name}()"

    @property
    def signatures(self) -> list[tuple[type, ...]]:
        return [*self.overloads, *(signature for signature, _ in self.wildcards)]

    def arities(self) -> list[int]:
        """How many arguments it takes, the value before the point included."""
        return sorted({len(signature) for signature in self.signatures})

    def implementation(self, kinds: tuple[type, ...]) -> Callable[..., Any] | None:
        exact = self.overloads.get(kinds)
        if exact is not None:
            return exact
        for signature, implementation in self.wildcards:
            if len(signature) == len(kinds) and all(a is ANY or a is b for a, b in zip(signature, kinds)):
                return implementation
        return None


def function(name: str, *parameters: type | tuple[type, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare one overload; a tuple among the parameters stands for any of its kinds."""
    prefix, point, bare = name.partition(".")
    style = "global" if not point else prefix if prefix in NAMESPACES else "method"
    entry = FUNCTIONS.setdefault((style, bare or prefix), Function(style, bare or prefix))

    def declare(implementation: Callable[..., Any]) -> Callable[..., Any]:
        for signature in product(*(kinds if type(kinds) is tuple else (kinds,) for kinds in parameters)):
            if ANY in signature:
                entry.wildcards.append((signature, implementation))
            else:
                entry.overloads[signature] = implementation
        return implementation

    return declare


def find(style: str, name: str) -> Function | None:
    return FUNCTIONS.get((style, name))
