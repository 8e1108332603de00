"""Whether a connection of a web server still lives: told by its socket while it was just in use, else asked. And statements without a
cursor."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from django.db import DataError, OperationalError, connection

from runtime.postgresql.base import FRESH_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(database_url):
    """server(sql): what the server says of this process's connection, over another one."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        pid = cursor.fetchone()[0]
    with psycopg.connect(database_url, autocommit=True) as other:
        yield lambda sql: other.execute(sql, [pid]).fetchone()[0]
    connection.close()


ASKED_LAST = "select query from pg_stat_activity where pid = %s"
END = "select pg_terminate_backend(%s, 60000)"


def test_one_that_was_just_in_use_is_not_asked(server):
    assert connection.is_usable()
    assert server(ASKED_LAST) == "select pg_backend_pid()"


def test_one_that_was_idle_is_asked(server):
    connection.used_at -= FRESH_SECONDS
    assert connection.is_usable()
    assert server(ASKED_LAST).lower() == "select 1"


def test_one_on_which_something_went_wrong_is_asked(server):
    connection.errors_occurred = True
    assert connection.is_usable()
    assert server(ASKED_LAST).lower() == "select 1"


def test_one_that_the_server_has_ended_is_none(server):
    assert server(END)
    assert not connection.is_usable()


def test_a_statement_that_is_asked_gives_its_row_as_texts():
    row = connection.ask("select $1::int, $2::text, $3::bool, $4::interval, $5::text", [7, "“ß” \\'", True, timedelta(seconds=90), None])
    assert row == ["7", "“ß” \\'", "t", "00:01:30", None]


def test_what_is_asked_and_refused_is_told_as_a_cursor_tells_it():
    with pytest.raises(DataError, match="division by zero") as refused:
        connection.ask("select 1 / $1::int", [0])
    assert refused.value.__cause__.sqlstate == "22012"
    assert connection.ask("select 1", []) == ["1"]


def test_what_is_asked_of_an_ended_connection_is_no_answer_and_the_next_request_has_a_new_one(server):
    assert server(END)
    with pytest.raises(OperationalError, match="terminat|closed"):
        connection.ask("select 1", [])
    connection.close_if_unusable_or_obsolete()
    assert connection.ask("select 1", []) == ["1"]
