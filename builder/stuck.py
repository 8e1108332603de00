"""What is stuck, and what will happen about it: by itself, or by whom."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Func

from builder import access
from builder.editing.places import name_at
from runtime.clock import BusinessNow
from runtime.definition import find
from runtime.models import Run, Version, Wait, Worker
from runtime.paths import step_of
from runtime.pausing import paused
from runtime.slots import LEVELS
from runtime.states import RunState, WaitKind, WaitState
from runtime.steps import step_types

LISTED = 8
SILENT_AFTER = timedelta(seconds=15)
OVERDUE_AFTER = timedelta(seconds=60)
LONG_CALL = timedelta(minutes=10)
MOST_SILENT = 100
HALTED = "Nobody takes it: all work is paused, until an administrator resumes it"
NOBODY = "Nobody takes it: no worker is alive. Start manage.py qcluster"

# The call of each run that was under way when its worker was lost.
OPEN_CALLS = """
select distinct on (run_id) run_id, path from attempt where run_id = any(%s) and ended_at is null order by run_id, started_at
"""
# Calls that take long in the hands of live workers: no progress, though nothing is wrong with the lease.
LONG_CALLS = """
select held.run_id, a.path, a.started_at, held.worker_id
from (select run_id, worker_id from dispatch where token is not null and leased_until > clock_timestamp() limit 2000) held
cross join lateral (
    select path, started_at from attempt
    where run_id = held.run_id and ended_at is null and started_at < (select holdfast_now() - %s::interval) limit 1
) a
order by a.started_at
"""


class ClockNow(Func):
    """Leases and beats go by the wall clock, also when the tests move business time."""

    template = "clock_timestamp()"
    output_field = DateTimeField()


@dataclass(frozen=True, slots=True)
class Stuck:
    run: Run
    step: str
    worker: str
    since: datetime | None
    state: str
    words: str
    path: str = ""
    decide: bool = False


def stuck(user: Any) -> list[Stuck]:
    """What asks a person, what a silent worker holds, what is due and not taken, and calls that take long, in this order."""
    runs = access.runs_for(user, access.OPERATOR).select_related("workflow", "dispatch").prefetch_related("version")
    asking = list(runs.filter(state=RunState.ATTENTION).order_by("pk")[:LISTED])
    waits, alive = _waits_of(asking), _somebody_lives()
    rows = [_asks(run, waits.get(run.pk)) for run in asking]
    rows += _left_behind(runs, alive)
    overdue = runs.filter(
        state=RunState.OPEN, dispatch__token=None, dispatch__queued=False, dispatch__priority__in=LEVELS,
        dispatch__due_at__lt=BusinessNow() - OVERDUE_AFTER,
    )
    words = HALTED if paused() else "A worker takes it as soon as a slot is free" if alive else NOBODY
    rows += [
        Stuck(run, "", "", run.dispatch.due_at, "queued", words)
        for run in overdue.order_by("dispatch__due_at")[:LISTED]
    ]
    told = {row.run.pk for row in rows}
    return [*rows, *(row for row in _long_calls(runs) if row.run.pk not in told)][: 2 * LISTED]


def _somebody_lives() -> bool:
    return Worker.objects.filter(ended_at=None, beat_at__gt=ClockNow() - SILENT_AFTER).exists()


def _left_behind(runs: Any, alive: bool) -> list[Stuck]:
    """Runs whose lease ran out, and those in the hands of a worker that is silent, with what whoever takes them over will do
    about the call that was under way."""
    held = runs.filter(dispatch__token__isnull=False)
    found = list(held.filter(dispatch__leased_until__lt=ClockNow()).order_by("pk")[:LISTED])
    silent = dict(Worker.objects.filter(ended_at=None, beat_at__lte=ClockNow() - SILENT_AFTER).values_list("pk", "beat_at")[:MOST_SILENT])
    if silent:
        known = [run.pk for run in found]
        found += held.filter(dispatch__worker_id__in=list(silent)).exclude(pk__in=known).order_by("pk")[:LISTED]
    with connection.cursor() as cursor:
        cursor.execute(OPEN_CALLS, [[run.pk for run in found]])
        calls = dict(cursor.fetchall())
    rows = []
    for run in found:
        path = calls.get(run.pk, "")
        words = _what_follows(run.version, path) if alive else NOBODY
        step = name_at(run.version.definition, path) if path else ""
        since = silent.get(run.dispatch.worker_id, run.dispatch.leased_until)
        rows.append(Stuck(run, step, f"w-{run.dispatch.worker_id}", since, "running", words, path))
    return rows


def _what_follows(version: Version, path: str) -> str:
    """What the step says about a call that may have happened."""
    if not path:
        return "No call was under way: another worker goes on"
    step = find(version.definition, step_of(path)) or {}
    kind = step_types().get(step.get("type", ""))
    rule = step.get("on_interrupted") or (kind.interrupted(step.get("config") or {}) if kind else "ask")
    if isinstance(rule, dict):
        return "Another worker asks the other system whether it happened"
    return "Safe to repeat: called again with the same key" if rule == "repeat" else "A person will be asked: did it happen?"


def _long_calls(runs: Any) -> list[Stuck]:
    with connection.cursor() as cursor:
        cursor.execute(LONG_CALLS, [LONG_CALL])
        calls = {run: rest for run, *rest in cursor.fetchall()}
    words = "The call ends by the step's time-out, unless the other system answers first"
    return [
        Stuck(run, name_at(run.version.definition, path), f"w-{worker}", began, "running", words, path)
        for run in runs.filter(pk__in=list(calls)).order_by("pk")[:LISTED]
        for path, began, worker in [calls[run.pk]]
    ]


def _waits_of(runs: list[Run]) -> dict[int, Wait]:
    found = Wait.objects.filter(run_id__in=[run.pk for run in runs], state=WaitState.OPEN, kind=WaitKind.PERSON)
    return {wait.run_id: wait for wait in found.order_by("-pk")[: 10 * LISTED]}


def _asks(run: Run, wait: Wait | None) -> Stuck:
    if wait is None:
        return Stuck(run, "", "", run.created_at, "attention", str((run.error or {}).get("message") or "Needs a look"))
    if not wait.path:
        return Stuck(run, "", "", wait.created_at, "attention", "Its worker died with it, several times: requeue it or cancel it")
    return Stuck(run, name_at(run.version.definition, wait.path), "", wait.created_at, "attention", "Did it happen?", wait.path, True)
