"""What a worker writes is found by key, whatever the statistics say: those of an empty table stay until somebody gathers new ones."""

from __future__ import annotations

import re

import pytest
from django.db import connection

from runtime.journal_sql import ROWS, SETTLE_OWN
from tests.plans import LARGE, nodes_of

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENTS = {
    "settle, own": SETTLE_OWN.sql,
    **{kind: statement.sql for kind, statement in ROWS.items()},
    **{f"{kind}, again": statement.again for kind, statement in ROWS.items() if statement.returns},
}
KEY = re.compile(r"\b(run_id|id|parent_id|idempotency_key) = ")


def test_no_statement_goes_through_a_table_or_a_whole_index():
    """By plans that are kept from when the tables were empty, in transactions such as the journal's guard begins."""
    with connection.cursor() as cursor:
        for table in sorted(LARGE):
            cursor.execute(f"reindex table {table}")
        cursor.execute("vacuum analyze")
        cursor.execute("set plan_cache_mode = force_generic_plan")
        for setting in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"):
            cursor.execute(f"set {setting} = off")
    try:
        whole = {
            (name, table, index) for name, sql in STATEMENTS.items() for table, index, condition in scans(sql)
            if table in LARGE | {"signal"} and not KEY.search(condition or "")
        }  # fmt: skip
    finally:
        connection.close()
    assert whole == set()


def scans(sql: str) -> list[tuple[str, str | None, str | None]]:
    """(table, index, the condition by which the index is entered) of each scan of a table, by a plan that knows no values."""
    parts = sql.split("%s")
    numbered = "".join(part + f"${n}" for n, part in enumerate(parts[:-1], 1)) + parts[-1]
    with connection.cursor() as cursor:
        cursor.execute(f"prepare looked_at as {numbered}")
        cursor.execute(f"explain (format json) execute looked_at({', '.join(['null'] * (len(parts) - 1))})")
        told = cursor.fetchone()[0]
        cursor.execute("deallocate looked_at")
    places = [node for node in nodes_of(told) if "Relation Name" in node and "Scan" in node["Node Type"]]
    return [(node["Relation Name"], node.get("Index Name"), node.get("Index Cond")) for node in places]
