"""Durations as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtime.durations import parse_duration
from runtime.steps.delay import parse_instant


@pytest.mark.parametrize(("text", "seconds"), [
    ("90s", 90), ("15m", 900), ("2h", 7200), ("3d", 259200), ("1w", 604800), ("1d 12h", 129600), ("1d12h", 129600),
    (" 1.5h ", 5400), ("250ms", 0.25), ("0s", 0), ("1h 1m 1s", 3661),
])  # fmt: skip
def test_numbers_and_units_also_joined(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "s", "3", "3 days", "-3d", "1h30", "3d!", "1e3s", "٣d", "P3D", "inf s", "nan", "1..5h", "1mo"]
)
def test_what_is_none_is_told_with_what_would_be_one(text):
    with pytest.raises(ValueError, match="is not a duration. Write"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["11000d", "9" * 400 + "w"])
def test_more_than_ten_years_is_refused(text):
    with pytest.raises(ValueError, match="ten years"):
        parse_duration(text)


def test_a_date_without_an_offset_is_local_to_its_zone():
    assert parse_instant("2027-01-15T09:00", "Europe/Berlin") == datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert parse_instant("2027-01-15T09:00-10:00", "Europe/Berlin") == datetime(2027, 1, 15, 19, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["tomorrow", "", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31"]
)
def test_what_is_no_date_in_every_zone_is_refused(text):
    with pytest.raises(ValueError):
        parse_instant(text, "Asia/Tokyo")
