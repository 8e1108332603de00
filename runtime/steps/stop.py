"""Stop: ends the whole run here, as a success or as a failure, with a message.

Its output is the run's: a flow that ran this one as a sub-flow gets it, and so does a webhook that answers when the run ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from ..states import RunState
from .base import Config, Context, Outcome, StepType
from .base import Stop as StopOutcome
from .fields import Json, Text


class StopConfig(Config):
    outcome: Literal["succeeded", "failed"] = Field("succeeded", title="End as")
    message: Text = Field("", title="Message", description="Shown on the run.", examples=["No budget this year"])
    output: Json = Field(None, title="Output", description="What the run gives to whoever waits for it, at most 1 MiB.")


class Stop(StepType):
    type = "stop"
    label = "Stop"
    icon = "stop"
    category = "Flow"
    summary = "End the run here"
    also = "end exit fail error terminate return respond to webhook"
    Config = StopConfig
    example = {"outcome": "succeeded"}

    def line(self, config: Mapping[str, Any]) -> str:
        return "Ends the run as " + ("failed" if config.get("outcome") == "failed" else "succeeded")

    async def run(self, ctx: Context) -> Outcome:
        return StopOutcome(RunState(ctx.config["outcome"]), ctx.config["message"], ctx.config["output"])


STEP = Stop()
