"""Parallel: runs all lanes at once; the flow goes on when every lane has ended, or when enough have.

Where not all are waited for, the others are cancelled: what they wait for is dropped and no call of theirs begins any
more. A lane that fails does not matter as long as the others can still be enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from .base import Config, Context, Outcome, StepType
from .fields import Words

WORDS = {"any": "the first lane goes on", "count": "goes on after {needed}"}


class ParallelConfig(Config):
    join: Annotated[
        Literal["all", "any", "count"],
        Words({"all": "All lanes", "any": "The first lane", "count": "Some lanes"}),
    ] = Field(
        "all", title="Goes on after", description="The lanes that are not waited for are cancelled."
    )
    needed: Annotated[int, Field(ge=1, le=100)] = Field(2, title="How many lanes")


class Parallel(StepType):
    type = "parallel"
    label = "Parallel"
    icon = "parallel"
    category = "Flow"
    summary = "Run lanes at the same time and join them"
    also = "branch all split merge join at the same time"
    children = "branches"
    Config = ParallelConfig

    def line(self, config: Mapping[str, Any]) -> str:
        words = WORDS.get(str(config.get("join", "all")))
        return f"Parallel · {words.format(needed=config.get('needed', 2))}" if words else self.summary

    def doubts(self, step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        config, lanes = step.get("config") or {}, len(step.get("branches") or ())
        if config.get("join") == "count" and config.get("needed", 2) > lanes:
            yield "needed", f"There {'is 1 lane' if lanes == 1 else f'are {lanes} lanes'}, so that never comes."

    async def run(self, ctx: Context) -> Outcome:
        raise NotImplementedError("The interpreter walks parallels itself.")


def joins_early(config: Mapping[str, Any]) -> bool:
    """Whether lanes may be cancelled, so that their steps may have no output."""
    return config.get("join", "all") != "all"


STEP = Parallel()
