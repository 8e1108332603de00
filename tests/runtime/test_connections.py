"""Whether a connection of a web server still lives: told by its socket while it was just in use, else asked."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

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
