"""What passes between a step and a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from .. import net

SMALLEST_COST, MOST_COST = Decimal("0.00000001"), 10_000
"""US dollars: what is stored of the cost of a call, and what none costs."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question. With a `schema` (JSON Schema, of an object) the answer has to be JSON that fits it."""

    prompt: str
    system: str
    model: str
    schema: Mapping[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model gave. `value` is set where the provider hands over JSON as JSON. What is not known is None: the cost
    in US dollars, and either count of tokens. `stopped` says why it ended, if not by itself: `length` or `refused`."""

    text: str = ""
    value: Any = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: Decimal | None = None
    model: str = ""
    stopped: str = ""


class ProviderFailed(Exception):
    """The answer is none: not the shape that the provider's API promises."""


class Provider(Protocol):
    """How one kind of endpoint is spoken to."""

    path: str

    def body(self, ask: Ask, quirks: frozenset[str]) -> dict[str, Any]:
        """The request's JSON. `quirks` are the peculiarities of this endpoint that were learnt."""

    def headers(self) -> dict[str, str]:
        """What is sent beside the credential."""

    def quirk(self, answer: net.Answer, quirks: frozenset[str]) -> str:
        """The peculiarity that a refusal reveals, or an empty string where it is about something else."""

    def read(self, answer: net.Answer, ask: Ask) -> Reply:
        """Raises ProviderFailed."""


def count(value: Any) -> int | None:
    """A count of tokens, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def dollars(value: Any) -> Decimal | None:
    """What a call cost, if it is an amount, as exactly as it is stored."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount.quantize(SMALLEST_COST) if amount.is_finite() and 0 <= amount < MOST_COST else None


def schema_words(schema: Mapping[str, Any] | None) -> str:
    """How a model is told the schema that its endpoint cannot be given."""
    return (
        ""
        if schema is None
        else (
            "Answer with one JSON object and nothing else. It has to fit this JSON Schema:\n"
            + json.dumps(schema, ensure_ascii=False)
        )
    )
