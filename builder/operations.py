"""The questions of the operations page: where is everything, what is stuck, what is failing, what costs money, what waits.

Every answer is bounded: counts end at ten thousand, failures and costs are read from the latest runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Avg, Count, DurationField, Exists, ExpressionWrapper, F, Max, Min, OuterRef, Q

from builder import access
from builder.editing.places import label_of
from builder.reruns import taken_over
from builder.runfilter import in_state
from builder.stuck import LISTED, SILENT_AFTER, ClockNow, stuck
from builder.waitboard import WORDS, schedules
from runtime.clock import BusinessNow, business_now
from runtime.definition import walk
from runtime.faults import kind_of, signature
from runtime.models import Dispatch, OutboxMessage, Version, Worker
from runtime.paths import step_sql
from runtime.slots import LEVELS
from runtime.states import OutboxState, RunState

COUNT_TO = 10_000
CELLS = 16
FAILED_READ = 1_000
RUNS_READ = 5_000
WAITS_READ = 100_000
HOURS = 24
SLOTS = 12


# Workers


def workers() -> dict[str, Any]:
    """Every process that has not signed off, and the sums over the healthy ones. A silent one whose runs others have taken
    over is left out once another has begun in its place: nothing has to be done about it."""
    unsigned = Worker.objects.filter(ended_at=None, beat_at__gt=ClockNow() - timedelta(days=1))
    later = unsigned.filter(host=OuterRef("host"), started_at__gt=OuterRef("beat_at"), beat_at__gt=ClockNow() - SILENT_AFTER)
    holding = Dispatch.objects.filter(worker_id=OuterRef("pk"), token__isnull=False)
    replaced = Q(beat_at__lte=ClockNow() - SILENT_AFTER) & Exists(later) & ~Exists(holding)
    found = unsigned.exclude(replaced).annotate(now=ClockNow())
    rows = [_worker(worker) for worker in found.order_by("pk")[:24]]
    healthy = [row for row in rows if row["healthy"]]
    due = Dispatch.objects.filter(token=None, due_at__lte=BusinessNow(), queued=False, priority__in=LEVELS)
    queued = due.values("pk")[: COUNT_TO + 1].count()
    oldest = due.aggregate(oldest=Min("due_at"))["oldest"]
    return {
        "rows": rows,
        "healthy": len(healthy),
        "busy": sum(row["worker"].in_flight for row in healthy),
        "slots": sum(row["worker"].slots for row in healthy),
        "queued": f"{COUNT_TO:,}+" if queued > COUNT_TO else queued,
        "lag": max(0.0, (business_now() - oldest).total_seconds()) if oldest else 0.0,
    }


def _worker(worker: Worker) -> dict[str, Any]:
    silent = worker.now - worker.beat_at
    healthy = silent < SILENT_AFTER
    lost = 0 if healthy else Dispatch.objects.filter(worker_id=worker.pk, token__isnull=False).count()
    busy = min(CELLS, math.ceil((worker.in_flight if healthy else lost) * CELLS / worker.slots)) if worker.slots else 0
    return {
        "worker": worker,
        "healthy": healthy,
        "silent": silent,
        "lost": lost,
        "per_minute": round(worker.finished / max(1.0, (worker.now - worker.started_at).total_seconds() / 60)),
        "cells": [("on" if healthy else "lost") if n < busy else "" for n in range(CELLS)],
    }


# Where is everything


def everywhere(user: Any) -> list[dict[str, Any]]:
    """State -> how many runs, their average age, the oldest. A failure that a later run of its origin
    has taken over is nobody's business any more."""
    runs, rows = access.runs_for(user, access.OPERATOR).filter(test=False), []
    age = ExpressionWrapper(BusinessNow() - F("created_at"), output_field=DurationField())
    for state in ("running", "waiting", "attention", "failed"):
        found = runs.filter(in_state(state))
        found = found.exclude(taken_over()) if state == "failed" else found
        found = found.order_by("pk").annotate(age=age)[: COUNT_TO + 1]
        told = found.aggregate(number=Count("pk"), average=Avg("age"), oldest=Max("age"), first=Min("pk"))
        rows.append(told | {"state": state, "number": told["number"], "more": told["number"] > COUNT_TO})
    most = max((row["number"] for row in rows), default=0)
    return [row | {"most": most} for row in rows]


def succeeded(user: Any) -> dict[str, Any]:
    """Runs of the last day that succeeded, among the latest."""
    took = ExpressionWrapper(F("ended_at") - F("created_at"), output_field=DurationField())
    latest = access.runs_for(user, access.OPERATOR).filter(test=False).order_by("-pk")[:RUNS_READ].values("pk", "state", "ended_at", took=took)
    good = Q(state=RunState.SUCCEEDED, ended_at__gt=BusinessNow() - timedelta(hours=HOURS))
    return latest.aggregate(number=Count("pk", filter=good), average=Avg("took", filter=good))


# What is failing


@dataclass(slots=True)
class Failure:
    """Failed runs of one flow at one step with one error, numbers and addresses aside."""

    key: str
    kind: str
    message: str
    step: str
    flow: str
    flow_id: int
    last: datetime
    refused: bool = False
    """Whether a connection has to be put right before a requeue helps."""
    runs: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=lambda: [0] * SLOTS)


def failing(user: Any) -> list[Failure]:
    """The failures of the last day among the latest thousand, those of most runs first. A run that was started again is
    left out: its work is that of the later one, and a requeue of both would do it twice."""
    now = business_now()
    since = now - timedelta(hours=HOURS)
    runs = access.runs_for(user, access.OPERATOR).filter(state=RunState.FAILED, test=False).exclude(taken_over()).order_by("-pk")
    found = runs.values_list("pk", "workflow_id", "workflow__name", "error", "ended_at")[:FAILED_READ]
    groups: dict[str, Failure] = {}
    for pk, flow_id, flow, error, ended in found:
        if ended < since:
            continue
        error = error or {}
        message, step = str(error.get("message") or "Unknown error"), str(error.get("name") or error.get("step") or "")
        key = f"{flow_id}:{kind_of(error)}"
        refused = error.get("field") == "connection"
        group = groups.setdefault(key, Failure(key, error.get("kind") or "", message, step, flow, flow_id, ended, refused))
        group.runs.append(pk)
        group.last = max(group.last, ended)
        age = (now - ended).total_seconds() / (HOURS * 3600)
        group.slots[max(0, min(SLOTS - 1, SLOTS - 1 - int(age * SLOTS)))] += 1
    return sorted(groups.values(), key=lambda group: (-len(group.runs), -group.last.timestamp()))


# What costs money


def costs(user: Any) -> dict[str, Any]:
    """The steps that cost most among the latest runs, and the sum."""
    latest = list(access.runs_for(user, access.OPERATOR).order_by("-pk").values_list("pk", flat=True)[:RUNS_READ])
    mine = list(access.workflows_for(user, access.OPERATOR).values_list("pk", flat=True))
    rows = _costs(min(latest), max(latest), mine) if latest else []
    most = max((row["total"] for row in rows), default=0)
    names = _names({row["version_id"] for row in rows[:LISTED]})
    shown = [row | {"name": names.get((row["version_id"], row["step"]), row["step"]), "most": most} for row in rows[:LISTED]]
    return {"rows": shown, "total": sum(row["total"] for row in rows), "runs": RUNS_READ}


# Cost by step of some flows, of their runs between two ids.
COSTS = f"""
select r.workflow_id, w.name, max(r.version_id), {step_sql("a.path")} as step, count(*), avg(a.cost), sum(a.cost)
from attempt a join run r on r.id = a.run_id join workflow w on w.id = r.workflow_id
where a.run_id between %(first)s and %(last)s and r.id between %(first)s and %(last)s and a.cost is not null and not r.test and r.workflow_id = any(%(flows)s)
group by 1, 2, 4 order by 7 desc limit 200
"""


def _costs(first: int, last: int, flows: list[int]) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(COSTS, {"first": first, "last": last, "flows": flows})
        columns = ("flow_id", "flow", "version_id", "step", "calls", "average", "total")
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _names(versions: Iterable[int]) -> dict[tuple[int, str], str]:
    return {
        (version.pk, step["id"]): label_of(step)
        for version in Version.objects.filter(pk__in=versions)
        for step in walk(version.definition.get("steps") or [])
    }


# What waits, and mail


# Open waits by kind, all in one look; of others than administrators those of the runs that they may see.
WAITING = """
select w.kind, count(*), min(w.due_at), min(w.created_at)
from (select run_id, kind, due_at, created_at from wait where state = 'open' limit %(most)s) w
where {whose} group by w.kind
"""
ALL = "not exists (select from run t where t.id = w.run_id and t.test)"
OWN = "w.run_id in (select id from run where state in ('open', 'attention') and not test and workflow_id = any(%(flows)s))"


def waiting(user: Any) -> list[dict[str, Any]]:
    """Kind of wait -> how many, which is due next, the oldest; among `WAITS_READ` of all teams."""
    whose, flows = (ALL, []) if user.is_superuser else (OWN, access.flows_of(user, access.OPERATOR))
    with connection.cursor() as cursor:
        cursor.execute(WAITING.format(whose=whose), {"most": WAITS_READ, "flows": flows})
        found = {kind: told for kind, *told in cursor.fetchall()}
    return [
        {"kind": str(kind), "word": word, "number": number, "next": due, "oldest": oldest}
        for kind, word in WORDS.items()
        for number, due, oldest in [found.get(kind, (0, None, None))]
        if number
    ]


def mail() -> dict[str, Any]:
    """The outbox: what is on its way and since when, and what failed in the last day."""
    unsent = OutboxMessage.objects.filter(state__in=[OutboxState.QUEUED, OutboxState.SENDING])
    told = unsent.aggregate(number=Count("pk"), oldest=Min("created_at"))
    latest = OutboxMessage.objects.order_by("-pk")[:RUNS_READ].values("pk", "state", "created_at")
    today = Q(created_at__gt=BusinessNow() - timedelta(hours=HOURS))
    ended = {"sent": OutboxState.SENT, "failed": OutboxState.FAILED}
    return told | latest.aggregate(**{name: Count("pk", filter=today & Q(state=state)) for name, state in ended.items()})

__all__ = [
    "LISTED", "WORDS", "costs", "everywhere", "failing", "mail", "schedules", "signature", "stuck", "succeeded", "waiting",
    "workers",
]  # fmt: skip
