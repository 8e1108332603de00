"""Indexes of migrations that are built beside the work: nothing waits for them but the migration.

A migration with one of these has to be `atomic = False`, so one that was stopped halfway is run again from its beginning: what
it has built is kept, what it has left half built is taken away first.
"""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations import AddConstraint


class AddIndexBeside(AddIndexConcurrently):
    """For tables that grow with the runs."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if _missing(schema_editor, self.index.name):
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class AddUniqueBeside(AddConstraint):
    """A `UniqueConstraint` with a condition, which Postgres keeps as an index alone, for tables that grow with the runs."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if _missing(schema_editor, self.constraint.name):
            model = to_state.apps.get_model(app_label, self.model_name)
            made = str(self.constraint.create_sql(model, schema_editor))
            schema_editor.execute(made.replace("CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX CONCURRENTLY", 1))


def _missing(schema_editor: Any, name: str) -> bool:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("select indisvalid from pg_index where indexrelid = to_regclass(quote_ident(%s))", [name])
        found = cursor.fetchone()
        if found and found[0]:
            return False
        cursor.execute(f"drop index concurrently if exists {schema_editor.quote_name(name)}")
    return True
