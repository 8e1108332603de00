"""Two clocks, both the database's. `holdfast_now()` is business time: due dates, what people see. `clock_timestamp()` is
for leases and beats. A worker's own clock is never asked for the time of day; it only measures how long ago it last asked.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from django.db import connection
from django.db.models import DateTimeField, Func

CLOCK_SQL = "select holdfast_now()"


class BusinessNow(Func):
    """`holdfast_now()` in ORM expressions and column defaults."""

    template = "holdfast_now()"
    output_field = DateTimeField()


def business_now() -> datetime:
    """Business time, asked from the database (one round trip)."""
    with connection.cursor() as cursor:
        cursor.execute(CLOCK_SQL)
        return cursor.fetchone()[0]


class WorkerClock:
    """Business time inside a worker: the database's answer plus the monotonic time since. Renewed with every beat."""

    def __init__(self) -> None:
        self.set(datetime.now(UTC))

    def set(self, database_now: datetime) -> None:
        self._ahead = database_now.timestamp() - time.monotonic()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._ahead + time.monotonic(), UTC)
