"""Flows that would start themselves, by way of what the team's other flows start. A run that does ends ten flows deep; of a flow
from elsewhere it is more likely a mistake, so an import refuses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtime.definition import Problem, walk
from runtime.models import Team, Workflow


def circles(definition: dict[str, Any], team: Team) -> Iterator[Problem]:
    """One for each sub-flow step that leads back to the flow itself, by its name."""
    own = str(definition["name"])
    live = Workflow.objects.filter(team=team, deleted_at=None, live_version__isnull=False)
    begins: dict[str, list[str]] = {}
    if any(_started(definition)):
        begins = {name: [flow for _, flow in _started(found)] for name, found in live.values_list("name", "live_version__definition")}
    for step, flow in _started(definition):
        if way := _way(flow, own, begins):
            words = f"This flow would start itself: {' → '.join([own, *way])}. Let the step run another flow, or import it by another name."
            yield Problem(step, "config.flow", words)


def _started(definition: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(step id, name of the flow that it runs)."""
    for step in walk(definition.get("steps") or []):
        if step["type"] == "workflow" and (flow := (step.get("config") or {}).get("flow")):
            yield step["id"], str(flow)


def _way(flow: str, own: str, begins: Mapping[str, list[str]]) -> list[str]:
    """The shortest way from a flow to one's own, both included; empty when there is none."""
    ways, seen = [[flow]], {flow}
    for way in ways:  # grows while it is gone through
        if way[-1] == own:
            return way
        for onward in begins.get(way[-1], []):
            if onward not in seen:
                seen.add(onward)
                ways.append([*way, onward])
    return []
