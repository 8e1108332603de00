"""Scheduled starts: whichever worker comes first starts the run and moves the clock's hand, in one transaction.

An occurrence is one instant of one trigger. Its id is the run's idempotency key, so it starts one run at most, whatever
dies and whoever comes twice. Of occurrences that nobody was there for the latest starts a run, or the latest few, or none
(`missed`). While the run of the last one still goes, the next is started beside it, is left out, waits for its end, or
ends it (`overlap`). A paused workflow's occurrences pass by.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import class_row

from . import failpoints
from .doorbell import CHANNEL
from .endings import cancel_run
from .starts import insert_one
from .triggers import trigger_kinds

log = logging.getLogger(__name__)

BATCH = 50
LOOK_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=31), timedelta(days=366))

# Due schedules of the kinds that are known here, skipping those that another worker fires or that are just being published. Locking the workflow too, as
# starting a run will, means that this never waits while it holds a trigger: publishing locks in the other order.
DUE = """
select t.id, t.key, t.type, t.config, t.next_at, t.workflow_id, w.live_version_id as version_id,
       w.paused, w.deleted_at is not null as deleted, holdfast_now() as now, t.last_run_id
from trigger t join workflow w on w.id = t.workflow_id
where t.enabled and t.next_at <= (select holdfast_now()) and t.type = any(%s)
  and not (coalesce(t.config ->> 'overlap', '') = 'queue' and exists (select from dispatch d where d.run_id = t.last_run_id))
order by t.next_at limit %s
for no key update of t skip locked for key share of w skip locked
"""
# Whether the last run goes on. Asked under the lock: another worker may have started it since `DUE` looked.
BUSY = "select exists (select from dispatch where run_id = %s)"
MOVE = """
update trigger set next_at = %s, last_at = coalesce(%s, last_at), last_run_id = coalesce(%s, last_run_id) where id = %s
"""
ON_TIME = timedelta(minutes=2)
"""An occurrence that is no older than this was not missed."""


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
    last_run_id: int | None


async def fire_due(connection: psycopg.AsyncConnection) -> int:
    """Start a run for every schedule that is due. Returns how many runs were started."""
    started = 0
    async with connection.transaction():
        cursor = connection.cursor(row_factory=class_row(Due))
        for due in await (await cursor.execute(DUE, [list(trigger_kinds()), BATCH])).fetchall():
            started += await _fire_alone(connection, due)
    failpoints.hit("schedule.after")
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
    except (psycopg.OperationalError, psycopg.InterfaceError):
        raise
    except Exception:
        log.exception(
            "The schedule %s of workflow %s could not start a run; it will be tried again.", due.key, due.workflow_id
        )
        return 0


async def _fire(connection: psycopg.AsyncConnection, due: Due) -> int:
    try:
        times, following = _times(due)
    except (KeyError, ValueError, OSError):  # a time zone that this installation has no longer
        log.exception("The schedule %s of workflow %s cannot be read, and stops.", due.key, due.workflow_id)
        await connection.execute(MOVE, [None, None, None, due.id])
        return 0
    if due.deleted or due.version_id is None:
        await connection.execute(MOVE, [None, None, None, due.id])
        return 0
    overlap = due.config.get("overlap", "allow")
    busy = overlap != "allow" and (await (await connection.execute(BUSY, [due.last_run_id])).fetchone())[0]
    if overlap == "queue" and busy:
        return 0
    if due.paused or overlap == "skip" and busy:
        times = []
    if overlap == "cancel_old" and times and busy:
        await cancel_run(connection, due.last_run_id, "Cancelled: the next time of its schedule has come.")
    runs = [run for at in times for run in await _start(connection, due, at)]
    failpoints.hit("schedule.inside")
    await connection.execute(MOVE, [following, times[-1] if runs else None, runs[-1] if runs else None, due.id])
    return len(runs)


def _times(due: Due) -> tuple[list[datetime], datetime | None]:
    """The occurrences that start a run now, and the next one to look at."""
    config, kind = due.config, trigger_kinds()[due.type]
    overlap, missed, most = config.get("overlap", "allow"), config.get("missed", "once"), config.get("most", 10)
    following = kind.next_after(config, due.now)
    latest = latest_missed(due.type, config, due.next_at, due.now)
    if missed == "skip" and due.now - latest > ON_TIME:
        return [], following
    if missed != "all" and overlap != "queue":
        return [latest], following
    waiting = latest_few(due.type, config, due.next_at, due.now, most)
    if overlap == "queue":  # one after the other: the others stay due
        return waiting[:1], waiting[1] if len(waiting) > 1 else following
    return (waiting[-1:] if overlap in ("skip", "cancel_old") else waiting), following


def latest_few(type: str, config: Mapping[str, Any], first: datetime, now: datetime, most: int) -> list[datetime]:
    """The last occurrences up to `now`, at most so many, when `first` was due."""
    kind = trigger_kinds()[type]
    for window in (*LOOK_BACK, now - first + timedelta(seconds=1)):
        since = max(first - timedelta(microseconds=1), now - window)
        found: deque[datetime] = deque(maxlen=most)
        at = kind.next_after(config, since)
        while at is not None and at <= now:
            found.append(at)
            at = kind.next_after(config, at)
        if len(found) == most or since < first:
            return list(found)
    return [first]


async def _start(connection: psycopg.AsyncConnection, due: Due, at: datetime) -> list[int]:
    key = occurrence(due.id, at)
    given = {"scheduled_at": at.astimezone(UTC).isoformat(), "occurrence": key}
    return await insert_one(connection, due.workflow_id, due.version_id, due.key, key, given)
