"""Loop: runs the steps inside it once for each item of a list, or again as long as an expression is true.

Inside, the item is `loop.item` and its number `loop.index`, from 0. “Collect” makes a list of one value of each time, which is
the loop's output; outside, the steps inside cannot be read by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from .base import Config, Context, Outcome, StepType
from .fields import Expression, Words

MOST_ITERATIONS = 100_000


class LoopConfig(Config):
    items: Expression | None = Field(
        None, title="For each of", description="An expression that gives a list.", examples=["trigger.body.attendees"]
    )
    while_: Expression | None = Field(
        None, alias="while", title="While", description="Go on as long as this is true. `loop.index` counts from 0; "
        "`loop.last` has what the steps gave the time before: `loop.index == 0 || loop.last.fetch.output.more`.",
    )
    max: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)] = Field(
        1000, title="At most", description="The bound of a while loop: the run fails when it is reached."
    )
    concurrency: Annotated[int, Field(ge=1, le=100)] = Field(
        1, title="At the same time", description="How many items may be worked on at once. One that waits keeps its place."
    )
    collect: Expression | None = Field(
        None, title="Collect", description="What to keep of each time; the loop's output lists the values.",
        examples=["steps.add.output.body.id"],
    )

    on_item_error: Annotated[
        Literal["stop", "skip", "collect"],
        Words({"stop": "Fail the loop", "skip": "Skip it", "collect": "Skip and list it"}),
    ] = Field(
        "stop", title="When an item fails", description="Skipped items are counted; collecting lists what went wrong, too."
    )

    @model_validator(mode="after")
    def one_kind(self) -> LoopConfig:
        if (self.items is None) == (self.while_ is None):
            raise ValueError("Give either a list to go through or a while expression.")
        if self.while_ is not None and self.concurrency != 1:
            raise ValueError("A while loop runs one iteration at a time.")
        return self


class Loop(StepType):
    type = "loop"
    label = "Loop"
    icon = "loop"
    category = "Flow"
    summary = "Repeat steps for each item of a list"
    also = "for each while iterate iterator split in batches repeat list"
    children = "steps"
    Config = LoopConfig
    example = {"items": "trigger.body.items"}

    def line(self, config: Mapping[str, Any]) -> str:
        if config.get("while"):
            return f"Loop · while, at most {config.get('max', 1000)}"
        at_once = config.get("concurrency", 1)
        return "Loop · one at a time" if at_once == 1 else f"Loop · {at_once} at a time"

    async def run(self, ctx: Context) -> Outcome:
        raise NotImplementedError("The interpreter walks loops itself.")


STEP = Loop()
