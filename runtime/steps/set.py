"""Set: give names to values, for the steps that follow."""

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
    Config = SetConfig
    example = {"values": {"greeting": "Hello {{ trigger.body.name }}"}}

    def line(self, config: Mapping[str, Any]) -> str:
        names = list(config.get("values") or {})
        return "Set " + ", ".join(names[:3]) + (", …" if len(names) > 3 else "") if names else self.summary

    async def run(self, ctx: Context) -> Outcome:
        return Done(ctx.config["values"])


STEP = SetValues()
