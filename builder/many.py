"""What an act on many runs would do, told before it is done: to how many of them, and where."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import connection
from django.db.models import Count, F, Q

from builder import reruns
from builder.editing.places import label_of
from runtime.definition import find
from runtime.models import Dispatch, Run, Version, Workflow
from runtime.paths import step_sql
from runtime.states import UNFINISHED, DispatchState, RunState

LISTED = 12
# Failed runs by flow and by the step that failed; of each the newest version.
FAILED = """
select workflow_id, coalesce(error ->> 'step', ''), max(version_id), count(*) from run
where id = any(%(runs)s) and state = 'failed' group by 1, 2 order by 4 desc, 1, 2
"""
# Calls of the runs that were answered, may have happened or are under way, and mails, by flow and step: how many runs made them.
MADE = f"""
select r.workflow_id, made.step, max(r.version_id), count(distinct made.run_id) from (
    select run_id, {step_sql()} as step from attempt
    where run_id = any(%(runs)s) and operation <> 'check' and (outcome is null or outcome = 'unknown' or outcome = 'answered' and error is null)
    union all select run_id, {step_sql()} from outbox where run_id = any(%(runs)s) and kind = 'email'
) made join run r on r.id = made.run_id group by 1, 2 order by 4 desc, 1, 2
"""
LOOKED_AT = 2_000
"""So many of the runs tell what starting them again would do once more."""
NEWER = Q(workflow__deleted_at=None, workflow__live_version__number__gt=F("version__number"))


@dataclass(slots=True)
class Row:
    """Runs of one flow that failed at one step (`name`, with the kind as `icon`), or that stand alike (`name`)."""

    name: str
    flow: str
    number: int
    icon: str = ""


@dataclass(slots=True)
class Told:
    """`number` are the runs to which it happens, `over` those that later runs have taken over, `beside` the others that were
    chosen, in whose state it cannot be done."""

    act: str
    number: int = 0
    over: int = 0
    beside: int = 0
    rows: list[Row] = field(default_factory=list)
    more: int = 0
    repeats: list[Row] = field(default_factory=list)
    """What happens outside once more, as far as the latest of them tell."""
    newer: int = 0
    """Of those that start again, how many have a live version that is newer than their own."""
    carries: int = 0
    """Of these, how many failed or were cancelled, and may keep what ended."""


def told(act: str, runs: list[int]) -> Told:
    """For a requeue, a new start or a cancel of these runs."""
    rows = {"requeue": _failed, "cancel": _unfinished, "rerun": _flows}[act]
    left = reruns.to_requeue(runs) if act == "requeue" else runs
    found = rows(left)
    number = sum(row.number for row in found)
    told = Told(act, number, len(runs) - len(left), len(left) - number, found[:LISTED], max(0, len(found) - LISTED))
    if act == "rerun":
        told.repeats = _steps(MADE, runs[-LOOKED_AT:])[:LISTED]
        newer = Run.objects.filter(NEWER, pk__in=runs)
        told.newer = newer.count()
        told.carries = newer.filter(state__in=[RunState.FAILED, RunState.CANCELLED]).count()
    return told


def _failed(runs: list[int]) -> list[Row]:
    return _steps(FAILED, runs)


def _steps(statement: str, runs: list[int]) -> list[Row]:
    """Of a statement that gives (flow, step, newest version, number of runs)."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {"runs": runs})
        found = cursor.fetchall()
    flows = Workflow.objects.in_bulk([flow for flow, *_ in found])
    versions = Version.objects.in_bulk([version for _, _, version, _ in found])
    rows = []
    for flow, id, version, number in found:
        step = find(versions[version].definition, id) or {}
        rows.append(Row(label_of(step) or id, flows[flow].name, number, step.get("type", "")))
    return rows


def _unfinished(runs: list[int]) -> list[Row]:
    """By what they do: those that wait, those that a worker has or could take, those that ask a person."""
    unfinished = Run.objects.filter(pk__in=runs, state__in=UNFINISHED)
    asking = unfinished.filter(state=RunState.ATTENTION).count()
    waiting = Dispatch.objects.filter(run__in=unfinished.filter(state=RunState.OPEN), state=DispatchState.WAITING).count()
    counted = {"waiting": waiting, "attention": asking, "running": unfinished.count() - asking - waiting}
    return [Row(state, "", number) for state, number in counted.items() if number]


def _flows(runs: list[int]) -> list[Row]:
    found = Run.objects.filter(pk__in=runs).values_list("workflow__name", "version__number").annotate(number=Count("pk"))
    return [Row(str(Version(number=version)), flow, number) for flow, version, number in found.order_by("-number", "workflow__name", "version__number")]
