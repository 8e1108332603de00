"""Trigger kinds: what is checked when a definition is saved, and the instants of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.definition import check
from runtime.triggers import trigger_kinds
from runtime.triggers.manual import read_form

SCHEDULE = trigger_kinds()["schedule"]


def problems(type: str, config: dict) -> list[str]:
    definition = {"format": 1, "name": "A", "triggers": [{"id": "t", "type": type, "config": config}]}
    found = check(definition)
    assert all(problem.step == "t" for problem in found)
    return [f"{problem.field}: {problem.message}" for problem in found]


def instants(cron: str, zone: str, after: str, count: int) -> list[str]:
    moment, found = datetime.fromisoformat(after), []
    for _ in range(count):
        moment = SCHEDULE.next_after({"cron": cron, "zone": zone}, moment)
        found.append(moment.strftime("%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    "cron", ["* * * * *", "*/15 9-17 * * 1-5", "0 9 1 * *", "0 0 29 2 *", "0 0 L * *", "0 9 * * MON#1", "0 0 * * 7"]
)
def test_schedules_of_five_fields_are_taken(cron):
    assert problems("schedule", {"cron": cron, "zone": "Europe/Berlin"}) == []


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("@daily", "five fields"),
        ("60 * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day"),
        ("0 0 * 2 MON#6", "bad day-of-week"),
        ("0 0 x * *", "bad day"),
        ("*/0 * * * *", "bad minute"),
        ("٣ * * * *", "bad minute"),
        ("0 0 * * 1#2/3", "not a schedule"),
    ],
)
def test_what_is_no_schedule_is_refused_and_named(cron, words):
    (problem,) = problems("schedule", {"cron": cron})
    assert problem.startswith("config.cron: ")
    assert words in problem


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789*/,-#LWMON ", max_size=20))
def test_no_schedule_text_breaks_the_check_or_the_reckoning(text):
    if not problems("schedule", {"cron": text}):
        moment = datetime(2027, 1, 1, tzinfo=UTC)
        assert SCHEDULE.next_after({"cron": text}, moment) > moment


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "Europe", "Europe/Berlin" * 10])
def test_what_is_no_time_zone_is_refused(zone):
    found = problems("schedule", {"cron": "0 9 * * *", "zone": zone})
    assert found


@pytest.mark.fault(26)
def test_a_daily_time_that_spring_skips_fires_once_after_the_gap():
    assert instants("30 2 * * *", "Europe/Berlin", "2027-03-26T12:00:00+00:00", 3) == [
        "03-27 01:30",
        "03-28 01:00",
        "03-29 00:30",
    ]


@pytest.mark.fault(26)
def test_a_daily_time_that_autumn_repeats_fires_once():
    assert instants("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00+00:00", 2) == ["10-31 00:30", "11-01 01:30"]


def test_a_daily_schedule_does_not_fire_again_from_inside_the_repeated_hour():
    """01:10 UTC is the second 02:10 of that night; counting by the wall would answer 00:30 UTC, which is past."""
    assert instants("30 2 * * *", "Europe/Berlin", "2027-10-31T01:10:00+00:00", 1) == ["11-01 01:30"]


def test_every_half_hour_stays_every_half_hour_over_both_changes():
    for day in ("2027-03-28T00:00:00+00:00", "2027-10-31T00:00:00+00:00"):
        found = instants("*/30 * * * *", "Europe/Berlin", day, 6)
        assert [text[-5:] for text in found] == ["00:30", "01:00", "01:30", "02:00", "02:30", "03:00"]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["30 2 * * *", "0,30 1-3 * * *", "*/20 * * * *", "15 */2 * * *", "0 2 * * 0"]),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"]),
    st.datetimes(datetime(2027, 1, 1), datetime(2027, 12, 31)),
)
def test_instants_only_ever_move_on(cron, zone, start):
    moment = start.replace(tzinfo=UTC)
    for _ in range(5):
        following = SCHEDULE.next_after({"cron": cron, "zone": zone}, moment)
        assert moment < following <= moment + timedelta(days=9)
        moment = following


def test_signatures_whose_secret_the_sender_makes_need_a_connection():
    for kind in ("stripe", "slack"):
        (problem,) = problems("webhook", {"signature": {"kind": kind}})
        assert "connection" in problem
        assert problems("webhook", {"signature": {"kind": kind, "connection": "their-secret"}}) == []
    for kind in ("none", "standard", "github"):
        assert problems("webhook", {"signature": {"kind": kind}}) == []


def test_a_dedupe_rule_that_is_no_expression_is_refused_at_its_field():
    (problem,) = problems("webhook", {"dedupe": "headers['x-event-id'"})
    assert problem.startswith("config.dedupe: ")


def test_unknown_keys_are_refused_with_their_path():
    (problem,) = problems("webhook", {"signature": {"kind": "github", "secret": "in the clear"}})
    assert problem.startswith("config.signature.secret: ")


def test_form_fields_are_checked():
    field = {"id": "size", "label": "Size", "type": "choice"}
    assert "options" in problems("manual", {"fields": [field]})[0]
    assert problems("manual", {"fields": [{**field, "options": ["S", "L"]}]}) == []
    assert "twice" in problems("manual", {"fields": [{"id": "a"}, {"id": "a"}]})[0]
    assert "page of a form trigger" in problems("manual", {"fields": [{"id": "a", "type": "file"}]})[0]
    assert problems("form", {"fields": [{"id": "a", "type": "file"}]}) == []


FIELDS = [
    {"id": "name", "type": "text", "required": True},
    {"id": "count", "type": "number"},
    {"id": "size", "type": "choice", "options": ["S", "L"]},
    {"id": "day", "type": "date"},
    {"id": "sure", "type": "checkbox"},
    {"id": "story", "type": "long_text"},
    {"id": "reply", "type": "email"},
]


def test_a_form_gives_typed_values_and_nothing_that_was_not_asked():
    posted = {
        "name": " Dana ",
        "count": "3",
        "size": "L",
        "day": "2027-01-31",
        "sure": "on",
        "story": "One line.\r\nAnother. ",
        "reply": " dana@example.com ",
        "trigger.body": "x",
        "admin": "1",
    }
    assert read_form(FIELDS, posted) == (
        {"name": " Dana ", "count": 3, "size": "L", "day": "2027-01-31", "sure": True, "story": "One line.\nAnother. ", "reply": "dana@example.com"},
        {},
    )


def test_a_form_left_empty_says_what_is_needed():
    body, wrong = read_form(FIELDS, {})
    assert wrong == {"name": "Fill this in."}
    assert body == {"count": None, "size": None, "day": None, "sure": False, "story": "", "reply": None}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("count", "many"),
        ("count", "NaN"),
        ("count", "1e30"),
        ("count", "1e9999999"),
        ("count", "-" + "9" * 1_000_001),
        ("count", "Infinity"),
        ("size", "XL"),
        ("day", "31.1.2027"),
        ("day", "2027-02-30"),
        ("name", "a\x00b"),
        ("name", "x" * 20_001),
        ("story", "x" * 20_001),
        ("reply", "dana@"),
        ("reply", "a@example.com, b@example.com"),
    ],
)
def test_a_wrong_entry_is_named(name, text):
    _, wrong = read_form(FIELDS, {"name": "Dana", name: text})
    assert set(wrong) == {name}


def test_samples_look_like_what_expressions_will_see():
    kinds = trigger_kinds()
    assert kinds["webhook"].sample({"sample": {"id": 1}})["body"] == {"id": 1}
    assert kinds["webhook"].sample({}) is None
    assert kinds["manual"].sample({"fields": FIELDS})["body"]["size"] == "S"
    assert set(kinds["schedule"].sample({"cron": "0 9 * * *"})) == {"scheduled_at", "occurrence"}
