"""What `/healthz` looks at. Every figure comes from the database in one round trip each; nothing of it is secret."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from runtime.slots import DUE

FRESH = 15
"""Seconds after which a worker without a beat counts as dead."""

WORKERS = """
select count(*), coalesce(sum(slots), 0), coalesce(sum(in_flight), 0),
       extract(epoch from clock_timestamp() - max(beat_at))::float8
from worker where ended_at is null and not stopping and beat_at > clock_timestamp() - make_interval(secs => %s)
"""
# Due and claimed by nobody: how long the longest has been waiting for a worker, in seconds.
OLDEST_DUE = f"""
select count(*), extract(epoch from holdfast_now() - min(due_at))::float8
from dispatch where {DUE}
"""

_all_applied = False


def database() -> dict[str, Any]:
    """Whether the database answers."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
    except DatabaseError:
        return {"ok": False, "message": "The database does not answer."}
    return {"ok": True}


def migrations() -> dict[str, Any]:
    """Whether this code's migrations are all applied. Once they are, that stays so for the life of the process."""
    global _all_applied
    if not _all_applied:
        executor = MigrationExecutor(connection)
        missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        if missing:
            return {"ok": False, "missing": missing, "message": "Run manage.py prepare."}
        _all_applied = True
    return {"ok": True, "missing": 0}


def workers() -> dict[str, Any]:
    """Whether at least one worker process is alive."""
    with connection.cursor() as cursor:
        cursor.execute(WORKERS, [FRESH])
        alive, slots, in_flight, beat_age = cursor.fetchone()
    found = {
        "ok": alive > 0,
        "alive": alive,
        "slots": slots,
        "in_flight": in_flight,
        "last_beat_seconds": _rounded(beat_age),
    }
    return found if alive else {**found, "message": "No worker is alive. Start manage.py qcluster."}


def due_runs() -> dict[str, Any]:
    """How many runs wait for a worker, and how long the oldest has. Load is no illness: this is never bad."""
    with connection.cursor() as cursor:
        cursor.execute(OLDEST_DUE)
        count, age = cursor.fetchone()
    return {"ok": True, "waiting": count, "oldest_seconds": _rounded(age) or 0}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(max(0.0, seconds), 1)
