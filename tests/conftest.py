"""What every test may use: a real Postgres of this session's own, a clock that can be moved, a browser.

Django's settings are read after this file has cleared the environment, so that a test run touches no running Holdfast and
depends on nobody's variables. Only tests that use the database start it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

import django
import psycopg
import pytest
from django.core.servers.basehttp import WSGIRequestHandler

TESTS = Path(__file__).parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
# One of several test processes finds the settings read already, from the folder of the process that started it: the keys
# are there, and children have to find the same ones. Its database is its own.
DATA = Path(os.environ["HOLDFAST_DATA"]) if WORKER else Path(tempfile.mkdtemp(prefix="holdfast-tests-"))
(DATA / "static").mkdir(exist_ok=True)  # each test client's middleware would warn
SCRATCH = DATA / WORKER
SCRATCH.mkdir(exist_ok=True)
for folder in (DATA, SCRATCH):
    folder.chmod(0o711)  # the database's user passes through when we are root
for name in list(os.environ):
    if name in ("DATABASE_URL", "SECRET_KEY", "EMAIL_URL", "PORT") or name.startswith("HOLDFAST_"):
        if name not in ("HOLDFAST_BROWSER", "HOLDFAST_TEST_FSYNC", "HOLDFAST_FUZZ"):
            del os.environ[name]
os.environ.update(
    DJANGO_SETTINGS_MODULE="builder.settings",
    HOLDFAST_DATA=str(DATA),
    SECRET_KEY="only for tests: nothing that they make outlives them, and no two of them must differ",
    PYTHONPATH=os.pathsep.join(filter(None, [str(TESTS.parent), os.environ.get("PYTHONPATH")])),
)

FILLED_BY_MIGRATIONS = {"django_content_type", "auth_permission", "django_migrations"}
# Tables that refer to some tables, and so on: none can be emptied without them.
REFERRING = """
with recursive referring as (
    select unnest(%s::text[])::regclass::oid as id
    union
    select conrelid from pg_constraint join referring on confrelid = id where contype = 'f'
)
select id::regclass::text from referring
"""
NO_TRUNCATE = {"audit": "audit_no_truncate", "run": "run_needed", "version": "version_needed"}
"""Triggers that refuse it, by table."""
SESSIONS_OF_WORKERS = """
select application_name, pid from pg_stat_activity where datname = current_database() and application_name like 'holdfast %'
"""
UNSAFE_AND_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def pytest_configure() -> None:
    django.setup()
    # Else each answer's body waits for the browser to have its head: 40 ms, for each of a page's hundred files.
    WSGIRequestHandler.disable_nagle_algorithm = True


def pytest_unconfigure() -> None:
    shutil.rmtree(SCRATCH, ignore_errors=True)


BUSY = ("e2e",)
WAITING = ("test_chaos", "test_engine", "test_up", "test_cluster", "test_review", "test_outside_runs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first, so that no process is left with it alone at the end; and files that keep the processor busy
    in turn with those that mostly wait."""
    files = list(dict.fromkeys(item.path for item in items))
    busy, waiting = ([file for file in files if any(name in str(file.relative_to(TESTS)) for name in names)] for names in (BUSY, WAITING))
    in_turn = [file for pair in zip_longest(busy, waiting) for file in pair if file]
    place = {file: n for n, file in enumerate(dict.fromkeys([*in_turn, *files]))}
    items.sort(key=lambda item: place[item.path])


@pytest.fixture(scope="session", autouse=True)
def loops_beside_the_browser(monkeypatch_session: pytest.MonkeyPatch) -> None:
    """Playwright leaves an event loop running in this thread, in which no other can be started: `asyncio.run` then takes
    a thread of its own."""
    plain = asyncio.run

    def run(main: Any, **options: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return plain(main, **options)
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(plain, main, **options).result()

    monkeypatch_session.setattr(asyncio, "run", run)


@pytest.fixture(scope="session", autouse=True)
def quick_and_uncollected() -> Iterator[None]:
    """Static files by their own names, without collecting them first; passwords by a hash that costs nothing."""
    from django.conf import settings
    from django.test import override_settings

    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    hasher = "django.contrib.auth.hashers.MD5PasswordHasher"
    with override_settings(STORAGES=settings.STORAGES | {"staticfiles": plain}, PASSWORD_HASHERS=[hasher]):
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[object]:
    """The session's server. Losing power would lose its data, unless HOLDFAST_TEST_FSYNC=1."""
    from builder.postgres import EmbeddedPostgres

    settings = {} if os.environ.get("HOLDFAST_TEST_FSYNC") == "1" else UNSAFE_AND_FAST
    with EmbeddedPostgres(SCRATCH / "postgres", SCRATCH / "postgres.log", settings) as server:
        with psycopg.connect(server.url("postgres", "postgres"), autocommit=True) as connection:
            connection.execute("alter role holdfast createdb")
        yield server


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres) -> None:
    """Points Django at the session's server, as the product's own role: no superuser's rights hide a missing grant."""
    from django.db import connections

    connections["default"].settings_dict.update(HOST=str(postgres.sockets), USER="holdfast", NAME="holdfast")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, postgres) -> Iterator[None]:
    """With the test database's address in the environment too, for the processes that tests start."""
    from django.db import connection

    os.environ["DATABASE_URL"] = postgres.url(quote(connection.settings_dict["NAME"]))
    yield
    del os.environ["DATABASE_URL"]


@pytest.fixture(scope="session", autouse=True)
def emptied_between_tests(monkeypatch_session: pytest.MonkeyPatch) -> None:
    """Tests that commit are followed by a TRUNCATE, which some tables refuse, and which a forgotten transaction
    would hold up for ever: their triggers are off for that moment, and the wait is bounded. It takes only what a test filled;
    what migrations fill, the names of models and their permissions, stays. Nobody's worker may be left by then: it would
    take the next test's runs."""
    from django.core.management.commands import flush
    from django.db.backends.postgresql.operations import DatabaseOperations

    def empty(ops: DatabaseOperations, statements: list[str]) -> None:
        until_no_worker_is_left(ops.connection)
        off, on = ([f"alter table {table} {verb} trigger {name}" for table, name in NO_TRUNCATE.items()] for verb in ("disable", "enable"))
        execute(ops, ["set local lock_timeout = '20s'", *off, *statements, *on])

    def truncate(style: Any, connection: Any, **options: Any) -> list[str]:
        tables = set(connection.introspection.django_table_names(only_existing=True)) - FILLED_BY_MIGRATIONS
        with connection.cursor() as cursor:
            cursor.execute(" union all ".join(f"select '{table}' where exists (select from {table})" for table in tables))
            filled = {table for (table,) in cursor.fetchall()}
            cursor.execute(REFERRING, [list(filled)])
            filled.update(table for (table,) in cursor.fetchall())
        return connection.ops.sql_flush(style, sorted(filled), **options)

    execute = DatabaseOperations.execute_sql_flush
    monkeypatch_session.setattr(DatabaseOperations, "execute_sql_flush", empty)
    monkeypatch_session.setattr(flush, "sql_flush", truncate)
    monkeypatch_session.setattr(flush, "emit_post_migrate_signal", lambda *args, **kwargs: None)


def until_no_worker_is_left(connection: Any) -> None:
    """Orphans look for their parent five times a second; a test that leaves others behind has to end them."""
    ends = time.monotonic() + 20
    while True:
        with connection.cursor() as cursor:
            cursor.execute(SESSIONS_OF_WORKERS)
            left = cursor.fetchall()
        if not left:
            return
        assert time.monotonic() < ends, f"This test left workers behind: {left}"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def monkeypatch_session() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture
def database_url(django_db_setup) -> str:
    """The test database's address, for connections beside Django's."""
    return os.environ["DATABASE_URL"]


class Clock:
    """Business time, for every process that asks this database: `holdfast_now()` is replaced by one with an offset.

    In a test that is one transaction the replacing is part of it, for a session may overlook in the middle of its
    transaction that another one replaced a function. Elsewhere it is committed over a connection of its own."""

    FUNCTION = """create or replace function holdfast_now() returns timestamptz language sql volatile parallel safe
        as $$ select clock_timestamp() + interval '{} microseconds' $$"""

    def __init__(self, beside: psycopg.Connection) -> None:
        self.beside = beside
        self.offset = timedelta()

    def advance(self, **how_far: float) -> datetime:
        """`clock.advance(days=2, hours=1)`: at once and for everybody. Gives the new time."""
        self.offset += timedelta(**how_far)
        with self._cursor() as cursor:
            cursor.execute(self.FUNCTION.format(self.offset // timedelta(microseconds=1)))
        return self.now()

    def now(self) -> datetime:
        with self._cursor() as cursor:
            cursor.execute("select holdfast_now()")
            return cursor.fetchone()[0]

    def _cursor(self) -> Any:
        from django.db import connection

        return connection.cursor() if connection.in_atomic_block else self.beside.cursor()


@pytest.fixture
def clock(database_url) -> Iterator[Clock]:
    """Put back at the end of the test."""
    with psycopg.connect(database_url, autocommit=True) as beside:
        plain = beside.execute("select pg_get_functiondef('holdfast_now()'::regprocedure)").fetchone()[0]
        yield Clock(beside)
        from django.db import connection

        if not connection.in_atomic_block:
            beside.execute(plain)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict) -> dict:
    """The browser that `make browser` found, quiet about the network that tests do not have."""
    from tests.browser import browser

    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright's loop runs in the thread in which tests use the ORM
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
    return browser_type_launch_args | {"executable_path": browser(), "args": quiet}
