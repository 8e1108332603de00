"""NOTIFY as a hint that something became due. It is sent after the commit and never carries a promise: workers also poll.

Payload: empty for "a run became due", or the id of a run whose owner should look at it.
"""

from __future__ import annotations

from django.db import connection, transaction

CHANNEL = "holdfast"


def ring_after_commit(run_id: int | None = None) -> None:
    """Ring once this transaction is durable; at once when there is none. A bell that fails is logged and no more: the
    caller's work is committed, and an error would have it believe otherwise."""
    transaction.on_commit(lambda: _ring(run_id), robust=True)


def _ring(run_id: int | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select pg_notify(%s, %s)", [CHANNEL, "" if run_id is None else str(run_id)])
