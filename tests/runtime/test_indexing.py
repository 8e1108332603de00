"""Migrations index what grows with the runs beside the work, and one that was stopped halfway can be run again."""

from __future__ import annotations

import threading

import psycopg
import pytest
from django.apps import apps
from django.db import OperationalError, connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from runtime.database import conninfo
from runtime.indexing import AddIndexBeside, AddUniqueBeside
from runtime.models import Run
from tests.builder import factories
from tests.plans import LARGE
from tests.runtime.engine import eventually

pytestmark = pytest.mark.django_db(transaction=True)

SINCE = "0030"
"""Those before were made while nobody had a large database."""
HERE = models.Q(depth__gte=0)
ADDED = {
    "index": AddIndexBeside("run", models.Index(fields=["depth"], name="run_depth")),
    "unique": AddUniqueBeside("run", models.UniqueConstraint(fields=["title", "id"], condition=HERE, name="run_depth")),
}
KNOWN = "select indisvalid from pg_index where indexrelid = to_regclass('run_depth')"


def test_migrations_lock_no_large_table_while_they_index_it():
    found, seen = MigrationLoader(connection).disk_migrations, 0
    for (app, name), migration in found.items():
        if app != "runtime" or name < SINCE:
            continue
        for one in migration.operations:
            if indexes(one) and apps.get_model(app, one.model_name)._meta.db_table in LARGE:
                beside = isinstance(one, (AddIndexBeside, AddUniqueBeside)) and not migration.atomic
                assert beside, f"{name} locks {one.model_name} while it indexes it"
                seen += 1
    assert seen


def indexes(one: migrations.operations.base.Operation) -> bool:
    unique = isinstance(one, migrations.AddConstraint) and isinstance(one.constraint, models.UniqueConstraint)
    return unique or isinstance(one, migrations.AddIndex)


@pytest.fixture(params=ADDED)
def add(request):
    """Adds an index as a migration does. It is taken away again."""
    yield lambda: carry_out(ADDED[request.param])
    with connection.cursor() as cursor:
        cursor.execute("drop index if exists run_depth")


def carry_out(added: migrations.operations.base.Operation) -> None:
    before = ProjectState.from_apps(apps)
    after = before.clone()
    added.state_forwards("runtime", after)
    with connection.schema_editor(atomic=False) as editor:
        added.database_forwards("runtime", editor, before, after)


def known() -> bool | None:
    """Whether the index is whole; None where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(KNOWN)
        row = cursor.fetchone()
    return row and row[0]


def test_runs_begin_while_an_index_waits_for_others(add):
    version = factories.version()
    run = factories.run(version)
    with psycopg.connect(conninfo()) as other:
        other.execute("update run set title = 'held' where id = %s", [run.pk])  # what an index has to wait for
        building = threading.Thread(target=lambda: (add(), connection.close()))
        building.start()
        eventually(lambda: known() is False, 60, "the index is being built")
        with connection.cursor() as cursor:
            cursor.execute("set lock_timeout = '20s'")
        factories.run(version)
        with connection.cursor() as cursor:
            cursor.execute("reset lock_timeout")
        assert known() is False and Run.objects.count() == 2
    building.join(60)
    assert known() is True


def test_what_a_stopped_migration_left_half_built_is_built_anew(add):
    run = factories.run(factories.version())
    with psycopg.connect(conninfo()) as other:
        other.execute("update run set title = 'held' where id = %s", [run.pk])
        with connection.cursor() as cursor:
            cursor.execute("set statement_timeout = '500ms'")
        with pytest.raises(OperationalError):
            add()
        with connection.cursor() as cursor:
            cursor.execute("reset statement_timeout")
        assert known() is False
    add()
    assert known() is True
    add()
    assert known() is True, "what is whole stays"
