"""Callback: waits until another system calls this run back, or until the time is over.

The address to call is known before the step runs, as `callbacks.` and the step's id in expressions, so that an earlier API call can
hand it out. Where the other system cannot keep an address, the step waits for a signal of a name and a key, such as
`order_paid` of order 17, which the API takes. An answer that comes before the wait is kept. Test runs take those signals alone that
are sent with `"test": true`.

What was sent is the step's output. Where “What is sent” names fields, an answer that does not fit is refused to its sender, and
the step goes on waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ..ai.answers import check_schema, misfit
from ..durations import parse_duration
from ..states import WaitKind
from .base import Config, Context, Done, Outcome, Park, StepError, StepType
from .fields import Duration, JsonSchema, Text, Words

LONGEST_KEY = 255


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema:
        check_schema(schema)
    return schema


class CallbackConfig(Config):
    expires: Duration = Field("7d", title="Wait at most")
    on_expired: Annotated[Literal["fail", "go_on"], Words({"fail": "Fail the step"})] = Field(
        "fail", title="When nobody calls in time", description="Failing leads to its error lane, if it has one. Going on gives null."
    )
    schema_: Annotated[JsonSchema, AfterValidator(_schema)] = Field(
        default_factory=dict, alias="schema", title="What is sent", description="What does not fit is refused to its sender."
    )
    signal: Annotated[Text, Field(max_length=100)] = Field(
        "", title="Signal", description="A name under which programs send it by the API, instead of the address.",
        examples=["order_paid"],
    )  # fmt: skip
    key: Text = Field("", title="Key", description="Tells which run is meant, such as the number of its order.", examples=["{{ trigger.body.order_id }}"])

    @model_validator(mode="after")
    def name_and_key(self) -> CallbackConfig:
        if bool(self.signal) != bool(self.key):
            raise ValueError("A signal has both a name and a key.")
        return self


class Callback(StepType):
    type = "callback"
    label = "Callback"
    icon = "history"
    category = "People and waits"
    summary = "Wait for a call from another system"
    also = "wait for webhook resume signal event"
    Config = CallbackConfig
    example = {"expires": "7d"}

    def line(self, config: Mapping[str, Any]) -> str:
        what = f"Signal {config['signal']}" if config.get("signal") else "Callback"
        return f"{what} · at most {config.get('expires', '7d')}"

    async def run(self, ctx: Context) -> Outcome:
        try:
            longest = parse_duration(str(ctx.config["expires"]))
        except ValueError as wrong:
            raise StepError(str(wrong), field="expires") from None
        return Park(WaitKind.CALLBACK, after=longest, data=_named(ctx.config))

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        if outcome["by"] == "due":
            if ctx.config["on_expired"] == "fail":
                raise StepError("Nobody called back in time.", field="expires")
            return Done(None, log=("Nobody called back in time.",))
        payload = outcome.get("payload")
        schema = ctx.config["schema"]
        if schema and (wrong := await asyncio.to_thread(unfit, payload, schema)):  # a large value takes seconds, and others wait
            raise StepError(f"What was sent does not fit: {wrong}", field="schema")
        return Done(payload)


def unfit(payload: Any, schema: Mapping[str, Any]) -> str:
    """Where a payload does not fit a callback's schema, or an empty string."""
    return misfit(payload, schema, "payload") if schema else ""


def _named(config: Mapping[str, Any]) -> dict[str, Any]:
    """The name and key as they are compared: as text."""
    if not config["signal"]:
        return {}
    name, key = config["signal"], config["key"]
    key = str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)
    if not key or key == "None" or len(key) > LONGEST_KEY:
        raise StepError(f"The key of the signal is empty or longer than {LONGEST_KEY} characters.", field="key")
    return {"signal": str(name)[:100], "key": key}


STEP = Callback()
