"""Parallel: all lanes at once; the run goes on when every lane has ended."""

from __future__ import annotations

from .base import Config, Context, Outcome, StepType


class Parallel(StepType):
    type = "parallel"
    label = "Parallel"
    icon = "parallel"
    category = "Flow"
    summary = "Run lanes at the same time and join them"
    children = "branches"
    Config = Config

    async def run(self, ctx: Context) -> Outcome:
        raise NotImplementedError("The interpreter walks parallels itself.")


STEP = Parallel()
