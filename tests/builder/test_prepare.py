"""`manage.py prepare` by several processes at one instant, on a database and a folder in which there is nothing yet."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from builder.examples import MADE_AT_START
from builder.management.commands.prepare import ONLY_ONE
from tests.runtime.engine import eventually

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 300
COUNTS = "select (select count(*) from auth_user), (select count(*) from team), (select count(*) from membership), (select count(*) from workflow)"


@pytest.fixture
def empty_database(postgres) -> Iterator[str]:
    name = "holdfast_first_start"
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as admin:
        admin.execute(f"create database {name} owner holdfast")
        try:
            yield postgres.url(name)
        finally:
            admin.execute(f"drop database {name} with (force)")


def test_two_first_starts_at_one_instant_make_everything_once(empty_database):
    """Also keys: each has to find those of the one that was first."""
    with tempfile.TemporaryDirectory() as folder, psycopg.connect(empty_database, autocommit=True) as beside:
        beside.execute("select pg_advisory_lock(%s)", [ONLY_ONE])
        env = {"PATH": os.environ["PATH"], "HOLDFAST_DATA": folder, "DATABASE_URL": empty_database}
        command = [sys.executable, "manage.py", "prepare"]
        both = [subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)]
        waiting = "select count(*) from pg_stat_activity where datname = current_database() and query like '%advisory_lock%'"
        eventually(lambda: beside.execute(waiting).fetchone()[0] == 3, PATIENCE_SECONDS)  # this one and both
        beside.execute("select pg_advisory_unlock(%s)", [ONLY_ONE])
        told = [one.communicate(timeout=PATIENCE_SECONDS)[0] for one in both]
        assert [one.returncode for one in both] == [0, 0], told
        assert sum("shown only now" in one for one in told) == 1 and sum("migrations applied" in one for one in told) == 1
        assert beside.execute(COUNTS).fetchone() == (1, 1, 1, len(MADE_AT_START))
        assert {path.name for path in Path(folder).iterdir() if path.is_file()} == {"secret_key", "credential_keys"}


WRITE = """
import os, sys
from pathlib import Path
from builder import environment
os.getpid = lambda: 1  # as in a container of its own
def opened(*given):
    input("Opened\\n")
    return fdopen(*given)
fdopen, os.fdopen = os.fdopen, opened
print(environment.kept_secret("NO_SUCH_NAME", Path(sys.argv[1]) / "key", lambda: sys.argv[2]))
"""


def test_starts_in_two_containers_of_one_number_find_one_key():
    """While the one is about to write it, the other does so."""
    with tempfile.TemporaryDirectory() as folder:
        starts = [
            subprocess.Popen([sys.executable, "-c", WRITE, folder, key], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            for key in ("first", "second")
        ]
        for start in starts:
            assert start.stdout.readline() == "Opened\n"
        assert [start.communicate("go\n")[0].strip() for start in reversed(starts)] == ["second", "second"]
        assert os.listdir(folder) == ["key"] and Path(folder, "key").stat().st_mode & 0o077 == 0
