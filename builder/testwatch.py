"""A test run as the canvas shows it: the state of every step of the draft, laid over its card."""

from __future__ import annotations

from typing import Any

from django.http import Http404

from runtime.clock import business_now
from runtime.definition import walk
from runtime.models import Run, Workflow
from runtime.states import UNFINISHED

from .runcanvas import by_step
from .runload import fingerprint, load
from .runtree import Node, most_telling, tree
from .templatetags.states import state_word

TELLING = ("attention", "failed", "running", "waiting", "queued", "succeeded", "cancelled", "skipped")
"""Of a step that ran several times, in a loop, the first of these counts: while it goes on, what comes next before what was."""


def watched(workflow: Workflow, run_id: int) -> dict[str, Any]:
    """What the bar shows, and `steps`: id -> {state, word}. Http404 for a run that is no test of this flow."""
    rev = fingerprint(run_id)
    run = Run.objects.select_related("version", "dispatch").filter(pk=run_id, workflow=workflow, test=True).first()
    if run is None:
        raise Http404("There is no such test run of this flow.")
    definition = run.version.definition
    nodes = tree(definition, load(run, definition), run, business_now())
    live = run.state in UNFINISHED
    at = next((node.name for node in nodes if node.path == most_telling(nodes)), "")
    return {
        "workflow": workflow,
        "run": run,
        "live": live,
        "at": at,
        "rev": rev,
        "steps": _states(definition, nodes, live),
        "shapes": TELLING,
    }


def _states(definition: dict[str, Any], nodes: list[Node], live: bool) -> dict[str, dict[str, str]]:
    found = {step: node.state for step, node in by_step(nodes, TELLING).items()}
    rest = "queued" if live else "skipped"
    ids = [step["id"] for step in walk(definition.get("steps") or [])]
    return {step: _told(found.get(step, rest)) for step in ids}


def _told(state: str) -> dict[str, str]:
    return {"state": state, "word": state_word(state)}
