"""Paths name where a step executes; a scope is the innermost iteration around it."""

from __future__ import annotations

import pytest
from django.db import connection

from runtime.paths import scope_of, scope_sql, scopes_of, step_of, step_sql


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "scope", "scopes", "step"), [
    ("call", "", [""], "call"),
    ("hot/yes/call", "", [""], "call"),
    ("each[3]/call", "each[3]", ["", "each[3]"], "call"),
    ("a[1]/b[2]/c", "a[1]/b[2]", ["", "a[1]", "a[1]/b[2]"], "c"),
    ("a[1]/p/left/b[20]/call/on_error/tell", "a[1]/p/left/b[20]", ["", "a[1]", "a[1]/p/left/b[20]"], "tell"),
    ("a[1]/b", "a[1]", ["", "a[1]"], "b"),
    ("each[3]", "each[3]", ["", "each[3]"], "each"),
])  # fmt: skip
def test_scopes_and_steps_of_paths(path, scope, scopes, step):
    assert (scope_of(path), scopes_of(path), step_of(path)) == (scope, scopes, step)
    with connection.cursor() as cursor:
        cursor.execute(f"select {scope_sql()}, {step_sql()} from (values (%s)) as given (path)", [path])
        assert cursor.fetchone() == (scope, step)
