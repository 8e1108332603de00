"""Set values: gives names to values that are put together, picked out or computed, for the steps that follow.

Each value may be text with `{{ }}` in it, or whole data. What can be computed:

- fields of two groups as one: `{{ trigger.body.merge({"source": "web"}) }}`
- some of a list: `{{ trigger.body.orders.filter(o, o.total > 100) }}`
- a list of something else: `{{ trigger.body.orders.map(o, o.id) }}`
- sorted, largest first: `{{ trigger.body.orders.sortBy(o, -o.total) }}`
- a sum: `{{ trigger.body.orders.map(o, o.total).sum() }}`; in its place `min`, `max`, `average` or `size`
- by groups: `{{ trigger.body.orders.groupBy(o, o.country) }}`
- a date as people write it: `{{ timestamp(run.started_at).format("d MMMM yyyy", "Europe/Berlin") }}`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from .base import Config, Context, Done, Outcome, StepType
from .fields import Json, Widget


class SetConfig(Config):
    values: Annotated[dict[str, Json], Widget("values")] = Field(
        title="Values",
        description="Each becomes a field of this step's output. Use {{ }} to compute.",
        examples=[{"full_name": "{{ trigger.body.first }} {{ trigger.body.last }}"}],
    )


class SetValues(StepType):
    type = "set"
    label = "Set values"
    icon = "db"
    category = "Data"
    summary = "Compute values for later steps"
    also = "edit fields filter sort merge map aggregate group sum code transform format date"
    Config = SetConfig
    example = {"values": {"greeting": "Hello {{ trigger.body.name }}"}}

    def line(self, config: Mapping[str, Any]) -> str:
        names = list(config.get("values") or {})
        return "Set " + ", ".join(names[:3]) + (", …" if len(names) > 3 else "") if names else self.summary

    async def run(self, ctx: Context) -> Outcome:
        return Done(ctx.config["values"])


STEP = SetValues()
