"""Step types for tests of the engine, named to the workers by HOLDFAST_STEP_MODULES.

`probe` calls an outside that is a file: every effect is a line of the ledger in HOLDFAST_TEST_FOLDER. `strange` gives
values that cannot be stored. `lethal` is bad for its worker, `slow_to_go` for the order in which it stops.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import Field

from runtime.states import AttemptOutcome
from runtime.steps.base import Config, Context, Done, Outcome, StepError, StepType
from runtime.steps.fields import Json, Text


def folder() -> Path:
    return Path(os.environ["HOLDFAST_TEST_FOLDER"])


class ProbeConfig(Config):
    value: Json = None
    note: Text = ""
    hold: Text = ""
    """Stay in the call, after the effect, until a file of this name is in the folder."""
    seconds: float = 0
    """How long the call takes."""
    fail: int = 0
    """How many attempts of a take fail, in the way that the next three say, until there is a file called healed."""
    outcome: AttemptOutcome = AttemptOutcome.REFUSED
    retry: bool = True
    retry_after: float | None = None
    asks: bool = False
    """Whether an interrupted call asks a person, when the step says nothing else."""
    operations: int = 1
    between: Text = ""
    """Stay between two operations until a file of this name is in the folder."""
    grows: int = 0
    """By how many characters the request of each operation is larger than that of the one before."""
    breaks: Literal["", "error", "cancelled"] = ""
    """Raise what no step should, after the effect: an error of its own, or what it waited for was cancelled."""
    tokens: int | None = None


class Probe(StepType):
    type = "probe"
    label = icon = category = summary = "Probe"
    Config = ProbeConfig
    outside = True

    def interrupted(self, config: dict[str, Any]) -> str:
        return "ask" if config.get("asks") else "repeat"

    async def run(self, ctx: Context) -> Outcome:
        config = ctx.config
        for operation in range(1, config["operations"] + 1):
            while operation > 1 and config["between"] and not (folder() / config["between"]).exists():
                await asyncio.sleep(0.1)
            request = {"note": config["note"]} | ({"more": "x" * (config["grows"] * (operation - 1))} if config["grows"] else {})
            attempt = await ctx.begin(request, f"call{operation}" if operation > 1 else "call")
            if attempt.n <= config["fail"] and not (folder() / "healed").exists():
                raise StepError(
                    f"Not at attempt {attempt.n}.",
                    outcome=AttemptOutcome(config["outcome"]),
                    retry=config["retry"],
                    retry_after=config["retry_after"],
                )
            line = {
                "run": ctx.run_id,
                "path": ctx.path,
                "take": ctx.take,
                "n": attempt.n,
                "key": attempt.idempotency_key,
                "operation": operation,
                "note": config["note"],
            }
            with (folder() / "ledger").open("a") as ledger:
                ledger.write(json.dumps(line) + "\n")
        if config["breaks"] and not (folder() / "healed").exists():
            if config["breaks"] == "cancelled":
                raise asyncio.CancelledError
            raise KeyError("an answer that the step's author did not expect")
        await asyncio.sleep(config["seconds"])
        while config["hold"] and not (folder() / config["hold"]).exists():
            await asyncio.sleep(0.1)
        return Done(config["value"] if config["value"] is not None else {"path": ctx.path}, tokens_in=config["tokens"])


class StrangeConfig(Config):
    kind: Literal["nul", "surrogate", "nan", "huge", "deep", "number", "object", "integer", "message", "bug"] = Field()


class Strange(StepType):
    type = "strange"
    label = icon = category = summary = "Strange"
    Config = StrangeConfig

    async def run(self, ctx: Context) -> Outcome:
        match ctx.config["kind"]:
            case "message":
                raise StepError("It said \x00 and \ud800 and stopped.")
            case "bug":
                raise KeyError("\udfff")
            case "deep":
                value: Any = "bottom"
                for _ in range(1000):
                    value = [value]
                return Done(value)
        values = {
            "nul": "a\x00b",
            "surrogate": "\ud800",
            "nan": float("nan"),
            "huge": "x" * 12_000_000,
            "object": object(),
            "integer": 10**5000,
            "number": 1e308 * 10,
        }
        return Done({"value": values[ctx.config["kind"]]}, log=("line with \x00 and \udc00",))


class LethalConfig(Config):
    how: Literal["kill", "crash", "block", "spin", "mute", "deaf"] = "kill"


class Lethal(StepType):
    type = "lethal"
    label = icon = category = summary = "Lethal"
    Config = LethalConfig

    async def run(self, ctx: Context) -> Outcome:
        if not (folder() / "harmless").exists():
            with (folder() / "deaths").open("a") as deaths:
                deaths.write(f"{os.getpid()}\n")
            if ctx.config["how"] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if ctx.config["how"] == "crash":
                ctypes.string_at(0)  # reads where nothing is
            if ctx.config["how"] == "mute":  # the journal's connection never answers again
                ctx._execution.services.journal._send = lambda *_: asyncio.Event().wait()
                return Done({"survived": False})
            if ctx.config["how"] == "deaf":  # nor does the connection that everything is read over
                never = SimpleNamespace(closed=False, execute=lambda *_: asyncio.Event().wait())
                ctx._execution.services._reader = never
                return Done({"survived": False})
            if ctx.config["how"] == "spin":
                sum(itertools.repeat(1))  # a loop of C that keeps the interpreter's lock, for ever
            time.sleep(60)
        return Done({"survived": True})


class SlowConfig(Config):
    how: Literal["told_late", "clings"]


class SlowToGo(StepType):
    """`told_late`: from here on the run hears of a wait that was due only when a file `told` is in the folder. `clings`: takes
    so long to be cancelled, and half a second more; then there is a file `clinging`."""

    type = "slow_to_go"
    label = icon = category = summary = "Slow to go"
    Config = SlowConfig

    async def run(self, ctx: Context) -> Outcome:
        if ctx.config["how"] == "told_late":
            commit = ctx._execution.commit
            ctx._execution.commit = lambda *rows: self._late(commit, rows)
            return Done()
        try:
            await asyncio.Event().wait()
        finally:
            (folder() / "clinging").touch()
            await self._told()
            await asyncio.sleep(0.5)

    async def _late(self, commit: Any, rows: tuple[Any, ...]) -> Any:
        returned = await commit(*rows)
        if any(kind == "due" for kind, _ in rows):
            await self._told()
        return returned

    async def _told(self) -> None:
        while not (folder() / "told").exists():
            await asyncio.sleep(0.05)


STEPS = [Probe(), Strange(), Lethal(), SlowToGo()]
