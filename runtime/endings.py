"""What follows the end of a run outside of it: the run that started it goes on, flows that wait for such an end start.

The end itself leaves a row (`run_end`), in the commit that ends the run. Whichever worker comes first takes the row and
does what follows in one transaction, so it happens once, whatever dies. One end at a time: a transaction holds the lock
of one waiting run at most, so none waits for another crosswise.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import psycopg
from psycopg.rows import dict_row

from .doorbell import CHANNEL
from .starts import insert_one
from .states import UNFINISHED
from .waits import LOCK, RESOLVE, WAKE

log = logging.getLogger(__name__)

BATCH = 50
LONGEST_CHAIN = 8
"""Flows that start each other by their ends stop here: it would go on for ever."""

# The oldest end that nobody is busy with, after one that could not be followed.
TAKE = """
delete from run_end where id = (select id from run_end where id > %s order by id limit 1 for update skip locked)
returning id, run_id, wait_id, failure_flow
"""
ENDED = """
select run.id, run.workflow_id, run.state, run.title, run.output::text as output, run.error, run.test, run.parent_id, run.cost,
       run.created_at, run.ended_at, run.depth, run.trigger_key, w.name as flow, w.team_id, v.number as version,
       v.created_at as made_at
from run join workflow w on w.id = run.workflow_id join version v on v.id = run.version_id where run.id = %s
"""
# The place at which the parent waits for this run.
PARENTS_WAIT = """
select id from wait where run_id = %s and kind = 'child' and state = 'open' and data ->> 'run' = %s::text
"""
# Flows of the team that such an end starts: live, not paused, not the one that ended.
STARTED_BY_END = """
select t.key, w.id as workflow_id, w.live_version_id as version_id from trigger t join workflow w on w.id = t.workflow_id
join version v on v.id = w.live_version_id
where t.type = 'ended' and t.enabled and w.team_id = %(team)s and w.deleted_at is null and not w.paused
  and w.live_version_id is not null and w.id <> %(flow)s
  and (coalesce(t.config ->> 'flow', '') = '' or holdfast_flow(w.team_id, t.config ->> 'flow', v.created_at) = %(flow)s)
  and coalesce(t.config ->> 'when', 'failed') in ('any', %(state)s)
order by t.id
"""
NAMED_FLOW = """
select 'failure' as key, w.id as workflow_id, w.live_version_id as version_id from workflow w
where w.id = holdfast_flow(%(team)s, %(named)s, %(made_at)s) and not w.paused and w.live_version_id is not null
  and w.id <> %(flow)s
"""
CHILD_OF_WAIT = "select (data ->> 'run')::bigint from wait where id = %s and kind = 'child'"
# A run whose parent does not wait for it any more ends too.
CANCEL = """
with closed as (delete from dispatch where run_id = %(run)s returning run_id), waits as (
    update wait set state = 'cancelled' from closed where wait.run_id = closed.run_id and wait.state in ('open', 'suspended')
), told as (
    insert into log_line (run_id, path, level, text, at)
    select run_id, '', 'info', %(why)s, holdfast_now() from closed
)
update run set state = 'cancelled', ended_at = holdfast_now() from closed
where run.id = closed.run_id and run.state in ('open', 'attention')
"""
ORPHANED = "Cancelled: the run that started it does not wait for it any more."
# Something may follow the end, as with those that the journal writes.
FOLLOWED = """
insert into run_end (run_id) select id from run where id = %s
and (parent_id is not null or exists (select from trigger where type = 'ended' and enabled))
"""
CHILDREN = "select run_id from dispatch join run on run.id = run_id where run.parent_id = %s order by run_id"


async def follow_ends(connection: psycopg.AsyncConnection) -> int:
    """Do what follows of at most fifty ends. Returns of how many. What is wrong with one keeps no other waiting."""
    broken = followed = 0
    for _ in range(BATCH):
        end = None
        try:
            async with connection.transaction():
                end = await (await connection.execute(TAKE, [broken])).fetchone()
                rung = end is not None and await _follow(connection, *end)
        except (psycopg.OperationalError, psycopg.InterfaceError):
            raise
        except Exception:
            if end is None:
                raise
            log.exception("What follows the end of run %s broke, and is tried again.", end[1], extra={"run": end[1]})
            broken = end[0]
            continue
        if end is None:
            break
        followed += 1
        if rung:  # after the commit, in which it would hold up everybody else's
            await connection.execute("select pg_notify(%s, %s)", [CHANNEL, rung if isinstance(rung, str) else ""])
    return followed


async def _follow(
    connection: psycopg.AsyncConnection, end_id: int, run_id: int, wait_id: int | None, failure_flow: str
) -> str | bool:
    """Returns whether to ring, and for which run."""
    if wait_id is not None:
        child = await (await connection.execute(CHILD_OF_WAIT, [wait_id])).fetchone()
        return bool(child) and await cancel_run(connection, child[0])
    ended = await (await connection.cursor(row_factory=dict_row).execute(ENDED, [run_id])).fetchone()
    if ended is None or ended["state"] in UNFINISHED:  # retention was quicker, or a requeue: another end will come
        return False
    rung: str | bool = False
    if ended["parent_id"] is not None and await _tell_parent(connection, ended):
        rung = str(ended["parent_id"])
    return await _start_flows(connection, ended, end_id, failure_flow) or rung


async def _tell_parent(connection: psycopg.AsyncConnection, ended: dict[str, Any]) -> bool:
    parent = ended["parent_id"]
    if await (await connection.execute(LOCK, [parent])).fetchone() is None:
        return False
    wait = await (await connection.execute(PARENTS_WAIT, [parent, ended["id"]])).fetchone()
    if wait is None:
        return False
    if await (await connection.execute(RESOLVE, [json.dumps(outcome(ended)), wait[0]])).fetchone() is None:
        return False
    await connection.execute(WAKE, {"run": parent})
    return True


def outcome(ended: dict[str, Any]) -> dict[str, Any]:
    """What the parent's step resumes with."""
    output = json.loads(ended["output"]) if isinstance(ended["output"], str) else ended["output"]
    message = (ended["error"] or {}).get("message", "")
    return {"by": "child", "run": ended["id"], "state": ended["state"], "output": output, "message": message}


async def _start_flows(connection: psycopg.AsyncConnection, ended: dict[str, Any], end_id: int, failure_flow: str) -> bool:
    if ended["test"]:
        return False
    given = {"team": ended["team_id"], "flow": ended["workflow_id"], "state": ended["state"], "made_at": ended["made_at"]}
    cursor = connection.cursor(row_factory=dict_row)
    found = await (await cursor.execute(STARTED_BY_END, given)).fetchall()
    if failure_flow and ended["state"] == "failed":
        found += await (await cursor.execute(NAMED_FLOW, {**given, "named": failure_flow})).fetchall()
    if found and ended["depth"] >= LONGEST_CHAIN:
        words = "run %s: %s flows that its end would start are not: the chain is too long"
        log.warning(words, ended["id"], len(found), extra={"run": ended["id"]})
        return False
    given = told(ended)
    for flow in found:
        place = flow["workflow_id"], flow["version_id"], flow["key"]
        await insert_one(connection, *place, f"end:{end_id}", given, ended["depth"] + 1)
    return bool(found)


def told(ended: dict[str, Any]) -> dict[str, Any]:
    """What a flow that is started by an end calls `trigger`."""
    output = json.loads(ended["output"]) if isinstance(ended["output"], str) else ended["output"]
    return {
        "run": {"id": ended["id"], "title": ended["title"], "state": ended["state"], "ended_at": ended["ended_at"].isoformat()},
        "flow": {"name": ended["flow"], "version": ended["version"]},
        "output": output,
        "error": ended["error"],
    }


async def cancel_run(connection: psycopg.AsyncConnection, run_id: int, why: str = ORPHANED) -> bool:
    """Cancel a run, and those that it waits for, in the caller's transaction. False: it has ended."""
    if await (await connection.execute(LOCK, [run_id])).fetchone() is None:
        return False
    children = await (await connection.execute(CHILDREN, [run_id])).fetchall()
    await connection.execute(CANCEL, {"run": run_id, "why": why})
    await connection.execute(FOLLOWED, [run_id])
    for (child,) in children:
        await cancel_run(connection, child)
    return True
