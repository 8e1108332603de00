"""Schedules on the days on which clocks change, against Debian cron's own rules (cron(8), “Daylight Saving Time and other
time changes”): minute by minute, as its daemon goes about it.

There a job whose minute or hour begins with `*` is a wildcard job and goes by the minutes that pass. Others have fixed times:
those that a change skips run at once after it, those that come twice run the first time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from runtime.triggers import trigger_kinds

MINUTE, THREE_HOURS, CATCHES_UP = timedelta(minutes=1), 180, 5
ZONES = (
    "Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "America/Santiago", "Africa/Cairo",
    "Asia/Beirut", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Chatham",
)  # fmt: skip
CRONS = (
    "30 2 * * *", "0 0 * * *", "15 0 * * *", "45 1 * * *", "0,30 1-3 * * *", "59 23 * * *", "30 2 * * 0", "*/30 * * * *",
    "15 * * * *", "15 */2 * * *", "*/20 2 * * *", "* 3 * * *",
)  # fmt: skip


@cache
def changes(zone: ZoneInfo, year: int) -> list[datetime]:
    """The first minutes (UTC) of another offset."""
    hours = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(366 * 24)]
    found = []
    for before, after in pairwise(hours):
        if before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            while before.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
                before, last = before + MINUTE, before
            found.append(last + MINUTE)
    return found


def fits(field: str, value: int) -> bool:
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        if span == "*":
            low, high = 0, 59
        if int(low) <= value <= int(high or low) and (value - int(low)) % int(step or 1) == 0:
            return True
    return False


@cache
def walls(zone: ZoneInfo, start: datetime, minutes: int) -> list[tuple[datetime, int]]:
    """Each minute, and which one clocks show, counted from 1970."""
    nows = [start + n * MINUTE for n in range(minutes)]
    return [(now, int(now.timestamp() + now.astimezone(zone).utcoffset().total_seconds()) // 60) for now in nows]


def debian(cron: str, zone: ZoneInfo, start: datetime, minutes: int) -> set[datetime]:
    """The instants at which Debian's cron would run the job, when its daemon wakes up every minute."""
    fields = cron.split()
    wildcard = fields[0].startswith("*") or fields[1].startswith("*")

    @cache
    def wanted(minute: int) -> bool:
        if not fits(fields[0], minute % 60):
            return False
        local = datetime(1970, 1, 1) + timedelta(minutes=minute)
        values = (local.hour, local.day, local.month, local.isoweekday() % 7)
        return all(fits(field, value) for field, value in zip(fields[1:], values, strict=True))

    ran: set[datetime] = set()
    virtual = walls(zone, start, minutes)[0][1] - 1
    for now, clock in walls(zone, start, minutes):
        ahead = clock - virtual
        if ahead > THREE_HOURS or ahead <= -THREE_HOURS:
            virtual, run = clock, wanted(clock)
        elif ahead <= 0:  # it was this time before: wildcard jobs only, until the clock has caught up
            run = wildcard and wanted(clock)
        elif ahead <= CATCHES_UP:
            run = any(wanted(minute) for minute in range(virtual + 1, clock + 1))
            virtual = clock
        else:  # some time was skipped: wildcard jobs of now, and every fixed one of what was skipped
            skipped = range(virtual + 1, clock + 1)
            run = wanted(clock) if wildcard else any(wanted(minute) for minute in skipped)
            virtual = clock
        if run:
            ran.add(now)
    return ran


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", CRONS)
def test_schedules_run_when_debians_cron_would(cron, zone):
    kind, place = trigger_kinds()["schedule"], ZoneInfo(zone)
    found = changes(place, 2027)
    assert len(found) == 2
    for change in found:
        start, end = change - timedelta(hours=15), change + timedelta(hours=15)
        ours, at = set(), start - MINUTE
        while (at := kind.next_after({"cron": cron, "zone": zone}, at)) < end:
            ours.add(at)
        assert ours == debian(cron, place, start, 30 * 60)


@pytest.mark.parametrize(
    ("zone", "cron", "day", "walls"),
    [
        ("Europe/Berlin", "30 2 * * *", "2027-03-28", ["03:00+0200"]),
        ("Europe/Berlin", "30 2 * * *", "2027-10-31", ["02:30+0200"]),
        ("America/New_York", "30 2 * * *", "2027-03-14", ["03:00-0400"]),
        ("America/New_York", "30 1 * * *", "2027-11-07", ["01:30-0400"]),
        ("America/Santiago", "0 0 * * *", "2027-09-05", ["01:00-0300"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2027-10-03", ["02:30+1100"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2027-04-04", ["01:45+1100"]),
        ("Africa/Cairo", "15 0 * * *", "2027-04-30", ["01:00+0300"]),
        ("Pacific/Chatham", "0 3 * * *", "2027-09-26", ["03:45+1345"]),
        ("Europe/London", "*/30 1 * * *", "2027-10-31", ["01:00+0100", "01:30+0100", "01:00+0000", "01:30+0000"]),
    ],
)
def test_what_clocks_show_then(zone, cron, day, walls):
    kind, place = trigger_kinds()["schedule"], ZoneInfo(zone)
    at, shown = datetime.fromisoformat(f"{day}T00:00").replace(tzinfo=place).astimezone(UTC) - MINUTE, []
    while (at := kind.next_after({"cron": cron, "zone": zone}, at)).astimezone(place).date().isoformat() == day:
        shown.append(at.astimezone(place).strftime("%H:%M%z"))
    assert shown == walls
