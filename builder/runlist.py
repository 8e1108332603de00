"""The run list: pages by key, counts that stop counting, and where each run stands. What it is narrowed to: `runfilter`.

Nothing here counts or sorts a whole table: pages go by id, and counts end at a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from django.http import QueryDict

from builder import access
from builder.bounded import counted, written
from builder.editing.places import name_at
from builder.numbers import number_of
from builder.runfilter import STATES, Filter, in_state, matching
from runtime import slots
from runtime.models import Run, Workflow
from runtime.states import RunState

PER_PAGE = 50
COUNT_TO = 1_000
HOURS = 24
DAY_READ = 20_000
DAY_KEPT = 30

# Where unfinished and failed runs stand, one row per run at most from each: the latest open wait, the call under way, the
# open loop.
WAITS = """
select asked.id, w.path, w.kind, w.due_at from unnest(%s::bigint[]) as asked(id) cross join lateral (
    select path, kind, due_at from wait where run_id = asked.id and state = 'open'
    order by (kind = 'person') desc, (kind = 'approval') desc, id desc limit 1
) w
"""
CALLS = """
select asked.id, a.path, a.n, a.started_at from unnest(%s::bigint[]) as asked(id) cross join lateral (
    select path, n, started_at from attempt where run_id = asked.id and ended_at is null order by started_at desc limit 1
) a
"""
LOOPS = """
select asked.id, f.path, f.cursor, f.total from unnest(%s::bigint[]) as asked(id) cross join lateral (
    select path, cursor, total from frame where run_id = asked.id and kind = 'loop' order by path limit 1
) f
"""
# How often the step was called that was called most, of runs with few calls.
TRIES = """
select asked.id, max(a.n) from unnest(%s::bigint[]) as asked(id) cross join lateral (
    select n from attempt where run_id = asked.id limit 501
) a group by asked.id having count(*) <= 500
"""
# The last day by hours of age; the row without an age is the whole of it.
LAST_DAY = """
with latest as ({latest}), today as materialized (select holdfast_now() as now)
select floor(extract(epoch from now - created_at) / 3600)::int as age, count(*),
    count(*) filter (where state = 'failed'), count(*) filter (where state = 'succeeded'), sum(cost) filter (where parent_id is null),
    percentile_cont(0.5) within group (order by ended_at - created_at)
from latest, today where created_at > now - interval '24 hours' group by grouping sets ((1), ())
"""


@dataclass(frozen=True, slots=True)
class Page:
    runs: list[Run]
    newer: int | None
    older: int | None


def page(user: Any, chosen: Filter) -> Page:
    """Fifty runs, newest first, and the keys of the pages beside it."""
    runs = matching(user, chosen).select_related("workflow", "dispatch").prefetch_related("version").defer("input", "output")
    if chosen.after is not None:
        found = list(runs.filter(pk__gt=chosen.after).order_by("pk")[: PER_PAGE + 1])
        more_newer, shown = len(found) > PER_PAGE, found[:PER_PAGE][::-1]
        more_older = bool(shown)
    else:
        older = runs.filter(pk__lt=chosen.before) if chosen.before is not None else runs
        found = list(older.order_by("-pk")[: PER_PAGE + 1])
        more_older, shown = len(found) > PER_PAGE, found[:PER_PAGE]
        more_newer = chosen.before is not None
    return Page(
        shown,
        newer=(shown[0].pk if shown else (chosen.before or 1) - 1) if more_newer else None,
        older=shown[-1].pk if more_older and shown else None,
    )


def counts(user: Any, chosen: Filter) -> dict[str, str]:
    """State -> how many, "1,000+" beyond a thousand; "" is all of them. Searches are not counted: each count is a search."""
    if chosen.bounded:
        return dict.fromkeys(("", *STATES), "")
    everything = matching(user, replace(chosen, state="", before=None, after=None))
    # Newest first, by an index: else Postgres may look for the few of a state among all runs, from the oldest on.
    newest = everything.order_by("-pk")
    by_state = [(everything if state in ("running", "waiting") else newest).filter(in_state(state)) for state in STATES]
    numbers = counted([newest, *by_state], COUNT_TO)
    return {state: written(number, COUNT_TO) for state, number in zip(("", *STATES), numbers, strict=True)}


def chosen(user: Any, posted: QueryDict, most: int) -> list[int]:
    """Ids of the runs that a form means, oldest first: those ticked, or all that its filter finds. Only runs of teams in
    which the person is operator."""
    mine = access.runs_for(user, access.OPERATOR)
    if posted.get("all") == "1":
        meant = mine.filter(pk__in=matching(user, Filter.of(posted)).order_by().values("pk"))
    else:
        meant = mine.filter(pk__in=[number for text in posted.getlist("run")[:most] if (number := number_of(text)) is not None])
    return list(meant.order_by("pk").values_list("pk", flat=True)[:most])


def last_day(user: Any) -> dict[str, Any]:
    """The last 24 hours among the latest runs: by hour how many began and how many of them failed, and what they came to."""
    return cache.get_or_set(f"runs:day:{user.pk}", lambda: _last_day(user), DAY_KEPT)


def _last_day(user: Any) -> dict[str, Any]:
    columns = ("created_at", "ended_at", "state", "cost", "parent_id")
    latest = access.runs_for(user).filter(test=False).order_by("-pk").values(*columns)[:DAY_READ]
    hours, failed, whole = [0] * HOURS, [0] * HOURS, (0, 0, 0, None, None)
    for age, *told in _hours_of(latest):
        if age is None:
            whole = tuple(told)
        elif 0 <= age < HOURS:
            hours[-1 - age], failed[-1 - age] = told[0], told[1]
    number, bad, good, cost, took = whole
    rate = f"{100 * good / (good + bad):.1f}%" if good + bad else ""
    return {"bars": _columns(hours, failed), "runs": number, "failed": bad, "rate": rate, "cost": cost, "median": took}


def _hours_of(latest: QuerySet[Run]) -> list[tuple]:
    try:
        sql, parameters = latest.query.sql_with_params()
    except EmptyResultSet:  # whoever sees no flow sees no run
        return []
    with connection.cursor() as cursor:
        cursor.execute(LAST_DAY.format(latest=sql), parameters)
        return cursor.fetchall()


def _columns(hours: list[int], failed: list[int]) -> list[dict[str, int]]:
    """Columns above the line, failures below it: places and heights on a drawing of 616 by 60."""
    most, worst = max([*hours, 1]), max([*failed, 1])
    columns = []
    for place, (number, bad) in enumerate(zip(hours, failed, strict=True)):
        up = max(1, round(39 * number / most)) if number else 0
        down = max(3, round(17 * bad / worst)) if bad else 0
        columns.append({"x": place * 26, "top": 40 - up, "up": up, "down": down})
    return columns


def flows(user: Any) -> list[Workflow]:
    """What the flow filter offers."""
    return list(access.workflows_for(user).order_by("name").only("pk", "name")[:500])


WAITING = {
    "person": "Unclear if it happened",
    "approval": "Waits for an answer, expires",
    "callback": "Waits for a call, expires",
    "retry": "Retrying",
    "timer": "Wakes",
}
"""What an open wait is called; all but the first are followed by when it ends."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands: the step, what goes on there, and the most attempts that one of its steps took."""

    step: str = ""
    words: str = ""
    moment: Any = None
    tries: int | None = None


def standings(runs: list[Run]) -> dict[int, Standing]:
    """Run id -> where it stands, with four queries for the page."""
    going = [run.pk for run in runs if run.state in (RunState.OPEN, RunState.ATTENTION)]
    waits, calls, loops = _by_run(WAITS, going), _by_run(CALLS, going), _by_run(LOOPS, going)
    places = {run.pk: _place(run, waits.get(run.pk), calls.get(run.pk), loops.get(run.pk)) for run in runs}
    queued = slots.standings([run.pk for run in runs if getattr(getattr(run, "dispatch", None), "queued", False)])
    places |= {run: ("", queue_words(standing), None) for run, standing in queued.items()}
    tries = {run: found for run, (found,) in _by_run(TRIES, [run.pk for run in runs]).items()}
    return {
        run.pk: Standing(
            name_at(run.version.definition, path) if path else _ended_word(run), words, moment,
            tries.get(run.pk, 1 if run.started_at else None),
        )
        for run in runs
        for path, words, moment in [places[run.pk]]
    }


def queue_words(standing: slots.Standing) -> str:
    """Where a queued run stands, and why."""
    of_key = f" of “{standing.key}”" if standing.key else ""
    more = "+" * (standing.before >= slots.MOST_COUNTED)
    before = f"behind {standing.before}{more}{of_key}. " if standing.before else f"next{of_key} in turn. "
    return before + standing.why


def _place(run: Run, wait: tuple | None, call: tuple | None, loop: tuple | None) -> tuple[str, str, Any]:
    """(path, words, moment for the end of the words)."""
    if run.state in (RunState.FAILED, RunState.CANCELLED) or run.error:
        error = run.error or {}
        return error.get("path") or "", str(error.get("message") or ""), None
    if wait and (wait[1] == "person" or not call):
        path, kind, due = wait
        return path, WAITING.get(kind, "Waits"), None if kind == "person" else due
    if call:
        return call[0], f"attempt {call[1]}, since", call[2]
    if loop:
        path, cursor, total = loop
        return path, f"Item {cursor:,} of {total:,}" if total else f"Iteration {cursor:,}", None
    return "", "", None


def _ended_word(run: Run) -> str:
    return {RunState.SUCCEEDED: "Done", RunState.CANCELLED: "Cancelled"}.get(run.state, "")


def _by_run(sql: str, runs: list[int]) -> dict[int, tuple]:
    if not runs:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(sql, [runs])
        return {run: tuple(rest) for run, *rest in cursor.fetchall()}
