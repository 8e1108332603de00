"""Runs that ended longer ago than their flow keeps them go, with all rows of theirs, in small batches. Audit entries stay.

A batch is one transaction. It locks its runs first and looks at them again: one that was requeued meanwhile is finished no
more, and one that somebody is just acting upon is passed over. Whoever comes while it goes waits for the end of the batch,
and finds no run. One batch at a time in the whole house, so that batches never wait for each other.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import psycopg
from django.conf import settings

from .signals import KEPT_DAYS

log = logging.getLogger(__name__)

BATCH_RUNS = 50
BATCH_ROWS = 5_000
"""A batch ends before it holds more steps, attempts and log lines than that; a run is never divided."""

ONE_AT_A_TIME = 4_846_150_001  # the number of an advisory lock, held until the end of a transaction

# The run that started it goes on, or waits for it again after a requeue.
NEEDED = """
select from run p where p.id = run.parent_id and (p.ended_at is null or p.state = 'failed' and exists (
    select from wait w where w.run_id = p.id and w.kind = 'child' and w.state = 'suspended' and w.data ->> 'run' = run.id::text))
"""
# Finished longer ago than their flow keeps runs, the oldest of each flow first; not while a mail of theirs is still to go,
# something is to follow their end, or the run that started them needs them.
OLD = f"""
select old.id from workflow w
cross join lateral (select coalesce(w.retention_days, %(usual)s) as days) kept
cross join lateral (
    select run.id from run
    where run.workflow_id = w.id and run.ended_at < (select holdfast_now()) - make_interval(days => kept.days)
      and not exists (select from outbox o where o.run_id = run.id and o.state in ('queued', 'sending'))
      and not exists (select from run_end e where e.run_id = run.id)
      and not exists ({NEEDED})
    order by run.ended_at limit %(limit)s
) old
where kept.days > 0 limit %(limit)s
"""
# How much a run left behind, counted no further than matters.
SIZES = """
select old.run_id,
    (select count(*) from (select from step_result r where r.run_id = old.run_id limit %(most)s) r)
    + (select count(*) from (select from attempt a where a.run_id = old.run_id limit %(most)s) a)
    + (select count(*) from (select from log_line l where l.run_id = old.run_id limit %(most)s) l)
from unnest(%(runs)s::bigint[]) as old(run_id)
"""
# Those that are as old as that still, locked against a requeue, a signal and a rerun.
LOCK = f"""
select run.id from run join workflow w on w.id = run.workflow_id
where run.id = any(%(runs)s) and coalesce(w.retention_days, %(usual)s) > 0
  and run.ended_at < (select holdfast_now()) - make_interval(days => coalesce(w.retention_days, %(usual)s))
  and not exists (select from dispatch d where d.run_id = run.id)
  and not exists (select from run_end e where e.run_id = run.id)
  and not exists ({NEEDED})
order by run.id for update of run skip locked
"""
# Their mails, locked against being sent again.
MAILS = "select run_id, state from outbox where run_id = any(%s) order by id for update"
# Children first. `run` comes last, and what began as a rerun of one of them forgets whose.
DELETE = (
    """delete from decision using approval
       where decision.approval_id = approval.wait_id and approval.run_id = any(%(runs)s)""",
    """delete from recipient using approval
       where recipient.approval_id = approval.wait_id and approval.run_id = any(%(runs)s)""",
    "delete from approval where run_id = any(%(runs)s)",
    """delete from named_signal using wait
       where named_signal.wait_id = wait.id and wait.run_id = any(%(runs)s)""",
    "delete from signal where run_id = any(%(runs)s)",
    "delete from wait where run_id = any(%(runs)s)",
    "delete from outbox where run_id = any(%(runs)s)",
    "delete from log_line where run_id = any(%(runs)s)",
    "delete from run_search where run_id = any(%(runs)s)",
    "delete from frame_value where run_id = any(%(runs)s)",
    "delete from frame_chunk where run_id = any(%(runs)s)",
    "delete from frame where run_id = any(%(runs)s)",
    "delete from attempt where run_id = any(%(runs)s)",
    "delete from blob where run_id = any(%(runs)s)",
    "delete from step_file where run_id = any(%(runs)s)",
    "delete from step_result where run_id = any(%(runs)s)",
    "update run set rerun_of_id = null where rerun_of_id = any(%(runs)s)",
    "delete from run where id = any(%(runs)s)",
)
# Signals by name that nobody waits for any more. The oldest are looked at, so that it costs the same however many there are.
FORGET_SIGNALS = """
delete from named_signal where id in (
    select id from named_signal where id in (select id from named_signal order by id limit %(most)s)
      and received_at < (select holdfast_now()) - make_interval(days => %(days)s)
    for update skip locked)
"""
# Mails that no run has caused, of alerts and of accounts: kept as long as runs usually are.
FORGET_MAILS = """
delete from outbox where run_id is null and state in ('sent', 'failed')
  and created_at < (select holdfast_now()) - make_interval(days => %(usual)s)
"""
LEFT = f"select count(*) from ({OLD}) old"


@dataclass(frozen=True, slots=True)
class Batch:
    """`found` runs were old enough, `deleted` of them are gone; the others were in somebody's hands."""

    found: int
    deleted: int


async def delete_batch(connection: psycopg.AsyncConnection, *, wait: bool = False) -> Batch:
    """Delete the next batch, over an autocommit connection. While another is at it: wait for that one, or do nothing."""
    usual = settings.HOLDFAST_RETENTION_DAYS
    async with connection.transaction():
        if not await _my_turn(connection, wait):
            return Batch(0, 0)
        found = [pk for (pk,) in await _rows(connection, OLD, {"usual": usual, "limit": BATCH_RUNS})]
        if not found:
            return Batch(0, 0)
        sizes = await _rows(connection, SIZES, {"runs": found, "most": BATCH_ROWS})
        locked = await _rows(connection, LOCK, {"runs": _together(sizes), "usual": usual})
        mails = await _rows(connection, MAILS, [[pk for (pk,) in locked]])
        going = {run_id for run_id, state in mails if state in ("queued", "sending")}
        runs = [pk for (pk,) in locked if pk not in going]
        for statement in DELETE if runs else ():
            await connection.execute(statement, {"runs": runs})
    if runs:
        log.info("%s runs that ended long ago were deleted", len(runs))
    return Batch(len(found), len(runs))


async def forget_signals(connection: psycopg.AsyncConnection) -> int:
    """Forget signals by name and key that are older than they are kept. Returns how many."""
    forgotten = 0
    while True:
        cursor = await connection.execute(FORGET_SIGNALS, {"most": BATCH_ROWS, "days": KEPT_DAYS})
        forgotten += cursor.rowcount
        if cursor.rowcount < BATCH_ROWS:
            return forgotten


async def forget_mails(connection: psycopg.AsyncConnection) -> int:
    """Forget mails that belong to no run and are older than runs are kept. Returns how many."""
    if not (usual := settings.HOLDFAST_RETENTION_DAYS):
        return 0
    return (await connection.execute(FORGET_MAILS, {"usual": usual})).rowcount


async def left(connection: psycopg.AsyncConnection) -> int:
    """How many runs are old enough to go, now."""
    parameters = {"usual": settings.HOLDFAST_RETENTION_DAYS, "limit": 10**9}
    return (await _rows(connection, LEFT, parameters))[0][0]


def _together(sizes: list[tuple[int, int]]) -> list[int]:
    """The first runs whose rows fit into one batch; one run in any case."""
    chosen, rows = [], 0
    for run_id, size in sizes:
        rows += size
        if chosen and rows > BATCH_ROWS:
            break
        chosen.append(run_id)
    return chosen


async def _my_turn(connection: psycopg.AsyncConnection, wait: bool) -> bool:
    if wait:
        await connection.execute("select pg_advisory_xact_lock(%s)", [ONE_AT_A_TIME])
        return True
    return (await _rows(connection, "select pg_try_advisory_xact_lock(%s)", [ONE_AT_A_TIME]))[0][0]


async def _rows(connection: psycopg.AsyncConnection, sql: str, parameters) -> list[tuple]:
    return await (await connection.execute(sql, parameters)).fetchall()
