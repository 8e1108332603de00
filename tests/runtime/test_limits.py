"""Rates that hold across all processes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from runtime.limits import admitted, caller, count, is_full
from runtime.models import RateLimit
from tests.runtime.engine import at_once


@pytest.mark.django_db
def test_a_minutes_worth_may_come_at_once_and_then_the_even_rate_holds():
    assert [admitted("a", 5) for _ in range(5)] == [0.0] * 5
    assert 11 < admitted("a", 5) <= 12, "the next one is let in after a fifth of a minute"
    assert admitted("b", 5) == 0.0, "keys do not count for each other"
    with connection.cursor() as cursor:
        cursor.execute("update rate_limit set until = until - interval '12 seconds' where key = 'a'")
    assert admitted("a", 5) == 0.0
    assert admitted("a", 5) > 11


@pytest.mark.django_db
def test_what_was_used_up_by_a_clock_that_leapt_back_since_counts_for_nothing():
    minute = timedelta(minutes=1)
    admitted("a", 5), count("b", minute, minute)
    assert is_full("b", minute, minute)
    with connection.cursor() as cursor:
        cursor.execute("update rate_limit set until = until + interval '1 hour'")
    assert [admitted("a", 5) == 0.0 for _ in range(6)] == [True] * 5 + [False] and not is_full("b", minute, minute)
    count("b", minute, minute)
    assert is_full("b", minute, minute)


@pytest.mark.django_db
def test_no_rate_admits_everything_and_writes_nothing():
    assert [admitted("a", 0) for _ in range(3)] == [0.0] * 3
    assert not RateLimit.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_many_at_once_are_counted_together():
    answers = at_once(*[lambda: admitted("a", 4)] * 12)
    assert sum(answer == 0.0 for answer in answers) == 4, answers


@pytest.mark.parametrize(
    ("address", "who"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("", "unknown"),
    ],
)
def test_whom_an_address_stands_for(address, who):
    assert caller(address) == who
