"""The tests' own tools: a clock that moves for everybody and is put back, on a database of the product's own role."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from django.db import connection


AHEAD = timedelta(days=2, hours=1)


def moved(before, now) -> bool:
    return AHEAD <= now - before < AHEAD + timedelta(minutes=1)


@pytest.mark.django_db
def test_the_clock_moves_inside_an_open_transaction(clock):
    with connection.cursor() as cursor:
        cursor.execute("select holdfast_now()")
        before = cursor.fetchone()[0]
        clock.advance(days=2, hours=1)
        cursor.execute("select holdfast_now()")
        assert moved(before, cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_the_clock_moves_for_other_connections(clock, database_url):
    with psycopg.connect(database_url, autocommit=True) as other:
        before = other.execute("select holdfast_now()").fetchone()[0]
        clock.advance(days=2)
        clock.advance(hours=1)
        assert moved(before, other.execute("select holdfast_now()").fetchone()[0])
        assert moved(before, clock.now())


@pytest.mark.django_db
def test_the_clock_was_put_back_after_the_tests_before_this_one():
    with connection.cursor() as cursor:
        cursor.execute("select abs(extract(epoch from holdfast_now() - clock_timestamp())) < 5")
        assert cursor.fetchone() == (True,)


@pytest.mark.django_db
def test_the_database_role_is_no_superuser():
    with connection.cursor() as cursor:
        cursor.execute("select current_user, rolsuper from pg_roles where rolname = current_user")
        assert cursor.fetchone() == ("holdfast", False)
