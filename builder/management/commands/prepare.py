"""`manage.py prepare`: all that a database and a folder need before they are served from. Safe to run again.

`manage.py up` runs it at every start; a deployment runs it once before its processes are replaced. Of several at one instant, on
however many hosts, one works and the others wait for it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.contrib.staticfiles.finders import get_finders
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql

from builder import examples
from builder.progress import stage
from builder.teams import ensure_default_team

OLDEST_POSTGRES = 150000
# What web and workers need of the database: rows, and no tables of their own. The audit trail they can only read and lengthen.
GRANTS = """
grant usage on schema public to {role};
grant select, insert, update, delete on all tables in schema public to {role};
grant usage, select on all sequences in schema public to {role};
revoke update, delete on audit from {role};
revoke insert, update, delete on django_migrations from {role};
"""
ONLY_ONE = 0x486F6C64
"""One deployment at a time; the number only has to be ours."""


class Command(BaseCommand):
    help = "Brings the tables up to date, makes the administrator, loads the example flows, collects static files."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--role", default="", help="the database role of the web and worker processes, which gets no more than it needs")
        parser.add_argument("--no-examples", action="store_true", help="do not load the example flows")

    def handle(self, *, no_examples: bool, role: str, **options: Any) -> None:
        try:
            connection.ensure_connection()
        except OperationalError as error:
            sys.exit(f"The database cannot be reached: {one_line(error)}")
        if connection.pg_version < OLDEST_POSTGRES:
            sys.exit(f"Holdfast needs Postgres 15 or newer; the database is {connection.pg_version // 10000}.")
        with only_one():
            with stage("Tables") as told:
                told(migrate())
            if role:
                with stage("Database role") as told:
                    told(grant(role))
            with stage("Administrator") as told:
                told(make_administrator())
            if not no_examples:
                with stage("Example flows") as told:
                    told(examples.load())
            with stage("Static files") as told:
                told(collect_static_files())


@contextmanager
def only_one() -> Iterator[None]:
    """Asked for again and again: a statement that waits for the lock would be one that `create index concurrently` of the other
    waits for, and Postgres would end one of the two as a deadlock."""
    with connection.cursor() as cursor:
        while not _taken(cursor):
            time.sleep(0.2)
        try:
            yield
        finally:
            cursor.execute("select pg_advisory_unlock(%s)", [ONLY_ONE])


def _taken(cursor: Any) -> bool:
    cursor.execute("select pg_try_advisory_lock(%s)", [ONLY_ONE])
    return cursor.fetchone()[0]


def migrate() -> str:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        call_command("migrate", interactive=False, verbosity=0)
    return f"{len(plan)} migrations applied" if plan else "up to date"


def grant(role: str) -> str:
    """Again at each deploy: tables come along with migrations."""
    with connection.cursor() as cursor:
        cursor.execute("select exists (select from pg_roles where rolname = %s)", [role])
        if not cursor.fetchone()[0]:
            sys.exit(f"The database has no role “{role}”. Make it first: create role {role} login password '…'.")
        cursor.execute(sql.SQL(GRANTS).format(role=sql.Identifier(role)).as_string(cursor.connection))
    return f"{role}, which changes no table and nothing of the audit trail"


def make_administrator() -> str:
    """Only when there is none: a password that was changed is not put back."""
    User = get_user_model()
    if found := User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first():
        return found.get_username()
    name = os.environ.get("HOLDFAST_ADMIN", "").strip() or "admin"
    email, given = os.environ.get("HOLDFAST_ADMIN_EMAIL", ""), os.environ.get("HOLDFAST_ADMIN_PASSWORD", "")
    try:
        validate_password(given, User(username=name, email=email)) if given else None
    except ValidationError as wrong:
        sys.exit(f"HOLDFAST_ADMIN_PASSWORD cannot be used. {' '.join(wrong.messages)}")
    password = given or secrets.token_urlsafe(12)
    made = User.objects.create_superuser(username=name, email=email, password=password)
    ensure_default_team(made)
    return f"{name}, with the password you set" if given else f"{name}, password {password} (shown only now)"


def collect_static_files() -> str:
    """Skipped while the same files as last time are installed: hashing and compressing them takes seconds."""
    stamp = Path(settings.STATIC_ROOT) / ".collected-from"
    fingerprint = static_fingerprint()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return "up to date"
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(fingerprint)
    return "collected"


def static_fingerprint() -> str:
    seen = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            found = os.stat(storage.path(name))
            seen.update(f"{storage.path(name)}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return seen.hexdigest()


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
