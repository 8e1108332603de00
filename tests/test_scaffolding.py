"""The tests' own tools: a clock that moves for everybody and is put back, on a database of the product's own role; and
the tools of whoever maintains the project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.db import connection

ROOT = Path(__file__).resolve().parents[1]
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


def test_the_bill_of_materials_names_every_package_that_is_installed_with_its_hashes():
    printed = subprocess.run(["make", "-s", "sbom", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True, check=True)
    document = json.loads(printed.stdout)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==([^ ]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert [(each["name"], each["version"]) for each in document["components"]] == pinned
    assert all(each["hashes"] and each["purl"].startswith("pkg:pypi/") for each in document["components"])
