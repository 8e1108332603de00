"""A second database role for the web and worker processes: it does all that they do, and cannot touch the audit trail."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from psycopg import errors

from builder.management.commands.prepare import grant
from runtime.audit import record
from runtime.models import AuditEntry
from tests.builder import factories
from tests.runtime.test_cluster import cluster  # noqa: F401 - a fixture

ROLE = "holdfast_app"
FORBIDDEN = (
    "update audit set action = 'none'", "delete from audit", "truncate audit", "drop trigger audit_append_only on audit",
    "alter table run add column mine text", "create table mine (id int)", "delete from django_migrations", "drop table run",
)  # fmt: skip


@pytest.fixture
def role(transactional_db, postgres) -> Iterator[str]:
    """The test database's address for that role."""
    name = connection.settings_dict["NAME"]
    with psycopg.connect(postgres.url(name, "postgres"), autocommit=True) as admin:
        admin.execute(f"create role {ROLE} login")
        try:
            grant(ROLE)
            yield postgres.url(name, ROLE)
        finally:
            admin.execute(f"drop owned by {ROLE}")
            admin.execute(f"drop role {ROLE}")


def test_it_can_do_no_more_than_its_work(role):
    record("publish", "workflow:1", detail={})
    with psycopg.connect(role, autocommit=True) as theirs:
        for statement in FORBIDDEN:
            with pytest.raises(errors.InsufficientPrivilege):
                theirs.execute(statement)
        assert theirs.execute("select count(*) from audit").fetchone() == (1,)


def test_workers_and_pages_do_with_it(engine, role, cluster, monkeypatch):  # noqa: F811
    """Publishing, a run with a wait, signing in, an approval by its link."""
    person = factories.user("operator", name="dana")
    ask = {"id": "ok", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "Go on?"}}
    cluster(DATABASE_URL=role)
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "USER", ROLE)
    try:
        run = engine.start(engine.publish([{"id": "first", "type": "probe"}, ask, {"id": "last", "type": "probe"}]))
        engine.wait(run, "ok", "approval")
        client = Client()
        client.post(reverse("login"), {"username": "dana", "password": "pw"})
        wait = engine.wait(run, "ok", "approval")
        client.post(reverse("approval", args=[wait.pk]), {"answer": "approve", "comment": "Go"})
        engine.ends(run)
        assert AuditEntry.objects.filter(action="approve", actor=person).exists()
        with connection.cursor() as cursor:
            cursor.execute("select current_user")
            assert cursor.fetchone() == (ROLE,)
    finally:
        connection.close()
        monkeypatch.undo()
