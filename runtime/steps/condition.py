"""Condition: takes the first lane that is true; the last lane is for everything else.

Each lane has rules, such as “score is greater than 70”, or an expression. Steps inside a lane run only when that lane is
taken; afterwards the flow goes on below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import Config, Context, Outcome, StepType


class Condition(StepType):
    type = "condition"
    label = "Condition"
    icon = "branch"
    category = "Flow"
    summary = "Take one of several lanes"
    also = "if switch router filter branch paths else"
    children = "branches"
    Config = Config

    def line(self, config: Mapping[str, Any]) -> str:
        return "Takes the first lane that is true"

    async def run(self, ctx: Context) -> Outcome:
        raise NotImplementedError("The interpreter walks conditions itself.")


STEP = Condition()
