"""Schedule: starts runs by the clock, in a time zone.

Write it in words, such as “every weekday at 8:00”, or as a cron line. The next times are shown below the field. Each time starts
one run, whatever becomes of the machines meanwhile; the run knows it as `trigger.scheduled_at`.

Days on which the clock changes follow Debian cron. A time that is skipped fires once, at the first minute after the gap; a
time that comes twice fires at the first. Schedules with `*` or `*/n` in the minute or hour go by elapsed time instead, so
that “every half hour” stays every half hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from django.conf import settings
from pydantic import AfterValidator, Field

from ..steps.base import Config
from ..steps.fields import Words, Zone
from .base import TriggerKind
from .inwords import to_words

SECOND = timedelta(seconds=1)


def _cron(text: str) -> str:
    if len(text.split()) != 5:
        raise ValueError(
            "Write five fields: minute, hour, day of month, month, day of week. “0 9 * * 1-5” is weekdays at 9:00."
        )
    try:
        fires = next(CronSim(text, datetime(2024, 1, 1, tzinfo=UTC)), None)
    except CronSimError as wrong:
        raise ValueError(f"“{text[:60]}” is not a schedule: {str(wrong)[:1].lower()}{str(wrong)[1:]}.") from None
    except (AssertionError, TypeError, ValueError, OverflowError):
        raise ValueError(f"“{text[:60]}” is not a schedule.") from None
    if fires is None:
        raise ValueError(f"“{text[:60]}” never comes.")
    return text


class ScheduleConfig(Config):
    cron: Annotated[str, Field(max_length=200), AfterValidator(_cron)] = Field(
        title="When",
        description="In words, such as “every weekday at 8:00”, or as cron: minute, hour, day of month, month, day of week.",
        examples=["0 9 * * 1-5", "*/15 * * * *"],
    )
    zone: Zone = Field("UTC", title="Time zone", examples=["Europe/Berlin"])
    overlap: Annotated[
        Literal["allow", "skip", "queue", "cancel_old"],
        Words({"allow": "Start beside it", "skip": "Leave it out", "queue": "Start after it", "cancel_old": "Cancel the earlier one"}),
    ] = Field(
        "allow", title="While the last run still goes", description="What its next time does then."
    )
    missed: Annotated[
        Literal["once", "all", "skip"],
        Words({"once": "Start one run", "all": "Start them all", "skip": "Leave them out"}),
    ] = Field(
        "once", title="Times that nobody was there for", description="While no worker ran."
    )
    most: Annotated[int, Field(ge=1, le=100)] = Field(10, title="At most so many", description="The latest count.")


class Schedule(TriggerKind):
    type = "schedule"
    label = "Schedule"
    icon = "cal"
    summary = "Start by the clock"
    also = "cron timer interval every day week time"
    Config = ScheduleConfig
    example = {"cron": "0 9 * * 1-5", "zone": settings.TIME_ZONE}

    def line(self, config: Mapping[str, Any]) -> str:
        if not config.get("cron"):
            return self.summary
        words, zone = to_words(str(config["cron"])), config.get("zone", "UTC")
        return f"{words[:1].upper()}{words[1:]} · {zone}" if words else f"Schedule · {config['cron']} · {zone}"

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        at = self.next_after(config, datetime(2027, 1, 1, tzinfo=UTC))
        return {
            "scheduled_at": at.isoformat() if at else "2027-01-01T00:00:00+00:00",
            "occurrence": "1@2027-01-01T00:00:00Z",
        }

    def next_after(self, config: Mapping[str, Any], moment: datetime) -> datetime | None:
        """The first instant strictly after `moment` (aware), in UTC; None when it never comes again.

        In the hour that a clock change repeats, cronsim counts by the wall and answers with the first of the two, which
        may lie before `moment`: such answers are passed over.
        """
        cron, zone = config["cron"], ZoneInfo(config.get("zone", "UTC"))
        if any(field.startswith("*") for field in cron.split()[:2]):
            return _by_elapsed_time(cron, zone, moment)
        for local in CronSim(cron, moment.astimezone(zone)):
            if (at := local.astimezone(UTC)) > moment:
                return at
        return None


def _by_elapsed_time(cron: str, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """Between two changes of the clock the wall is an offset from UTC, and cronsim counts by that. Told of the zone, it passes
    over what comes within the hour of a change by half an hour (Australia/Lord_Howe)."""
    start, offset = moment.astimezone(UTC), _offset(zone, moment)
    while (wall := next(CronSim(cron, (start + offset).replace(tzinfo=None)), None)) is not None:
        at = wall.replace(tzinfo=UTC) - offset
        change = _changes(zone, start + SECOND, at)
        if change is None:
            return at
        start, offset = change - SECOND, _offset(zone, change)
    return None


def _changes(zone: ZoneInfo, start: datetime, end: datetime) -> datetime | None:
    """The first second after `start`, up to `end`, at which another offset holds than at `start`."""
    before = start
    while before < end:
        after = min(before + timedelta(days=1), end)
        if _offset(zone, after) != _offset(zone, start):
            while after - before > SECOND:
                middle = before + timedelta(seconds=(after - before) // SECOND // 2)
                before, after = (middle, after) if _offset(zone, middle) == _offset(zone, start) else (before, middle)
            return after
        before = after
    return None


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset()


KIND = Schedule()
