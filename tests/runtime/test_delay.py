"""When a delay ends: by the clocks of a zone, on days that fit, and over the changes of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime.definition import check
from runtime.steps import step_types
from runtime.steps.base import StepError
from tests.runtime.support import context, run_in


def ends(now: str, **config) -> str:
    ctx = context("delay", config, at=datetime.fromisoformat(now).replace(tzinfo=UTC))
    return run_in("delay", ctx).until.strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("now", "config", "then"),
    [
        # A time of day: today if it is to come, else tomorrow; by the zone's clocks.
        ("2027-01-15T08:59", {"at": "09:00"}, "2027-01-15 09:00"),
        ("2027-01-15T09:00", {"at": "9:00"}, "2027-01-16 09:00"),
        ("2027-01-15T08:30", {"at": "09:00", "zone": "Europe/Berlin"}, "2027-01-16 08:00"),
        ("2027-01-15T23:30", {"at": "09:00", "zone": "Asia/Tokyo"}, "2027-01-16 00:00"),
        # A day of the week, and work days. 15 January 2027 is a Friday.
        ("2027-01-15T10:00", {"at": "09:00", "days": "monday"}, "2027-01-18 09:00"),
        ("2027-01-15T08:00", {"at": "09:00", "days": "friday"}, "2027-01-15 09:00"),
        ("2027-01-15T10:00", {"at": "09:00", "days": "workdays"}, "2027-01-18 09:00"),
        ("2027-12-23T10:00", {"at": "09:00", "days": "workdays", "calendar": "DE"}, "2027-12-24 09:00"),
        ("2027-12-23T10:00", {"at": "09:00", "days": "workdays", "calendar": "DE", "closed": ["2027-12-24"]}, "2027-12-27 09:00"),
        # Business days: Good Friday and Easter Monday 2027 are 26 and 29 March; Epiphany is a holiday in Bavaria only.
        ("2027-01-15T10:00", {"business_days": 1}, "2027-01-18 10:00"),
        ("2027-03-25T10:00", {"business_days": 1, "calendar": "DE"}, "2027-03-30 10:00"),
        ("2027-01-05T10:00", {"business_days": 1, "calendar": "DE"}, "2027-01-06 10:00"),
        ("2027-01-05T10:00", {"business_days": 1, "calendar": "DE-BY"}, "2027-01-07 10:00"),
        ("2027-01-14T10:00", {"business_days": 1, "calendar": "EG"}, "2027-01-17 10:00"),  # weekends are Friday and Saturday
        ("2027-01-15T10:00", {"business_days": 2, "then_at": "08:30", "zone": "America/New_York"}, "2027-01-19 13:30"),
        # Clocks: 02:30 does not come in Berlin on 28 March 2027 and means 03:30 summer time; on 31 October it means the first.
        ("2027-03-27T12:00", {"at": "02:30", "zone": "Europe/Berlin"}, "2027-03-28 01:30"),
        ("2027-10-30T12:00", {"at": "02:30", "zone": "Europe/Berlin"}, "2027-10-31 00:30"),
        ("2027-03-26T10:00", {"business_days": 1, "zone": "Europe/Berlin"}, "2027-03-29 09:00"),  # 11:00 before and after
    ],
)  # fmt: skip
def test_it_ends_when_the_clocks_of_the_zone_say_so(now, config, then):
    assert ends(now, **config) == then


def test_it_is_spread_over_the_time_that_is_given():
    waits = {run_in("delay", context("delay", {"for": "1h", "jitter": "10m"})).after for _ in range(20)}
    assert len(waits) > 1 and all(timedelta(hours=1) <= one <= timedelta(hours=1, minutes=10) for one in waits)


@pytest.mark.parametrize(
    ("config", "field"),
    [({}, "config"), ({"for": "1h", "at": "09:00"}, "config"), ({"at": "24:00"}, "config.at"), ({"at": "9"}, "config.at"),
     ({"business_days": 0}, "config.business_days"), ({"business_days": 1, "calendar": "Atlantis"}, "config.calendar"),
     ({"business_days": 1, "calendar": "DE-XX"}, "config.calendar"), ({"at": "09:00", "closed": ["24.12."]}, "config.closed"),
     ({"at": "09:00", "zone": "Mars"}, "config.zone"), ({"until": "tomorrow"}, "config.until"), ({"until": "2027-13-01"}, "config.until"), ({"for": "1h", "jitter": "much"}, "config.jitter")],
)  # fmt: skip
def test_config_problems_name_their_field(config, field):
    problems = check({"format": 1, "name": "x", "steps": [{"id": "wait", "type": "delay", "config": config}]})
    assert [problem.field for problem in problems] == [field]


def test_what_turns_out_badly_fails_by_name():
    with pytest.raises(StepError, match="Write hour and minute") as caught:
        run_in("delay", context("delay", {"at": "{{ trigger.t }}"}, trigger={"t": "noon"}))
    assert caught.value.field == "at"


def test_the_card_says_what_it_waits_for():
    line = step_types()["delay"].line
    assert line({"business_days": 3}) == "Delay · 3 business days" and line({"at": "09:00"}) == "Delay · until 09:00"
    assert line({"at": "09:00", "days": "monday"}) == "Delay · until 09:00 on Monday"


def test_a_real_worker_waits_for_the_next_work_day_and_is_not_early(engine, clock):
    engine.worker()
    run = engine.start(engine.publish([{"id": "wait", "type": "delay", "config": {"business_days": 1, "then_at": "08:00"}}]))
    engine.parked(run)
    due = engine.wait(run, "wait").due_at
    assert due > clock.now() and (due.hour, due.minute) == (8, 0) and due.weekday() < 5
    clock.advance(seconds=(due - clock.now()).total_seconds())
    assert engine.ends(run).ended_at >= due
