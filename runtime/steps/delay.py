"""Delay: wait for a length of time, or until an instant. The wait is a row; no process has to live through it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, model_validator

from ..durations import parse_duration
from ..states import WaitKind
from .base import Config, Context, Done, Outcome, Park, StepError, StepType
from .fields import Duration, Text


class DelayConfig(Config):
    for_: Duration | None = Field(
        None, alias="for", title="Wait for", description="A number and a unit: 30s, 15m, 2h, 3d.", examples=["2d"]
    )
    until: Text | None = Field(
        None, title="Or until", description="A date and time.", examples=["2027-01-15T09:00", "{{ trigger.body.start }}"]
    )
    zone: str = Field("UTC", title="Time zone", description="Used where the date and time names none.", examples=["Europe/Berlin"])

    @model_validator(mode="after")
    def one_kind(self) -> DelayConfig:
        if (self.for_ is None) == (self.until is None):
            raise ValueError("Say either how long to wait or until when.")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"“{self.zone}” is not a time zone. Use a name such as Europe/Berlin.") from None
        return self


def parse_instant(text: str, zone: str) -> datetime:
    """ISO 8601 -> aware datetime. Without an offset it is local to `zone`: a time that a DST change skips moves
    forward by the gap, one that occurs twice means the first (PEP 495, fold=0). ValueError when it is no date."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(zone))
    if not 1 < moment.year < 9999:  # the years at the ends cannot be told in every zone
        raise ValueError(f"“{text[:40]}” is not within the years 2 to 9998.")
    return moment.astimezone(UTC)


class Delay(StepType):
    type = "delay"
    label = "Delay"
    icon = "delay"
    category = "Flow"
    summary = "Wait for a time"
    Config = DelayConfig
    example = {"for": "1h"}

    def line(self, config: Mapping[str, Any]) -> str:
        if config.get("for"):
            return f"Delay · {config['for']}"
        return f"Delay · until {config['until']}" if config.get("until") else self.summary

    async def run(self, ctx: Context) -> Outcome:
        wait, until = ctx.config["for"], ctx.config["until"]
        try:
            if wait is not None:
                return Park(WaitKind.TIMER, after=parse_duration(str(wait)))
            return Park(WaitKind.TIMER, until=parse_instant(str(until), ctx.config["zone"]))
        except ValueError as wrong:
            raise StepError(f"{wrong}", field="for" if wait is not None else "until") from None

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        return Done({"waited_until": outcome.get("at")})


STEP = Delay()
