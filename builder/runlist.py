"""The run list: filters, pages by key, counts that stop counting, and where each run stands.

Nothing here counts or sorts a whole table: pages go by id, counts end at a thousand, titles are searched among the last
hundred thousand runs, or the last of the span of time that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import F, Max, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.http import QueryDict
from django.utils import timezone

from builder import access, timespan
from builder.editing.places import name_at
from runtime.clock import business_now
from runtime.models import Run, RunSearch, Version, Workflow
from runtime import slots
from runtime.states import DispatchState, RunState

PER_PAGE = 50
COUNT_TO = 1_000
SEARCHED = 100_000
HOURS = 24
DAY_READ = 20_000
DAY_KEPT = 30
STATES = ("running", "waiting", "attention", "failed", "succeeded", "cancelled")
MORE = ("version", "error", "trigger", "key", "since", "from", "until", "longer", "dearer")
NAMES = {"from": "begin"}
"""Where a field of `Filter` has another name than in an address."""
MOST_DECLARING, MOST_READ = 1_000, 20_000
LEAST_BEGINNING = 3
"""Fewer letters than these are looked for as a whole value."""
LAST_LETTER = "\U0010ffff"
SINCE = {
    "1h": ("The last hour", timedelta(hours=1)),
    "24h": ("The last 24 hours", timedelta(hours=24)),
    "7d": ("The last 7 days", timedelta(days=7)),
    "30d": ("The last 30 days", timedelta(days=30)),
}
LONGEST = 10 * 365 * 86_400
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", re.ASCII)
_KIND = re.compile(r"[0-9a-f]{16}")
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
class Filter:
    """What the list is narrowed to. `before` and `after` are run ids: the page of older runs, the page of newer ones."""

    state: str = ""
    flow: int | None = None
    search: str = ""
    tests: bool = False
    version: int | None = None
    error: str = ""
    """The key of an error's kind, see `runtime.faults`."""
    trigger: str = ""
    key: str = ""
    since: str = ""
    begin: str = ""
    until: str = ""
    """The span of time in which it began, without `until` itself: as `2026-05-11T17:48` in the installation's time zone, or a
    day, which begins at midnight."""
    longer: int | None = None
    """Seconds that an ended run took at least."""
    dearer: Decimal | None = None
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
            version=_number(query.get("version", "")),
            error=found[0] if (found := _KIND.fullmatch(query.get("error", ""))) else "",
            trigger=_text(query.get("trigger", ""), 64),
            key=_text(query.get("key", ""), 300),
            since=query.get("since", "") if query.get("since", "") in SINCE else "",
            begin=_moment(query.get("from", "")),
            until=_moment(query.get("until", "")),
            longer=_number(query.get("longer", "")),
            dearer=_amount(query.get("dearer", "")),
            before=_number(query.get("before", "")),
            after=_number(query.get("after", "")),
        )

    def query(self, **changed: Any) -> str:
        """The query string of this filter with some things changed; a changed filter begins at the first page."""
        values = {"state": self.state, "flow": self.flow, "q": self.search, "tests": "1" if self.tests else ""}
        values |= {name: getattr(self, NAMES.get(name, name)) for name in MORE} | changed
        query = QueryDict(mutable=True)
        query.update({name: str(value) for name, value in values.items() if value not in ("", None)})
        return query.urlencode()


    @property
    def narrowed(self) -> bool:
        return bool(self.state or self.search or self.flow or self.more)

    @property
    def more(self) -> int:
        """How many of the less usual filters are set."""
        return sum(getattr(self, NAMES.get(name, name)) not in ("", None) for name in MORE)

    @property
    def bounded(self) -> bool:
        """Whether it looks for what no index finds: then it looks among the latest runs of its span of time."""
        return bool(self.search or self.trigger or self.key or self.longer or self.dearer is not None)

    @property
    def span(self) -> tuple[datetime | None, datetime | None]:
        """The later of the two beginnings that it may have, and its end."""
        begins = [at(self.begin)] if self.begin else []
        begins += [business_now() - SINCE[self.since][1]] if self.since else []
        return max(begins, default=None), at(self.until) if self.until else None


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
    if chosen.since or chosen.begin or chosen.until:
        runs = runs.filter(timespan.between(*chosen.span))
    if chosen.bounded:
        runs = _among_the_latest(user, runs, chosen)
    if chosen.version is not None:
        versions = Version.objects.filter(number=chosen.version, **({"workflow": chosen.flow} if chosen.flow is not None else {}))
        runs = runs.filter(version_id__in=list(versions.values_list("pk", flat=True)))
    if chosen.error:
        runs = runs.alias(kind=KeyTextTransform("kind", "error")).filter(state=RunState.FAILED, kind=chosen.error)
    return runs.filter(in_state(chosen.state)) if chosen.state else runs


def _among_the_latest(user: Any, runs: QuerySet[Run], chosen: Filter) -> QuerySet[Run]:
    """A search by number finds runs of any age, or of the span that was asked for."""
    end = at(chosen.until) if chosen.until else None
    last = timespan.first_since(end + timespan.SLACK) if end else Run.objects.aggregate(last=Max("pk"))["last"] or 0
    latest = Q(pk__gt=last - SEARCHED)
    if chosen.search:
        runs = runs.filter(_found_by(user, chosen.search, latest))
    else:
        runs = runs.filter(latest)
    if chosen.trigger:
        runs = runs.filter(trigger_key=chosen.trigger)
    if chosen.key:
        runs = runs.filter(Q(idempotency_key=chosen.key) | Q(idempotency_key=f"key:{chosen.key}"))
    if chosen.longer:
        runs = runs.filter(ended_at__gt=F("created_at") + timedelta(seconds=min(chosen.longer, LONGEST)))
    return runs.filter(cost__gte=chosen.dearer) if chosen.dearer is not None else runs


def in_state(state: str) -> Q:
    """An open run is running or waiting as its dispatch row says."""
    if state == "running":
        return Q(state=RunState.OPEN, dispatch__state__in=[DispatchState.READY, DispatchState.CLAIMED])
    if state == "waiting":
        return Q(state=RunState.OPEN, dispatch__state=DispatchState.WAITING)
    return Q(state=state)


def _found_by(user: Any, text: str, latest: Q) -> Q:
    """The run of this number; those with this value, or one that begins like this, in what their flows declare; and, among
    the latest runs, the key or words of the title."""
    worded, known = latest & (Q(title__icontains=text) | Q(idempotency_key=text)), _declaring(user, text.lower())
    if number := _NUMBER.fullmatch(text):
        digits = re.sub(r"\D", "", number[1])
        known += [int(digits)] if len(digits) < 19 else []
    if not known:
        return worded
    # Not as two conditions of one query, for which all runs might be walked through.
    both = Run.objects.filter(worded).values("pk").union(Run.objects.filter(pk__in=known).values("pk"), all=True)
    return Q(pk__in=both)


def _declaring(user: Any, text: str) -> list[int]:
    """The numbers themselves: as part of the query they would have it read every run."""
    found = _own(user, RunSearch.objects.filter(value=text).order_by("-run_id"))
    if len(text) >= LEAST_BEGINNING:
        found += _own(user, RunSearch.objects.filter(value__gte=text, value__lt=text + LAST_LETTER))
    return found


def _own(user: Any, rows: QuerySet[RunSearch]) -> list[int]:
    """Where there are too many, those that the person may see: other teams' must not crowd them out."""
    found = list(rows.values_list("run_id", flat=True)[:MOST_READ])
    if len(found) > MOST_DECLARING:
        found = list(access.runs_for(user).filter(pk__in=found).order_by("-pk").values_list("pk", flat=True)[:MOST_DECLARING])
    return found


def counts(user: Any, chosen: Filter) -> dict[str, str]:
    """State -> how many, "1,000+" beyond a thousand; "" is all of them. Searches are not counted: each count is a search."""
    if chosen.bounded:
        return dict.fromkeys(("", *STATES), "")
    everything = matching(user, replace(chosen, state="", before=None, after=None)).values("pk")
    counted = {}
    for state in ("", *STATES):
        found = everything.filter(in_state(state)) if state else everything
        # Newest first, by an index: else Postgres may look for the few of a state among all runs, from the oldest on.
        found = found.order_by() if state in ("running", "waiting") else found.order_by("-pk")
        found = found[: COUNT_TO + 1].count()
        counted[state] = f"{COUNT_TO:,}+" if found > COUNT_TO else f"{found:,}"
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


def _by_run(sql: str, runs: list[int]) -> dict[int, tuple]:
    if not runs:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(sql, [runs])
        return {run: tuple(rest) for run, *rest in cursor.fetchall()}


def _text(text: str, longest: int) -> str:
    return text.strip()[:longest].replace("\x00", "")


def _moment(text: str) -> str:
    """The text, if it is a time; a day as its midnight."""
    if at(text) is None:
        return ""
    return text if "T" in text else f"{text}T00:00"


def at(text: str) -> datetime | None:
    """`2026-05-11T17:48`, or a day, in the installation's time zone."""
    try:
        return timezone.make_aware(datetime.fromisoformat(text)) if _MOMENT.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _amount(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value < 1_000_000 else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


__all__ = ["Filter", "Page", "Standing", "chosen", "counts", "flows", "last_day", "page", "standings"]
