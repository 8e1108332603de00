"""Business time that jumps: `holdfast_now()` replaced by one with an offset, for every process at once."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.db import OperationalError, connection, transaction

from tests.chaos.clusters import LEASE_SECONDS
from tests.chaos.steps import TIMEOUT_SECONDS

FUNCTION = """create or replace function holdfast_now() returns timestamptz language sql volatile parallel safe
    as $$ select clock_timestamp() + interval '{} microseconds' $$"""
OFFSET = "select extract(epoch from holdfast_now() - clock_timestamp())::float8"
NEXT_TIMER = """
select extract(epoch from min(due_at) - holdfast_now())::float8 from wait where state = 'open' and kind = 'timer'
"""
LONGEST_CHECK_SECONDS = TIMEOUT_SECONDS + LEASE_SECONDS + 1
# A check asks what became of a call once the call must have ended: after its time-out and a lease. A leap in between
# would have it ask while the call is still on its way, which would be the leap's fault. So it takes these waits along.
# A worker that reckoned with the clock of before a leap and the rows of after it waits for as long as the leap, too.
LEAP = """
with asking as materialized (
    select distinct d.run_id from dispatch d join wait w on w.run_id = d.run_id
    where w.state = 'open' and w.kind = 'retry' and w.data->>'check' = 'true'
), held as materialized (
    select run_id from dispatch where run_id in (select run_id from asking) order by run_id for no key update
), moved as (
    update wait w set due_at = least(w.due_at, holdfast_now() + %(longest)s) + %(by)s from held
    where w.run_id = held.run_id and w.state = 'open' and w.kind = 'retry' and w.data->>'check' = 'true'
    returning w.id, w.due_at
), calls as (
    update attempt set started_at = started_at + %(by)s where outcome is null and request->'json'->>'how' = 'check'
)
update dispatch d set due_at = (
    select min(coalesce(moved.due_at, w.due_at)) from wait w left join moved on moved.id = w.id
    where w.run_id = d.run_id and w.state = 'open')
from held where d.run_id = held.run_id and d.state = 'waiting'
"""
LOOKS = 20


class Clock:
    def jump(self, kind: str, seconds: float) -> bool:
        """`timer`: to the next timer. `ahead`, `back`: by so many seconds. Returns whether it could be done."""
        for _ in range(LOOKS):
            try:
                self._jump(kind, seconds)
                return True
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) not in ("55P03", "40P01"):  # no lock, or a deadlock
                    raise
            time.sleep(0.05)
        return False

    @transaction.atomic
    def _jump(self, kind: str, seconds: float) -> None:
        with connection.cursor() as cursor:
            cursor.execute("set local lock_timeout = '50ms'")  # a worker that is stopped may hold a lock for long
            cursor.execute("lock table attempt in share mode")  # no call begins or ends meanwhile
            by = {"ahead": seconds, "back": -seconds}.get(kind)
            if by is None:
                by = max(0.0, _one(cursor, NEXT_TIMER) or 0.0) + 0.001
            cursor.execute(LEAP, {"by": timedelta(seconds=by), "longest": timedelta(seconds=LONGEST_CHECK_SECONDS)})
            offset = timedelta(seconds=_one(cursor, OFFSET) + by)
            cursor.execute(FUNCTION.format(offset // timedelta(microseconds=1)))


def _one(cursor: Any, query: str) -> Any:
    cursor.execute(query)
    return cursor.fetchone()[0]
