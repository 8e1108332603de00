"""Finished runs of a version on the draft, or on another version: where they would go another way. Nothing is sent.

The page replays in turns of a second: each answer brings what became of its runs, how far that is, and the next turn.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from runtime.definition import DefinitionError, digest, require
from runtime.models import Role, Run
from runtime.plan import PlanError
from runtime.plans import reason

from .. import comparing, replaying
from ..access import get_workflow
from ..numbers import number_of

CHOICES = (20, 100, 500)
TURN_SECONDS = 1.0


@require_safe
def flow_replay(request: HttpRequest, pk: int) -> HttpResponse:
    """`of` is the version whose runs are taken, `to` what they are tried on, `most` how many, the newest. With `done` the
    next turn of `upto`, the newest of them; `at` is what the turns before have counted by step (`replaying.Tally`)."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    offered = comparing.offered(workflow)
    usual = comparing.before_of(workflow, comparing.DRAFT)
    if usual == comparing.DRAFT and len(offered) > 1:
        usual = offered[1][0]
    taken = comparing.side(workflow, request.GET.get("of", "") or usual)
    other = comparing.side(workflow, request.GET.get("to", "") or comparing.DRAFT)
    most = number_of(request.GET.get("most", "")) or CHOICES[1]
    turn = "done" in request.GET
    if taken is None or other is None or most not in CHOICES or turn and taken.key == comparing.DRAFT:
        raise Http404("There is no such version.")
    context = {"workflow": workflow, "taken": taken, "other": other, "most": most}
    if turn:
        return render(request, "canvas/replayed.html", context | _turn(request, context))
    context |= {"offered": offered, "choices": CHOICES, "section": "flows", "refused": "", "total": 0}
    if taken.key != comparing.DRAFT:
        meant = replaying.finished(workflow, int(taken.key), most)
        asked = {"upto": meant[0] if meant else 0, "done": 0, "differing": 0, "stamp": digest(other.definition)}
        context |= {"total": len(meant), "done": 0, "differing": 0, "next": _address(context, asked)}
    try:
        require(other.definition)
    except DefinitionError as wrong:
        context["refused"] = str(wrong)
    return render(request, "canvas/replay.html", context)


def _turn(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    workflow, other = context["workflow"], context["other"]
    upto, done, differing = (number_of(request.GET.get(name, "")) or 0 for name in ("upto", "done", "differing"))
    meant = replaying.finished(workflow, int(context["taken"].key), context["most"], upto=upto)
    tally = replaying.Tally(context["taken"].definition, other.definition, request.GET.get("at", ""))
    told = {"total": len(meant), "done": done, "differing": differing, "rows": [], "next": "", "tally": tally}
    if request.GET.get("stamp") != digest(other.definition):
        return told | {"moved": True}
    ends = time.monotonic() + TURN_SECONDS
    for run_id in meant[done:]:
        row = _row(run_id, other.definition)
        told["done"] += 1
        if row["refused"] or row["differences"]:
            told["differing"] += 1
            told["rows"].append(row)
            tally.add(row["differences"])
        if time.monotonic() > ends:
            break
    if told["done"] < len(meant):
        asked = {"upto": upto, "done": told["done"], "differing": told["differing"], "stamp": digest(other.definition),
                 "at": tally.text}  # fmt: skip
        told["next"] = _address(context, asked)
    return told


def _row(run_id: int, definition: dict[str, Any]) -> dict[str, Any]:
    """What is to be told of one run."""
    run = Run.objects.select_related("workflow", "version").get(pk=run_id)
    try:
        return {"run": run, "differences": replaying.compared(run, definition), "refused": ""}
    except PlanError as wrong:
        why = reason(run.version.definition, wrong)
        return {"run": run, "differences": [], "refused": f"This version of Holdfast cannot read {run.version}: {why}"}


def _address(context: dict[str, Any], asked: dict[str, Any]) -> str:
    return "?" + urlencode({"of": context["taken"].key, "to": context["other"].key, "most": context["most"], **asked})


urlpatterns = [path("flows/<int:pk>/replay/", flow_replay, name="flow_replay")]
