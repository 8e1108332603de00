"""The run list: filters, pages by key, counts that stop counting, and where each run stands.

Nothing here counts or sorts a whole table: pages go by id, counts end at a thousand, titles are searched among the last
hundred thousand runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.db.models import Max, Q, QuerySet
from django.http import QueryDict

from builder import access
from runtime.definition import find
from runtime.models import Run, Workflow
from runtime.paths import scope_of, step_of
from runtime.states import DispatchState, RunState

PER_PAGE = 50
COUNT_TO = 1_000
SEARCHED = 100_000
HOURS = 24
DAY_READ = 20_000
DAY_KEPT = 30
STATES = ("running", "waiting", "attention", "failed", "succeeded", "cancelled")
_NUMBER = re.compile(r"(?:run\s*)?#?\s*(\d[\d,. ]{0,24})", re.IGNORECASE)

# Where unfinished and failed runs stand, one row per run at most from each: the latest open wait, the call under way, the
# open loop.
WAITS = """
select asked.id, w.path, w.kind, w.due_at, w.data from unnest(%s::bigint[]) as asked(id) cross join lateral (
    select path, kind, due_at, data from wait where run_id = asked.id and state = 'open'
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
TRIES = """
select asked.id, max(a.n) from unnest(%s::bigint[], %s::text[], %s::text[]) as asked(id, scope, path)
join attempt a on a.run_id = asked.id and a.scope = asked.scope and a.path = asked.path group by asked.id
"""
# The last day by hours of age; the row without an age is the whole of it.
LAST_DAY = """
with latest as ({latest}), today as materialized (select holdfast_now() as now)
select floor(extract(epoch from now - created_at) / 3600)::int as age, count(*),
    count(*) filter (where state = 'failed'), count(*) filter (where state = 'succeeded'), sum(cost),
    percentile_cont(0.5) within group (order by ended_at - created_at)
from latest, today where created_at > now - interval '24 hours' group by grouping sets ((1), ())
"""


@dataclass(frozen=True, slots=True)
class Filter:
    """What the list is narrowed to. `before` and `after` are run ids: the page of older runs, the page of newer ones."""

    state: str = ""
    flow: int | None = None
    search: str = ""
    tests: bool = False
    before: int | None = None
    after: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Filter:
        state = query.get("state", "")
        return cls(
            state=state if state in STATES else "",
            flow=_number(query.get("flow", "")),
            search=query.get("q", "").strip()[:200].replace("\x00", ""),
            tests=query.get("tests") == "1",
            before=_number(query.get("before", "")),
            after=_number(query.get("after", "")),
        )

    def query(self, **changed: Any) -> str:
        """The query string of this filter with some things changed; a changed filter begins at the first page."""
        values = {"state": self.state, "flow": self.flow, "q": self.search, "tests": "1" if self.tests else ""} | changed
        query = QueryDict(mutable=True)
        query.update({name: str(value) for name, value in values.items() if value not in ("", None)})
        return query.urlencode()


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


def matching(user: Any, chosen: Filter) -> QuerySet[Run]:
    runs = access.runs_for(user)
    if not chosen.tests:
        runs = runs.filter(test=False)
    if chosen.flow is not None:
        runs = runs.filter(workflow_id=chosen.flow)
    if chosen.search:
        runs = runs.filter(_found_by(chosen.search))
    return runs.filter(in_state(chosen.state)) if chosen.state else runs


def in_state(state: str) -> Q:
    """An open run is running or waiting as its dispatch row says."""
    if state == "running":
        return Q(state=RunState.OPEN, dispatch__state__in=[DispatchState.READY, DispatchState.CLAIMED])
    if state == "waiting":
        return Q(state=RunState.OPEN, dispatch__state=DispatchState.WAITING)
    return Q(state=state)


def _found_by(text: str) -> Q:
    """The run of this number; its key; or words of its title, among the latest runs."""
    latest = (Run.objects.aggregate(last=Max("pk"))["last"] or 0) - SEARCHED
    found = Q(pk__gt=latest) & (Q(title__icontains=text) | Q(idempotency_key=text))
    if number := _NUMBER.fullmatch(text):
        digits = re.sub(r"\D", "", number[1])
        found |= Q(pk=int(digits)) if len(digits) < 19 else Q()
    return found


def counts(user: Any, chosen: Filter) -> dict[str, str]:
    """State -> how many, "1,000+" beyond a thousand; "" is all of them. Searches are not counted: each count is a search."""
    if chosen.search:
        return dict.fromkeys(("", *STATES), "")
    base = Filter(flow=chosen.flow, search=chosen.search, tests=chosen.tests)
    counted = {}
    for state in STATES:
        number = matching(user, Filter(state, base.flow, base.search, base.tests)).order_by().values("pk")[: COUNT_TO + 1].count()
        counted[state] = f"{COUNT_TO:,}+" if number > COUNT_TO else f"{number:,}"
    number = matching(user, base).order_by().values("pk")[: COUNT_TO + 1].count()
    counted[""] = f"{COUNT_TO:,}+" if number > COUNT_TO else f"{number:,}"
    return counted


def chosen(user: Any, posted: QueryDict, most: int) -> list[int]:
    """Ids of the runs that a form means, oldest first: those ticked, or all that its filter finds. Only runs of teams in
    which the person is operator."""
    mine = access.runs_for(user, access.OPERATOR)
    if posted.get("all") == "1":
        meant = mine.filter(pk__in=matching(user, Filter.of(posted)).order_by().values("pk"))
    else:
        meant = mine.filter(pk__in=[number for text in posted.getlist("run")[:most] if (number := _number(text)) is not None])
    return list(meant.order_by("pk").values_list("pk", flat=True)[:most])


def last_day(user: Any) -> dict[str, Any]:
    """The last 24 hours among the latest runs: by hour how many began and how many of them failed, and what they came to."""
    return cache.get_or_set(f"runs:day:{user.pk}", lambda: _last_day(user), DAY_KEPT)


def _last_day(user: Any) -> dict[str, Any]:
    columns = ("created_at", "ended_at", "state", "cost")
    latest = access.runs_for(user).filter(test=False).order_by("-pk").values(*columns)[:DAY_READ]
    sql, parameters = latest.query.sql_with_params()
    hours, failed, whole = [0] * HOURS, [0] * HOURS, (0, 0, 0, None, None)
    with connection.cursor() as cursor:
        cursor.execute(LAST_DAY.format(latest=sql), parameters)
        for age, *told in cursor.fetchall():
            if age is None:
                whole = tuple(told)
            elif 0 <= age < HOURS:
                hours[-1 - age], failed[-1 - age] = told[0], told[1]
    number, bad, good, cost, took = whole
    rate = f"{100 * good / (good + bad):.1f}%" if good + bad else ""
    return {"bars": _columns(hours, failed), "runs": number, "failed": bad, "rate": rate, "cost": cost, "median": took}


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


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands: the step, what goes on there, and how many attempts it took."""

    step: str = ""
    words: str = ""
    moment: Any = None
    tries: int | None = None


def standings(runs: list[Run]) -> dict[int, Standing]:
    """Run id -> where it stands, with four queries for the page."""
    going = [run.pk for run in runs if run.state in (RunState.OPEN, RunState.ATTENTION)]
    waits, calls, loops = _by_run(WAITS, going), _by_run(CALLS, going), _by_run(LOOPS, going)
    places = {run.pk: _place(run, waits.get(run.pk), calls.get(run.pk), loops.get(run.pk)) for run in runs}
    tries = _tries({pk: path for pk, (path, *_) in places.items() if path})
    return {
        run.pk: Standing(_step_name(run, path) if path else _ended_word(run), words, moment, tries.get(run.pk))
        for run in runs
        for path, words, moment in [places[run.pk]]
    }


def _place(run: Run, wait: tuple | None, call: tuple | None, loop: tuple | None) -> tuple[str, str, Any]:
    """(path, words, moment for the end of the words)."""
    if run.state in (RunState.FAILED, RunState.CANCELLED) or run.error:
        error = run.error or {}
        return error.get("path") or "", str(error.get("message") or ""), None
    if wait and (wait[1] == "person" or not call):
        path, kind, due, data = wait
        return path, *_waiting_words(kind, due, data)
    if call:
        return call[0], f"attempt {call[1]}, since", call[2]
    if loop:
        path, cursor, total = loop
        return path, f"Item {cursor:,} of {total:,}" if total else f"Iteration {cursor:,}", None
    return "", "", None


def _waiting_words(kind: str, due: Any, data: dict[str, Any]) -> tuple[str, Any]:
    words = {
        "person": ("Unclear if it happened", None),
        "approval": ("Waits for an answer, expires", due),
        "callback": ("Waits for a call, expires", due),
        "retry": ("Retrying", due),
        "timer": ("Wakes", due),
    }
    return words.get(kind, ("Waits", due))


def _ended_word(run: Run) -> str:
    return {RunState.SUCCEEDED: "Done", RunState.CANCELLED: "Cancelled"}.get(run.state, "")


def _step_name(run: Run, path: str) -> str:
    step = find(run.version.definition, step_of(path)) or {}
    return step.get("name") or step_of(path)


def _tries(paths: dict[int, str]) -> dict[int, int]:
    if not paths:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(TRIES, [list(paths), [scope_of(path) for path in paths.values()], list(paths.values())])
        return dict(cursor.fetchall())


def _by_run(sql: str, runs: list[int]) -> dict[int, tuple]:
    if not runs:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(sql, [runs])
        return {run: tuple(rest) for run, *rest in cursor.fetchall()}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


__all__ = ["Filter", "Page", "Standing", "chosen", "counts", "flows", "last_day", "page", "standings"]
