"""Flows that would start themselves, by way of what the team's other flows start. A run that does ends ten flows deep; it is
more likely a mistake than meant, so that neither an import nor publishing lets it through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connection

from runtime.definition import Problem, walk
from runtime.steps import step_types

from .editing.places import label_of

SUB_FLOW_STEPS = """'$.**.steps[*] ? (@.type == "workflow" && @.config.flow.type() == "string")'"""
"""The steps of a definition that run a flow, as a path of Postgres (SQL/JSON) that it takes as `jsonb`."""
# Which flows of the team the names stand for, in a version that is made now.
MEANT = "select name, holdfast_flow(%s, name, clock_timestamp()) from unnest(%s::text[]) as asked(name)"
# What the live versions of some flows run: the flow, its name, the step's label, and the name and the flow that it calls.
RUN_BY = f"""
select distinct w.id, w.name, coalesce(nullif(step ->> 'name', ''), %s), called, holdfast_flow(w.team_id, called, v.created_at)
from workflow w join version v on v.id = w.live_version_id
cross join lateral jsonb_path_query(v.definition::jsonb, {SUB_FLOW_STEPS}) as step
cross join lateral (select step #>> '{{config,flow}}') as named(called)
where w.id = any(%s) and w.deleted_at is null
"""

Reached = tuple[str, int | None, str]
"""A flow by the name that a step calls it, its number where there is one, and the way to it in words."""


def circles(definition: dict[str, Any], team_id: int, workflow_id: int | None = None) -> Iterator[Problem]:
    """One for each sub-flow step that leads back to the flow itself. One that is not made yet is known by its name."""
    own = str(definition["name"])
    steps = list(_started(definition))
    meant = _meant(team_id, {flow for _, _, flow in steps}) if steps else {}
    for step, label, flow in steps:
        if way := _way((flow, meant.get(flow), f"{own}, step “{label}”"), own, workflow_id):
            words = f"This flow would start itself: {way}. Let one of these steps run another flow."
            yield Problem(step, "config.flow", words)


def _started(definition: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(step id, its label, name of the flow that it runs)."""
    for step in walk(definition.get("steps") or []):
        config = step.get("config")
        flow = config.get("flow") if step["type"] == "workflow" and isinstance(config, dict) else None
        if flow and isinstance(flow, str):
            yield step["id"], label_of(step), flow


def _meant(team_id: int, names: Iterable[str]) -> dict[str, int | None]:
    with connection.cursor() as cursor:
        cursor.execute(MEANT, [team_id, sorted(names)])
        return dict(cursor.fetchall())


def _way(first: Reached, own: str, workflow_id: int | None) -> str:
    """The shortest way from a step of one's own back to one's own flow, in words; empty when there is none."""
    seen: set[int] = set()
    reached = [first]
    while reached:
        for name, flow, way in reached:
            if flow is not None and flow == workflow_id or name == own and None in (flow, workflow_id):
                return f"{way} → {own}"
        ways = {flow: way for _, flow, way in reversed(reached) if flow is not None and flow not in seen}
        seen |= ways.keys()
        reached = [
            (called, onward, f"{ways[flow]} → {name}, step “{label}”") for flow, name, label, called, onward in _run_by(ways)
        ]
    return ""


def _run_by(flows: Iterable[int]) -> list[tuple[int, str, str, str, int | None]]:
    with connection.cursor() as cursor:
        cursor.execute(RUN_BY, [step_types()["workflow"].label, list(flows)])
        return cursor.fetchall()
