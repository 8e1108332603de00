"""Callback: wait until another system calls this run back, or a time-out.

The address is known before the step runs, as `callbacks.<step id>` in expressions, so that an earlier API call can hand
it out. An answer that comes before the wait is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ..durations import parse_duration
from ..states import WaitKind
from .base import Config, Context, Done, Outcome, Park, StepError, StepType
from .fields import Duration


class CallbackConfig(Config):
    expires: Duration = Field("7d", title="Wait at most", description="After this the step fails, or its error lane runs.")


class Callback(StepType):
    type = "callback"
    label = "Callback"
    icon = "callback"
    category = "People and waits"
    summary = "Wait for a call from another system"
    Config = CallbackConfig
    example = {"expires": "7d"}

    def line(self, config: Mapping[str, Any]) -> str:
        return f"Callback · at most {config.get('expires', '7d')}"

    async def run(self, ctx: Context) -> Outcome:
        try:
            longest = parse_duration(str(ctx.config["expires"]))
        except ValueError as wrong:
            raise StepError(str(wrong), field="expires") from None
        return Park(WaitKind.CALLBACK, after=longest)

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        if outcome["by"] == "due":
            raise StepError("Nobody called back in time.", field="expires")
        return Done(outcome.get("payload"))


STEP = Callback()
