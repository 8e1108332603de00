"""How Postgres answers what the product asks: the plan of every statement, and how many rows of which table it looks at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from builder.metrics import METRICS
from runtime import admission, alerts, asking, claims, endings, housekeeping, memory, outbox, reopening, retention, waits
from runtime.looks import WHOLE
from runtime.states import AlertKind

LARGE = {
    "run", "run_search", "step_result", "attempt", "log_line", "wait", "dispatch", "outbox", "frame", "frame_chunk", "frame_value",
    "approval", "recipient", "decision", "blob",
}  # fmt: skip
"""Tables that grow with the runs."""
FEW = 3_000


@dataclass(slots=True)
class Asked:
    """A statement; (table, how it was read, rows looked at) of each place of its plan that reads a large table."""

    sql: str
    reads: list[tuple[str, str, int]] = field(default_factory=list)

    @property
    def whole(self) -> set[str]:
        """The tables that are read from their beginning, further than it takes to find the first of many."""
        return {table for table, how, rows in self.reads if how == "Seq Scan" and rows > FEW}

    @property
    def rows(self) -> int:
        return sum(rows for *_, rows in self.reads)


@contextmanager
def explained() -> Iterator[list[Asked]]:
    """Every query of Django's connection inside the block, each with its plan; they are run twice."""
    found: list[Asked] = []

    def beside(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if not many and _only_asks(sql.lower()):
            plan = connection.connection.execute("explain (analyze, format json) " + sql, params).fetchone()[0]
            found.append(Asked(sql, list(_reads(plan))))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(beside):
        yield found


def _only_asks(sql: str) -> bool:
    writes = ("insert into", "update ", "delete from", "nextval")
    return sql.lstrip().startswith(("select", "with")) and not any(word in sql for word in writes)


def plan_of(sql: str, params: Any) -> Asked:
    """Of one statement, which may write: what it changes is put back. What a function reads, its plan does not tell; the
    transaction's own counts do."""
    with transaction.atomic(), connection.cursor() as cursor:
        before = _counted(cursor)
        cursor.execute("explain (analyze, format json) " + sql, params)
        plan = cursor.fetchone()[0]
        within = [(table, how, rows - before.get((table, how), 0)) for (table, how), rows in _counted(cursor).items()]
        transaction.set_rollback(True)
    return Asked(sql, list(_reads(plan)) or [read for read in within if read[2]])


def _counted(cursor: Any) -> dict[tuple[str, str], int]:
    cursor.execute("select relname, seq_tup_read, idx_tup_fetch from pg_stat_xact_user_tables")
    counts = {table: {"Seq Scan": whole, "Index Scan": by_key or 0} for table, whole, by_key in cursor.fetchall() if table in LARGE}
    return {(table, how): rows for table, both in counts.items() for how, rows in both.items()}


def blocks_of_a_claim(own: Any, limit: int, **more: Any) -> int:
    """Pages that a claim of so many runs looks at, by a session (of psycopg) that has its plans already. The claim is made."""
    asked = {"limit": limit, "lease": 60, "unable": [], "worker": 1, **claims.LOST_NONE, **more}
    with own.transaction(force_rollback=True):
        own.execute(claims.CLAIM, asked)
    told = own.execute("explain (analyze, buffers, format json) " + claims.CLAIM, asked).fetchone()[0]
    return _pages(told)


def pages_read(sql: str) -> int:
    """Pages that a statement of Django's connection looks at."""
    with connection.cursor() as cursor:
        cursor.execute("explain (analyze, buffers, format json) " + sql)
        return _pages(cursor.fetchone()[0])


def _pages(told: Any) -> int:
    plan = next(nodes_of(told))
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def nodes_of(told: Any) -> Iterator[dict[str, Any]]:
    """The nodes of a plan as `explain (format json)` tells it, the whole one first."""
    nodes = [(json.loads(told) if isinstance(told, str) else told)[0]["Plan"]]
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        yield node


def _reads(plan: Any) -> Iterator[tuple[str, str, int]]:
    for node in nodes_of(plan):
        if (table := node.get("Relation Name")) in LARGE and "Scan" in node["Node Type"]:
            left = sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
            yield table, node["Node Type"], round((node["Actual Rows"] + left) * max(1, node["Actual Loops"]))


def statements(run: int, wait: int, flow: int) -> dict[str, tuple[str, Any]]:
    """What workers ask all the time and when something happens to that run, which waits; and what monitors ask."""
    claim = {"limit": 50, "lease": 30, "unable": [], "worker": 1, **claims.LOST_NONE}
    seen = {"runs": [run], "referenced": ["*"], "always": []}
    return {
        "claim": (claims.CLAIM, claim),
        "claim of suspects": (claims.CLAIM, claim | {"least": 1, "most": 1}),
        "suspects": (claims.SUSPECTS, [5, []]),
        "next due": (claims.NEXT_DUE, {"unable": [], **WHOLE}),
        "leases renewed": (claims.RENEW, {"worker": 1, "lease": 30, "runs": [run]}),
        "leases by a clock that leapt": (claims.SHORTEN, {"lease": 30, "seen": False}),
        "leases taken back": (claims.TAKE_BACK, {"half": 15, "soonest": 0, "latest": 1e12, "since": 0}),
        "claims unknown": (claims.UNKNOWN, [1, []]),
        "resume: frames": (memory.FRAMES, seen),
        "resume: results": (memory.RESULTS, seen),
        "resume: attempts": (memory.ATTEMPTS, seen),
        "resume: waits": (memory.WAITS, seen),
        "wake: lock": (waits.LOCK, [run]),
        "wake: wait": (waits.RESOLVE, ["{}", wait]),
        "wake: run": (waits.WAKE, {"run": run}),
        "wake: signals": (waits.KEPT_FOR_OPEN, [run]),
        "mails due": (outbox.CLAIM, {"limit": 20, "lease": 300, "worker": 1}),
        "mails left behind": (outbox.LEFT_BEHIND, {"lease": 300, "silent": 30}),
        "questions due": (asking.DUE, [20]),
        "flows with limits": (admission.FLOWS, []),
        "runs too old": (admission.END_OLD, admission.END_OLD_WITH),
        "ends": (endings.TAKE, [0]),
        "children of an end": (reopening.CHILDREN_ENDED, [run]),
        "versions that nobody can run": (housekeeping.STUCK_VERSIONS, None),
        "versions that somebody can run": (housekeeping.ABLE_AGAIN, None),
        "retention": (retention.OLD, {"usual": 300, "limit": 50}),
        **{f"metric {one.name}": (one.sql, None) for one in METRICS},
        **{f"alert {kind}": (alerts.RULES[kind].sql, {"team": None, "flow": None}) for kind in AlertKind},
        **{f"alert {kind} of a flow": (alerts.RULES[kind].sql, {"team": None, "flow": flow}) for kind in AlertKind},
    }  # fmt: skip
