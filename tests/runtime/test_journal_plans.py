"""What a worker writes is found by key, whatever the statistics say: those of an empty table stay until somebody gathers new ones,
and by them every way costs the same. So each index is tried alone: one that could be gone through whole would be, some day."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from django.db import connection, transaction

from runtime.journal_sql import ROWS, SETTLE_OWN
from tests.plans import LARGE, nodes_of

pytestmark = pytest.mark.django_db(transaction=True)

# A row that is there is looked up by the table itself, which needs the unique index.
CONFLICT = re.compile(r"\bon conflict\b.*?\bdo (nothing|update set .*?)(?=\s+returning\b|\s*\n\)|$)", re.S)
STATEMENTS = {
    "settle, own": SETTLE_OWN.sql,
    **{kind: CONFLICT.sub("", statement.sql) for kind, statement in ROWS.items()},
    **{f"{kind}, again": statement.again for kind, statement in ROWS.items() if statement.returns},
}
TABLES = sorted(LARGE | {"signal"})
KEY = re.compile(r"\b(run_id|id|parent_id|idempotency_key) = ")
INDEXES = """
select x.indrelid::regclass::text, x.indexrelid::regclass::text, k.conname
from pg_index x left join pg_constraint k on k.conindid = x.indexrelid and k.conrelid = x.indrelid
where x.indrelid = any(%s::regclass[])
"""


@pytest.fixture
def planner():
    """It knows no values, takes an index wherever it can, and looks a row up rather than join whole tables."""
    with connection.cursor() as cursor:
        cursor.execute("set plan_cache_mode = force_generic_plan")
        for setting in ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin"):
            cursor.execute(f"set {setting} = off")
    yield
    connection.close()


def test_no_statement_could_go_through_a_whole_index(planner):
    found = {(table, index): whole(table, index, beside) for table, beside in indexes().items() for index in beside}
    assert {place: names for place, names in found.items() if names} == {}


def test_every_statement_finds_its_rows_by_an_index(planner):
    assert {(name, table) for name, sql in STATEMENTS.items() for table, index, _ in scans(sql) if table in TABLES and not index} == set()


def indexes() -> dict[str, dict[str, str | None]]:
    """Of each table: its indexes, each with the constraint that it stands for."""
    found: dict[str, dict[str, str | None]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(INDEXES, [TABLES])
        for table, index, constraint in cursor.fetchall():
            found[table][index] = constraint
    return found


def whole(table: str, index: str, beside: dict[str, str | None]) -> list[str]:
    """The statements that go through the index without a key when the table has no other."""
    with transaction.atomic(), connection.cursor() as cursor:
        for other, constraint in beside.items():
            if other != index:
                cursor.execute(f"alter table {table} drop constraint {constraint} cascade" if constraint else f"drop index {other}")
        gone = [
            name for name, sql in STATEMENTS.items() if re.search(rf"\b{table}\b", sql)
            if any(by == index and not KEY.search(condition or "") for _, by, condition in scans(sql))
        ]  # fmt: skip
        transaction.set_rollback(True)
    return gone


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
