"""Getting a run to go on: from the hands of its worker, from its end as failed, or from its quarantine. For acts of people, in
their transaction (`acts.py`).
"""

from __future__ import annotations

from django.db import connection

from . import retries, slots, waits
from .doorbell import ring_after_commit
from .models import LogLine, Run, Wait
from .origins import continued_by
from .states import DispatchState, RunState, WaitKind, WaitState

REOPEN = """
update run set state = 'open', ended_at = null, error = null where id = %s and state = 'failed'
returning version_id, workflow_id, test
"""
DISPATCH_AGAIN = """
insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths,
                      priority, queued, slot_of, slot_key, yields, expires_at)
values (%(run)s, %(version)s, 'ready', holdfast_now(), 1, 0, 0, false, 0,
        %(priority)s, %(slot_of)s is not null, %(slot_of)s, %(slot_key)s, %(yields)s,
        holdfast_now() + make_interval(secs => %(max_age)s))
"""
# Whoever holds the run loses it; whoever comes next finds it as it was made.
TAKE_AWAY = """
update dispatch set state = 'ready', token = null, worker_id = null, leased_until = null, due_at = holdfast_now(),
    wakes = wakes + 1, claims = greatest(claims, 1), lost = 0, alone = false
where run_id = %s
"""
# Waits for runs that have ended meanwhile.
CHILDREN_ENDED = """
update wait w set state = 'resolved', resolved_at = holdfast_now(),
    outcome = json_build_object('by', 'child', 'run', c.id, 'state', c.state, 'output', c.output,
                                'message', coalesce(c.error ->> 'message', ''))
from run c where w.run_id = %s and w.kind = 'child' and w.state = 'open' and c.id = (w.data ->> 'run')::bigint
  and c.state in ('succeeded', 'failed', 'cancelled')
"""
FORGIVE = """
update dispatch set state = 'ready', due_at = holdfast_now(), lost = 0, deaths = 0, alone = false
where run_id = %s and token is null
"""


class NotPossible(Exception):
    """The run is not in a state for it; the message says why, and what to do instead."""


def take_hold(run_id: int) -> None:
    """Take an unfinished run from its owner, or open a failed one again; its dispatch row is locked from here. A call
    that is under way is not interrupted: its answer would be lost."""
    state = waits.lock(run_id)
    if state is None:
        if not revive(run_id):
            raise NotPossible("The run has ended. Start it again with the same input instead.")
        return
    if Wait.objects.filter(run_id=run_id, path="", kind=WaitKind.PERSON, state=WaitState.OPEN).exists():
        raise NotPossible("The run is quarantined. Let it try again first, or cancel it.")
    if state == DispatchState.CLAIMED and (call := retries.in_flight(run_id)):
        raise NotPossible(f"A call is under way (“{call[0]}”, attempt {call[1]}). Try again when it has ended.")
    with connection.cursor() as cursor:
        cursor.execute(TAKE_AWAY, [run_id])
    ring_after_commit(run_id)


def revive(run_id: int) -> bool:
    """Open a failed run again, due now; where its flow has limits, once there is a slot for it. Raises NotPossible."""
    with connection.cursor() as cursor:
        cursor.execute(REOPEN, [run_id])
        row = cursor.fetchone()
        if row is None:
            return False
        require_no_other(run_id)  # asked under the run's lock, which whoever goes on with it takes too
        version_id, workflow_id, test = row
        limit = None if test else slots.limit_of(workflow_id)
        given = Run.objects.values_list("input", flat=True).get(pk=run_id) if limit else {}
        terms = slots.terms(limit, workflow_id, given)
        cursor.execute(DISPATCH_AGAIN, {"run": run_id, "version": version_id, **terms.columns()})
    ring_after_commit()
    return True


def require_no_other(run_id: int) -> None:
    """Raise NotPossible for a run with whose results another one goes on: both would call the same."""
    if other := continued_by(run_id):
        words = f"Run {other:,} was begun with the results of this one, and goes on in its place."
        raise NotPossible(f"{words} Act on that one, or cancel it first.")


def forgive(run_id: int) -> bool:
    """Resolve a run's quarantine, if it is in one."""
    if waits.lock(run_id) is None:
        return False
    quarantine = Wait.objects.filter(run_id=run_id, path="", kind=WaitKind.PERSON, state=WaitState.OPEN).first()
    if quarantine is None or not waits.resolve_locked(quarantine.pk, {"by": "person", "answer": "again"}):
        return False
    with connection.cursor() as cursor:
        cursor.execute(FORGIVE, [run_id])
    attended(run_id)
    LogLine.objects.create(run_id=run_id, path="", text="Taken out of quarantine.")
    ring_after_commit()
    return True


def restore_waits(run_id: int) -> None:
    """Open again what a failure had suspended, and say whether a person is waited for."""
    waiting = Wait.objects.filter(run_id=run_id)
    # The requeue is a person's word on a quarantine too.
    waiting.filter(state=WaitState.SUSPENDED, path="", kind=WaitKind.PERSON).update(state=WaitState.CANCELLED)
    waiting.filter(state=WaitState.SUSPENDED).update(state=WaitState.OPEN)
    if waiting.filter(kind=WaitKind.PERSON, state=WaitState.OPEN).exists():
        Run.objects.filter(pk=run_id, state=RunState.OPEN).update(state=RunState.ATTENTION)
    else:
        attended(run_id)
    with connection.cursor() as cursor:
        cursor.execute(CHILDREN_ENDED, [run_id])
    waits.hand_over(run_id)


def attended(run_id: int) -> None:
    """Back to open, once nobody is waited for."""
    if not Wait.objects.filter(run_id=run_id, kind=WaitKind.PERSON, state=WaitState.OPEN).exists():
        Run.objects.filter(pk=run_id, state=RunState.ATTENTION).update(state=RunState.OPEN)
