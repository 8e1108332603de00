"""Delay: waits for a length of time, until a date, until a time of day, or for some business days. It outlives every restart.

Times of day are those of the zone's clocks: one that a change of clocks skips moves forward by the gap, one that comes
twice means the first. Business days leave out weekends, and the public holidays of the calendar that is named.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from ..durations import parse_duration
from ..states import WaitKind
from ..workdays import NoWorkday, after_workdays, check_calendar, is_workday
from .base import Config, Context, Done, Outcome, Park, StepError, StepType
from .fields import Duration, Text, Widget, Words, Zone

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
KINDS = ("for_", "until", "at", "business_days")


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("Say until when.")
    return text


def _instant(text: str) -> str:
    if "{{" not in text:
        try:
            parse_instant(text, "UTC")
        except ValueError:
            raise ValueError(f"“{text[:40]}” is not a date and time. Write it like 2027-01-15T09:00.") from None
    return text


def _time_of_day(text: str) -> str:
    if "{{" not in text:
        parse_time(text)
    return text


def _dates(lines: list[str]) -> list[str]:
    for line in lines:
        _date(line)
    return lines


class DelayConfig(Config):
    for_: Duration | None = Field(
        None, alias="for", title="Wait for", description="A number and a unit: 30s, 15m, 2h, 3d.", examples=["2d"]
    )
    until: Annotated[Text, AfterValidator(_said), AfterValidator(_instant)] | None = Field(
        None, title="Until", description="A date and time.", examples=["2027-01-15T09:00", "{{ trigger.body.start }}"]
    )
    at: Annotated[Text, AfterValidator(_said), AfterValidator(_time_of_day)] | None = Field(
        None, title="Until", description="The next time that clocks show this.", examples=["09:00"]
    )
    days: Annotated[
        Literal[("every", "workdays", *WEEKDAYS)],
        Words({"every": "Every day", "workdays": "Work days"}),
    ] = Field("every", title="On")
    business_days: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None, title="Business days", description="From now on; today does not count."
    )
    then_at: Annotated[Text, AfterValidator(_time_of_day)] = Field(
        "", title="At", description="A time of day. When empty, the time at which the step began.", examples=["09:00"]
    )
    zone: Zone = Field("UTC", title="Time zone", description="Whose clocks are meant.", examples=["Europe/Berlin"])
    calendar: Annotated[str, Field(max_length=20), Widget("calendar"), AfterValidator(check_calendar)] = Field(
        "", title="Holidays of", description="A country, or a part of one: DE, DE-BY, US-CA.", examples=["DE"]
    )
    closed: Annotated[list[str], Field(max_length=400), AfterValidator(_dates)] = Field(
        default_factory=list, title="Closed on", description="Days of your own, as year-month-day.", examples=[["2027-12-24"]]
    )
    jitter: Duration | None = Field(
        None, title="Spread over", description="Up to so much longer, by chance, so that many do not go on at once.",
        examples=["10m"],
    )  # fmt: skip

    @model_validator(mode="after")
    def one_kind(self) -> DelayConfig:
        if sum(getattr(self, name) is not None for name in KINDS) != 1:
            raise ValueError("Say either how long to wait or until when.")
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


def parse_time(text: str) -> time:
    """`9:30` -> time. ValueError says what would be right."""
    hour, _, minute = text.strip().partition(":")
    if not (hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and int(hour) < 24 and int(minute) < 60):
        raise ValueError(f"“{text[:20]}” is not a time of day. Write hour and minute, such as 09:30.")
    return time(int(hour), int(minute))


class Delay(StepType):
    type = "delay"
    label = "Delay"
    icon = "clock"
    category = "Flow"
    summary = "Wait for a time"
    also = "wait sleep pause timer until business days"
    Config = DelayConfig
    example = {"for": "1h"}

    def line(self, config: Mapping[str, Any]) -> str:
        if config.get("for"):
            return f"Delay · {config['for']}"
        if config.get("at"):
            return f"Delay · until {config['at']}{_on(str(config.get('days', 'every')))}"
        if config.get("business_days"):
            count = config["business_days"]
            return f"Delay · {count} business day{'' if count == 1 else 's'}"
        return f"Delay · until {config['until']}" if config.get("until") else self.summary

    async def run(self, ctx: Context) -> Outcome:
        config = ctx.config
        field = next(name.strip("_") for name in KINDS if config[name.strip("_")] is not None)
        try:
            spread = _spread(config["jitter"])
            if field == "for":
                return Park(WaitKind.TIMER, after=parse_duration(str(config["for"])) + spread)
            return Park(WaitKind.TIMER, until=_until(config, field, ctx.now()) + spread)
        except (ValueError, OverflowError) as wrong:
            raise StepError(f"{wrong}", field=field) from None

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        return Done({"waited_until": outcome.get("at")})


def _on(days: str) -> str:
    return {"every": "", "workdays": " on a work day"}.get(days, f" on {days.capitalize()}")


def _until(config: Mapping[str, Any], field: str, now: datetime) -> datetime:
    zone = ZoneInfo(config["zone"])
    local = now.astimezone(zone)
    match field:
        case "until":
            return parse_instant(str(config["until"]), config["zone"])
        case "at":
            return _next(parse_time(str(config["at"])), local, config)
    day = after_workdays(local.date(), config["business_days"], config["calendar"], _closed(config))
    clock = parse_time(str(config["then_at"])) if config["then_at"] else local.time()
    return datetime.combine(day, clock.replace(tzinfo=None, fold=0), zone).astimezone(UTC)


def _next(clock: time, local: datetime, config: Mapping[str, Any]) -> datetime:
    """The first instant after `local` at which clocks show the time, on a day that fits."""
    closed = _closed(config)
    for count in range(3661):
        day = local.date() + timedelta(days=count)
        found = datetime.combine(day, clock, local.tzinfo).astimezone(UTC)
        if found > local and _fits(day, config, closed):
            return found
    raise NoWorkday("No such day comes within ten years.")


def _fits(day: date, config: Mapping[str, Any], closed: frozenset[date]) -> bool:
    days = config["days"]
    if days == "workdays":
        return is_workday(day, config["calendar"], closed)
    return day not in closed and days in ("every", WEEKDAYS[day.weekday()])


def _closed(config: Mapping[str, Any]) -> frozenset[date]:
    return frozenset(_date(line) for line in config["closed"])


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"“{text[:20]}” is not a date. Write it as year-month-day, such as 2027-12-24.") from None


def _spread(jitter: str | None) -> timedelta:
    return parse_duration(str(jitter)) * random.random() if jitter else timedelta()


STEP = Delay()
