"""The shape of a definition, as it is written: what fields there are, and what may stand in each. What the shape alone cannot
say is in `definition.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .steps.fields import Expression, Json, Length, Text

FORMAT = 1
Id = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Retry(Strict):
    """Full jitter between 0 and `first * 2**n`, at most `longest` each; no new attempt after `total`."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = 4
    first: Length = "1s"
    longest: Length = "5m"
    total: Length = "1h"


class Check(Strict):
    """How to ask the other system whether an interrupted call happened."""

    request: Json
    happened: Expression
    output: Expression | None = None
    after: Length = "30s"


class CheckFirst(Strict):
    check: Check


class Branch(Strict):
    id: Id
    label: str = ""
    when: Expression | None = None
    steps: list[Step] = Field(default_factory=list)


class ErrorLane(Strict):
    steps: list[Step]


class Step(Strict):
    id: Id
    type: str
    name: Annotated[str, Field(max_length=200)] = ""
    note: str = ""
    off: bool = False
    config: dict[str, Any] = Field(default_factory=dict)
    branches: list[Branch] | None = None
    steps: list[Step] | None = None
    retry: Retry | None = None
    timeout: Length | None = None
    on_error: Literal["fail", "continue"] | ErrorLane = "fail"
    on_interrupted: Literal["repeat", "ask"] | CheckFirst | None = None


class Trigger(Strict):
    id: Id
    type: str
    name: Annotated[str, Field(max_length=200)] = ""
    config: dict[str, Any] = Field(default_factory=dict)


def _as_expression(value: Any) -> Any:
    return str(value) if type(value) is int else value


class Limits(Strict):
    """What the flow allows its runs (`runtime.slots`). `key` and `priority` see `trigger`."""

    at_most: Annotated[int, Field(ge=1, le=10_000)] | None = None
    key: Expression | None = None
    per_key: Annotated[int, Field(ge=1, le=10_000)] | None = None
    more: Literal["queue", "drop"] = "queue"
    priority: Annotated[Expression | None, BeforeValidator(_as_expression)] = None
    waiting_holds: bool = True
    per_minute: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_age: Length | None = None


class FreeNote(Strict):
    """Text that stands beside a step on the canvas, or above the flow. It means nothing to runs."""

    id: Id
    text: Annotated[str, Field(max_length=4_000)] = ""
    beside: str = ""


class Definition(Strict):
    format: Literal[1]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: str = ""
    title: Text = ""
    search: list[Expression] = Field(default_factory=list)
    on_failure: Annotated[str, Field(max_length=200)] = ""
    budget_run: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    budget_day: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    limits: Limits | None = None
    triggers: list[Trigger] = Field(default_factory=list)
    steps: list[Step] = Field(default_factory=list)
    notes: Annotated[list[FreeNote], Field(max_length=500)] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def known_format(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("format") != FORMAT:
            raise ValueError(f"This is format {value.get('format')!r}; this version of Holdfast reads format {FORMAT}.")
        return value
