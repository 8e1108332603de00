"""Ending waits from outside. Who resolves first wins; everybody else is told that somebody was first.

Wait registration, signal, time-out, cancel and release all take the run's dispatch row first. So a signal either sees
the wait, or is stored before the wait is registered and found by it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction

from .asking import asks_own
from .audit import record_of_run
from .clock import business_now
from .database import LET_GO
from .definition import find
from .doorbell import ring_after_commit
from .models import LogLine, Run, Wait
from .paths import step_of
from .states import WaitKind, WaitState

# The run's only lock. No row: the run has ended.
LOCK = f"select state, {LET_GO} from dispatch where run_id = %s for no key update"
# Open -> resolved, once.
RESOLVE = """
update wait set state = 'resolved', outcome = %s::json, resolved_at = holdfast_now()
where id = %s and state = 'open' returning run_id
"""
# Tell whoever advances the run: an owner by the count of wakes, everybody by the due time. A quarantined run stays where it
# is until a person says so, whatever happens to its waits.
WAKE = """
with quarantine as materialized (
    select from wait where run_id = %(run)s and scope = '' and path = '' and kind = 'person' and state = 'open'
)
update dispatch set wakes = wakes + 1,
    state = case when state = 'claimed' or exists (select from quarantine) then state else 'ready' end,
    due_at = case when state = 'claimed' or exists (select from quarantine) then due_at else least(due_at, holdfast_now()) end
where run_id = %(run)s
"""
KEEP_SIGNAL = """
insert into signal (run_id, path, dedupe, payload, received_at) values (%s, %s, %s, %s::json, holdfast_now())
on conflict (run_id, path, dedupe) do nothing returning id
"""
UNTAKEN = "select count(*) from signal where run_id = %s and path = %s and wait_id is null"
MOST_UNTAKEN = 100
OPEN_CALLBACK = "select id from wait where run_id = %s and path = %s and kind = 'callback' and state = 'open'"

KEPT_FOR_OPEN = """
select distinct on (w.id) w.id, s.id, s.payload::text from wait w join signal s on s.run_id = w.run_id and s.path = w.path
where w.run_id = %s and w.kind = 'callback' and w.state = 'open' and s.wait_id is null order by w.id, s.id
"""


TIMED = (WaitKind.TIMER, WaitKind.RETRY, WaitKind.APPROVAL, WaitKind.CALLBACK)
"""Waits that end by themselves: people may end them earlier or later."""


class TooManySignals(Exception):
    """More different events were sent to one place of a run than it keeps untaken."""


def lock(run_id: int) -> str | None:
    """Take the run's lock until the end of the transaction. Returns the dispatch state, None when the run has ended."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [run_id])
        row = cursor.fetchone()
    return row[0] if row else None


@transaction.atomic
def resolve(wait_id: int, outcome: dict[str, Any]) -> bool:
    """Resolve an open wait and wake its run. False: somebody was first, or the run has ended."""
    with connection.cursor() as cursor:
        cursor.execute("select run_id from wait where id = %s", [wait_id])
        row = cursor.fetchone()
    return bool(row) and lock(row[0]) is not None and resolve_locked(wait_id, outcome)


def resolve_locked(wait_id: int, outcome: dict[str, Any]) -> bool:
    """As `resolve`, for callers that hold the run's lock already."""
    with connection.cursor() as cursor:
        cursor.execute(RESOLVE, [json.dumps(outcome, allow_nan=False), wait_id])
        row = cursor.fetchone()
    if row is None:
        return False
    wake(row[0])
    return True


def wake(run_id: int) -> None:
    """Have the run looked at, now. The caller holds its lock."""
    with connection.cursor() as cursor:
        cursor.execute(WAKE, {"run": run_id})
    ring_after_commit(run_id)


@transaction.atomic
def signal(run_id: int, path: str, payload: Any, dedupe: str) -> bool:
    """Keep an outside event for a place of a run, and hand it to the callback that waits there. False: came before,
    or the run has ended. For a run that failed it is kept, for a requeue may let it go on. Raises TooManySignals."""
    if lock(run_id) is None and not _lock_failed(run_id) and lock(run_id) is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(KEEP_SIGNAL, [run_id, path, dedupe, json.dumps(payload, allow_nan=False)])
        kept = cursor.fetchone()
        if kept is None:
            return False
        cursor.execute(UNTAKEN, [run_id, path])
        if cursor.fetchone()[0] > MOST_UNTAKEN:
            raise TooManySignals
        cursor.execute(OPEN_CALLBACK, [run_id, path])
        waiting = cursor.fetchone()
        if waiting and resolve_locked(waiting[0], {"by": "signal", "payload": payload}):
            cursor.execute("update signal set wait_id = %s where id = %s", [waiting[0], kept[0]])
    return True


@transaction.atomic
def fire(wait_id: int, *, user: Any = None) -> bool:
    """Let a wait end now, as if its time had come: a delay is over, a retry begins, a question or a callback expires.
    False: it is open no more, is one that only a person's word ends, is a question that this person may not answer, or
    stands before a check, which is never made early: the call that it asks about may still be under way."""
    wait = _open(wait_id, TIMED)
    if wait is None or wait.data.get("check") or _asks_own(wait, user):
        return False
    if not resolve_locked(wait_id, {"by": "due", "at": business_now().isoformat(), "who": str(user or "")}):
        return False
    _told(wait, "fire", f"Ended the wait early{_by(user)}.", user)
    return True


@transaction.atomic
def extend(wait_id: int, due_at: datetime, *, user: Any = None) -> bool:
    """Move the time at which a wait ends, to later or earlier. False: it is open no more, has none, or may not end earlier (`fire`)."""
    wait = _open(wait_id, TIMED)
    earlier = wait is not None and (wait.due_at is None or due_at < wait.due_at)
    if wait is None or earlier and (wait.data.get("check") or _asks_own(wait, user)):
        return False
    wait.due_at = due_at
    wait.save(update_fields=["due_at"])
    wake(wait.run_id)  # whoever holds it learns the time; else it is claimed, and released until then
    _told(wait, "extend", f"Moved the end of the wait to {due_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC{_by(user)}.", user)
    return True


def _asks_own(wait: Wait, user: Any) -> bool:
    """Whether it is a question that who started the run has to leave to others: what its end causes, too."""
    if wait.kind != WaitKind.APPROVAL or user is None:
        return False
    run = Run.objects.select_related("version").get(pk=wait.run_id)
    return asks_own(run, find(run.version.definition, step_of(wait.path)) or {}, user)


def _open(wait_id: int, kinds: tuple[WaitKind, ...]) -> Wait | None:
    """The wait, if it is open, under its run's lock."""
    run_id = Wait.objects.filter(pk=wait_id).values_list("run_id", flat=True).first()
    if run_id is None or lock(run_id) is None:
        return None
    return Wait.objects.filter(pk=wait_id, state=WaitState.OPEN, kind__in=kinds).first()


def _told(wait: Wait, action: str, text: str, user: Any) -> None:
    LogLine.objects.create(run_id=wait.run_id, path=wait.path, text=text)
    record_of_run(action, wait.run_id, actor=user, detail={"path": wait.path, "wait": wait.pk})


def _by(user: Any) -> str:
    return f" by {user}" if user else ""


def hand_over(run_id: int) -> None:
    """Give signals that were kept to the callbacks that wait again. The caller holds the run's lock."""
    with connection.cursor() as cursor:
        cursor.execute(KEPT_FOR_OPEN, [run_id])
        for wait_id, signal_id, payload in cursor.fetchall():
            if resolve_locked(wait_id, {"by": "signal", "payload": json.loads(payload)}):
                cursor.execute("update signal set wait_id = %s where id = %s", [wait_id, signal_id])


def _lock_failed(run_id: int) -> bool:
    """Hold a failed run as it is until the end of the transaction; a requeue comes before or after."""
    with connection.cursor() as cursor:
        cursor.execute("select from run where id = %s and state = 'failed' for no key update", [run_id])
        return cursor.fetchone() is not None
