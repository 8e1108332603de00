"""The list of flows: newest edits first, with what their last runs say. Nothing here counts a whole table of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from runtime.models import Trigger, Workflow
from runtime.triggers import trigger_kinds

from .access import workflows_for
from .editing.triggers import trigger_label
from .numbers import number_of

PER_PAGE = 25
SPARK = 20
LOOKED_AT = 1_000
"""Runs per flow that the figures look at, from the newest back."""

# What the newest runs of each flow say: their states, how many of the last seven days succeeded, how many in a day. Their
# numbers come from the index alone, and then row by row (`offset 0`): else Postgres walks back through the runs of all flows.
FIGURES = """
select asked.id, coalesce(last.states, '{}'), coalesce(week.ended, 0), coalesce(week.good, 0), coalesce(week.today, 0),
       coalesce(week.seen, 0)
from unnest(%(flows)s::bigint[]) as asked(id)
left join lateral (
    select array_agg(
        case when r.state = 'open' then coalesce(d.state, 'ready') else r.state end order by r.id
    ) as states
    from (
        select newest.id, one.state from (
            select id from run where workflow_id = asked.id order by id desc limit %(most)s
        ) newest cross join lateral (select state, test from run where run.id = newest.id offset 0) one
        where not one.test order by newest.id desc limit %(spark)s
    ) r
    left join dispatch d on d.run_id = r.id
) last on true
left join lateral (
    select count(*) as seen,
           count(*) filter (where ended_at is not null and state <> 'cancelled'
                            and created_at > holdfast_now() - interval '7 days') as ended,
           count(*) filter (where state = 'succeeded' and created_at > holdfast_now() - interval '7 days') as good,
           count(*) filter (where created_at > holdfast_now() - interval '1 day') as today
    from (
        select one.* from (
            select id from run where workflow_id = asked.id order by id desc limit %(most)s
        ) newest cross join lateral (select state, created_at, ended_at, test from run where run.id = newest.id offset 0) one
        where not one.test
    ) r
) week on true
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """`success` is a percentage of the runs that ended in the last seven days, None where none did."""

    states: tuple[str, ...] = ()
    success: float | None = None
    today: int = 0
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    workflow: Workflow
    figures: Figures
    changed: bool
    icon: str
    next: str
    next_detail: str
    next_at: datetime | None
    next_zone: str
    edited_at: datetime
    edited_by: Any


@dataclass(frozen=True)
class Page:
    rows: list[Row]
    counts: Mapping[str, int]
    newer: str = ""
    older: str = ""
    chosen: str = ""
    search: str = ""
    folder: str = ""
    folders: Mapping[str, int] = field(default_factory=dict)
    filters: list[dict[str, Any]] = field(default_factory=list)


def page_of(user: Any, *, state: str = "", search: str = "", folder: str = "", before: str = "") -> Page:
    """One page. `before` is the key of the last row of the page before it: time and id."""
    mine = workflows_for(user)
    folders = folders_of(mine)
    folder = folder if folder in folders else ""
    if folder:
        mine = mine.filter(folder=folder)
    found = _in_state(mine, state)
    if search:
        found = found.filter(Q(name__icontains=search) | Q(folder__icontains=search))
    found = found.annotate(edited=Coalesce("draft__updated_at", "created_at")).order_by(F("edited").desc(), "-id")
    if key := _key(before):
        found = found.filter(Q(edited__lt=key[0]) | Q(edited=key[0], id__lt=key[1]))
    flows = list(found.select_related("live_version", "draft__updated_by", "created_by")[: PER_PAGE + 1])
    more, flows = len(flows) > PER_PAGE, flows[:PER_PAGE]
    figures, triggers = figures_of(flows), _triggers_of(flows)
    rows = [_row(flow, figures.get(flow.pk, Figures()), triggers.get(flow.pk, [])) for flow in flows]
    older = f"{rows[-1].edited_at.isoformat()}~{flows[-1].pk}" if more else ""
    counts = {name: _in_state(mine, name).count() for name in ("", "live", "paused", "draft")}
    return Page(rows, counts, older=older, chosen=state, search=search, folder=folder, folders=folders)


def folders_of(flows: QuerySet[Workflow]) -> dict[str, int]:
    """Name -> how many flows are in it, by name."""
    counted = flows.exclude(folder="").order_by("folder").values_list("folder").annotate(Count("pk"))
    return dict(counted)


def figures_of(flows: list[Workflow]) -> dict[int, Figures]:
    if not flows:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(FIGURES, {"flows": [flow.pk for flow in flows], "spark": SPARK, "most": LOOKED_AT})
        return {
            flow: Figures(
                tuple(states), 100 * good / ended if ended else None, today, seen == LOOKED_AT and today == seen
            )
            for flow, states, ended, good, today, seen in cursor.fetchall()
        }


def _in_state(flows: QuerySet[Workflow], state: str) -> QuerySet[Workflow]:
    match state:
        case "live":
            return flows.filter(live_version__isnull=False, paused=False)
        case "paused":
            return flows.filter(live_version__isnull=False, paused=True)
        case "draft":
            return flows.filter(live_version__isnull=True)
    return flows


def _triggers_of(flows: list[Workflow]) -> dict[int, list[Trigger]]:
    found: dict[int, list[Trigger]] = {}
    for trigger in Trigger.objects.filter(workflow__in=flows, enabled=True).order_by("id"):
        found.setdefault(trigger.workflow_id, []).append(trigger)
    return found


def _row(flow: Workflow, figures: Figures, triggers: list[Trigger]) -> Row:
    draft = getattr(flow, "draft", None)
    definition = draft.definition if draft else flow.live_version.definition if flow.live_version else {}
    declared = definition.get("triggers") or []
    live = flow.live_version.definition if flow.live_version else None
    words, detail, at, zone = _next(flow, declared, triggers)
    return Row(
        workflow=flow,
        figures=figures,
        changed=bool(live) and bool(draft) and draft.definition != live,
        icon=declared[0]["type"] if declared else "form",
        next=words,
        next_detail=detail,
        next_at=at,
        next_zone=zone,
        edited_at=draft.updated_at if draft else flow.created_at,
        edited_by=draft.updated_by if draft and draft.updated_by else flow.created_by,
    )


def _next(
    flow: Workflow, declared: list[dict[str, Any]], triggers: list[Trigger]
) -> tuple[str, str, datetime | None, str]:
    """(words, small words, time, its zone): a schedule's time is shown where its clock stands."""
    if flow.live_version is None:
        return "Not published", "", None, ""
    if flow.paused:
        return "Paused", flow.paused_why or "takes no new runs", None, ""
    due = [trigger for trigger in triggers if trigger.next_at]
    if due:
        soonest = min(due, key=lambda trigger: trigger.next_at)
        line = trigger_kinds()[soonest.type].line(soonest.config).removeprefix("Schedule · ")
        return "", line, soonest.next_at, str(soonest.config.get("zone") or "")
    first = triggers[0] if triggers else None
    if first is None:
        return "By hand", "or from a program", None, ""
    names = {one["id"]: trigger_label(one) for one in declared}
    return (
        {"webhook": "When called", "form": "By a form", "ended": "After another", "manual": "By hand", "api": "From a program"}.get(first.type, first.type),
        names.get(first.key, first.key),
        None,
        "",
    )


def _key(text: str) -> tuple[datetime, int] | None:
    moment, _, number = text.partition("~")
    try:
        at = parse_datetime(moment)
    except ValueError:
        return None
    pk = number_of(number)
    if at is None or pk is None:
        return None
    return (at if timezone.is_aware(at) else at.replace(tzinfo=timezone.get_current_timezone())), pk
