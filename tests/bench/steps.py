"""Step types of the measurements, named to the workers by HOLDFAST_STEP_MODULES."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from functools import cache
from random import Random

from runtime.steps.base import Config, Context, Done, Outcome, StepType
from runtime.steps.fields import Json


@cache
def noise() -> str:
    """A MiB that cannot be pressed together, the same each time."""
    return b64encode(Random(7).randbytes(3 << 18)).decode()


class NoopConfig(Config):
    value: Json = None
    seconds: float = 0
    tells_time: bool = False
    pad: int = 60
    """Bytes of its output beside the few others."""


class Noop(StepType):
    """A call to the outside that takes no time of its own, with all that such a call makes durable."""

    type = "noop"
    label = icon = category = summary = "No-op"
    Config = NoopConfig
    outside = True

    async def run(self, ctx: Context) -> Outcome:
        now = time.time()
        await ctx.begin({"value": ctx.config["value"]})
        if ctx.config["seconds"]:
            await asyncio.sleep(ctx.config["seconds"])
        told = {"at": now} if ctx.config["tells_time"] else {}
        return Done({"step": ctx.step_id, "pad": noise()[: ctx.config["pad"]], **told}, response={"ok": True})


STEP = Noop()
