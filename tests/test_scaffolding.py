"""The tests' own tools: a clock that moves for everybody and is put back, on a database of the product's own role."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from django.db import connection


def asked_now(database) -> object:
    return database.execute("select holdfast_now()").fetchone()[0]


@pytest.mark.django_db
def test_the_clock_moves_inside_an_open_transaction_and_for_other_connections(clock, database_url):
    with connection.cursor() as cursor, psycopg.connect(database_url) as other:
        before = asked_now(cursor_of(cursor))
        clock.advance(days=2, hours=1)
        ahead = timedelta(days=2, hours=1)
        for now in (asked_now(cursor_of(cursor)), asked_now(other)):
            assert ahead <= now - before < ahead + timedelta(minutes=1)


@pytest.mark.django_db
def test_the_clock_was_put_back_after_the_test_before_this_one():
    with connection.cursor() as cursor:
        cursor.execute("select abs(extract(epoch from holdfast_now() - clock_timestamp())) < 5")
        assert cursor.fetchone() == (True,)


@pytest.mark.django_db
def test_the_database_role_is_no_superuser():
    with connection.cursor() as cursor:
        cursor.execute("select current_user, rolsuper from pg_roles where rolname = current_user")
        assert cursor.fetchone() == ("holdfast", False)


def cursor_of(cursor):
    """Django's cursor with psycopg's `execute`, which gives itself back."""
    return cursor.cursor
