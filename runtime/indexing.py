"""Indexes of migrations that are built beside the work: nothing waits for them but the migration."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently


class AddIndexBeside(AddIndexConcurrently):
    """For tables that grow with the runs. The migration has to be `atomic = False`, so one that was stopped halfway is run
    again from its beginning: what it has built is kept, what it has left half built is taken away first."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "select indisvalid from pg_index where indexrelid = to_regclass(quote_ident(%s))", [self.index.name]
            )
            found = cursor.fetchone()
            if found and found[0]:
                return
            cursor.execute(f"drop index concurrently if exists {schema_editor.quote_name(self.index.name)}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)
