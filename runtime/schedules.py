"""Scheduled starts: whichever worker comes first starts the run and moves the clock's hand, in one transaction.

An occurrence is one instant of one trigger. Its id is the run's idempotency key, so it starts one run at most, whatever
dies and whoever comes twice. Occurrences that nobody was there for are made up for once: the latest one starts a run,
the earlier ones do not. A paused workflow's occurrences pass by.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import class_row

from . import failpoints
from .doorbell import CHANNEL
from .starts import INSERT_RUNS
from .triggers import trigger_kinds

log = logging.getLogger(__name__)

BATCH = 50
LOOK_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=31), timedelta(days=366))

# Due schedules, skipping those that another worker fires or that are just being published. Locking the workflow too, as
# starting a run will, means that this never waits while it holds a trigger: publishing locks in the other order.
DUE = """
select t.id, t.key, t.type, t.config, t.next_at, t.workflow_id, w.live_version_id as version_id,
       w.paused, w.deleted_at is not null as deleted, holdfast_now() as now
from trigger t join workflow w on w.id = t.workflow_id
where t.enabled and t.next_at <= (select holdfast_now())
order by t.next_at limit %s
for no key update of t skip locked for key share of w skip locked
"""
MOVE = "update trigger set next_at = %s, last_at = coalesce(%s, last_at) where id = %s"


@dataclass(frozen=True, slots=True)
class Due:
    """A trigger whose time has come, locked."""

    id: int
    key: str
    type: str
    config: dict[str, Any]
    next_at: datetime
    workflow_id: int
    version_id: int | None
    paused: bool
    deleted: bool
    now: datetime


async def fire_due(connection: psycopg.AsyncConnection) -> int:
    """Start a run for every schedule that is due. Returns how many runs were started."""
    started = 0
    async with connection.transaction():
        cursor = connection.cursor(row_factory=class_row(Due))
        for due in await (await cursor.execute(DUE, [BATCH])).fetchall():
            started += await _fire_alone(connection, due)
    if started:  # after the commit, in which it would hold up everybody else's
        await connection.execute("select pg_notify(%s, '')", [CHANNEL])
    return started


def occurrence(trigger_id: int, at: datetime) -> str:
    """The name of one instant of one trigger: `7@2027-03-28T01:00:00Z`."""
    return f"{trigger_id}@{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def latest_missed(type: str, config: Mapping[str, Any], first: datetime, now: datetime) -> datetime:
    """The last occurrence up to `now`, when `first` was due and may be long past. Looks back in growing windows: a
    minutely schedule that slept for a year would have half a million to count through."""
    kind = trigger_kinds()[type]
    for window in LOOK_BACK:
        if now - window <= first:
            break
        if (found := _last_between(kind, config, now - window, now)) is not None:
            return found
    return _last_between(kind, config, first, now) or first


def _last_between(kind: Any, config: Mapping[str, Any], after: datetime, until: datetime) -> datetime | None:
    last, at = None, kind.next_after(config, after)
    while at is not None and at <= until:
        last, at = at, kind.next_after(config, at)
    return last


async def _fire_alone(connection: psycopg.AsyncConnection, due: Due) -> int:
    """In a savepoint: what is wrong with one schedule must not keep the others from firing."""
    try:
        async with connection.transaction():
            return await _fire(connection, due)
    except (psycopg.DataError, psycopg.IntegrityError):
        log.exception(
            "The schedule %s of workflow %s could not start a run; it will be tried again.", due.key, due.workflow_id
        )
        return 0


async def _fire(connection: psycopg.AsyncConnection, due: Due) -> int:
    try:
        at = latest_missed(due.type, due.config, due.next_at, due.now)
        following = trigger_kinds()[due.type].next_after(due.config, due.now)
    except (KeyError, ValueError, OSError):  # a time zone or trigger kind that this installation has no longer
        log.exception("The schedule %s of workflow %s cannot be read, and stops.", due.key, due.workflow_id)
        await connection.execute(MOVE, [None, None, due.id])
        return 0
    if due.deleted or due.version_id is None:
        await connection.execute(MOVE, [None, None, due.id])
        return 0
    count = 0 if due.paused else await _start(connection, due, at)
    failpoints.hit("schedule.inside")
    await connection.execute(MOVE, [following, at if count else None, due.id])
    return count


async def _start(connection: psycopg.AsyncConnection, due: Due, at: datetime) -> int:
    key = occurrence(due.id, at)
    given = {"scheduled_at": at.astimezone(UTC).isoformat(), "occurrence": key}
    cursor = await connection.execute(
        INSERT_RUNS,
        {
            "workflow": due.workflow_id,
            "version": due.version_id,
            "trigger": due.key,
            "test": False,
            "user": None,
            "rerun_of": None,
            "parent": None,
            "depth": 0,
            "inputs": [json.dumps(given)],
            "keys": [key],
            "hashes": [""],
        },
    )
    return len(await cursor.fetchall())
