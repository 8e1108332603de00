"""Trying things out from the builder, and starting the live flow by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from runtime.clock import business_now
from runtime.definition import DefinitionError
from runtime.expressions import ExpressionError
from runtime.jsonvalues import BadJson, loads_strict
from runtime.models import Role, Run, StepResult, Workflow
from runtime.starts import start
from runtime.states import UNFINISHED
from runtime.triggers.manual import fields_of, read_form

from ..access import get_workflow
from ..board import Board
from ..dataflow import names_at
from ..dataflow.samples import trigger_shape
from ..dataflow.shapes import MISSING, sample_of
from ..dryrun import dry_run
from ..editing.triggers import trigger_label
from ..testruns import start_step_test, start_test

BY_HAND = "manual"


@require_POST
def step_test(request: HttpRequest, pk: int) -> HttpResponse:
    """Without an effect; with `real`, as a test run of this step alone."""
    board = Board.of(get_workflow(request.user, pk, Role.BUILDER))
    step = request.POST.get("step", "")
    names = names_at(board.definition, step, board.samples)
    if not request.POST.get("real"):
        shown = dry_run(board.definition, step, names, board.workflow.team_id)
        return render(request, "canvas/test_shown.html", {"shown": shown})
    try:
        started = start_step_test(board.workflow, board.definition, step, names, user=request.user)
    except (ExpressionError, ValueError) as wrong:
        return render(request, "canvas/test_shown.html", {"shown": {"kind": "failure", "text": str(wrong)}})
    return _result(request, board.workflow, started.run_id, step)


@require_safe
def test_result(request: HttpRequest, pk: int) -> HttpResponse:
    """Where a test run of one step stands; asks again by itself until it has ended."""
    workflow, run = get_workflow(request.user, pk), request.GET.get("run", "")
    if not run.isdecimal() or len(run) > 18:
        raise Http404("There is no such run.")
    return _result(request, workflow, int(run), request.GET.get("step", ""))


def _result(request: HttpRequest, workflow: Workflow, run_id: int, step: str) -> HttpResponse:
    run = Run.objects.filter(pk=run_id, workflow=workflow, test=True).first()
    if run is None:
        raise Http404("There is no such run.")
    result = StepResult.objects.filter(run_id=run_id, step=step).order_by("-finished_at").first()
    context = {"workflow": workflow, "run": run, "step": step, "result": result, "waiting": run.state in UNFINISHED}
    return render(request, "canvas/test_result.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def test_run(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks for the input, POST starts the draft as a test run and opens its page."""
    board = Board.of(get_workflow(request.user, pk, Role.BUILDER))
    definition = board.definition
    triggers = definition.get("triggers") or []
    if request.method != "POST":
        return _ask(request, board, definition, triggers, test=True)
    try:
        key, input_, wrong = _input(request, triggers)
        if wrong:
            return _ask(request, board, definition, triggers, test=True, wrong=wrong, status=422)
        started = start_test(board.workflow, definition, trigger_key=key, input=input_, user=request.user)
    except (BadJson, DefinitionError) as problem:
        return _ask(request, board, definition, triggers, test=True, message=str(problem), status=422)
    return HttpResponseClientRedirect(reverse("run", args=[started.run_id]))


@require_http_methods(["GET", "HEAD", "POST"])
def run_now(request: HttpRequest, pk: int) -> HttpResponse:
    """The live version, started by a person through the form of its manual trigger."""
    board = Board.of(get_workflow(request.user, pk, Role.OPERATOR))
    live = board.live
    definition = live.definition if live else {}
    triggers = (
        [one for one in definition.get("triggers") or [] if one["type"] == "manual"] or definition.get("triggers") or []
    )
    if request.method != "POST" or live is None or board.workflow.paused:
        return _ask(request, board, definition, triggers, test=False)
    try:
        key, input_, wrong = _input(request, triggers)
        if wrong:
            return _ask(request, board, definition, triggers, test=False, wrong=wrong, status=422)
    except BadJson as problem:
        return _ask(request, board, definition, triggers, test=False, message=str(problem), status=422)
    started = start(live, trigger_key=key, input=input_, user=request.user)
    return HttpResponseClientRedirect(reverse("run", args=[started.run_id]))


def _input(request: HttpRequest, triggers: list[dict[str, Any]]) -> tuple[str, dict[str, Any], dict[str, str]]:
    """(trigger key, the run's input, what is wrong by field). Raises BadJson."""
    chosen = next(
        (one for one in triggers if one["id"] == request.POST.get("trigger")), triggers[0] if triggers else None
    )
    if chosen is None:
        return BY_HAND, {"body": {}}, {}
    if chosen["type"] == "manual":
        body, wrong = read_form(fields_of(chosen.get("config") or {}), request.POST)
        return chosen["id"], {"body": body}, wrong
    if chosen["type"] == "schedule":
        now = business_now().isoformat()
        return chosen["id"], {"scheduled_at": now, "occurrence": f"by hand@{now}"}, {}
    body = loads_strict((request.POST.get("body") or "{}").encode(), root="body")
    more = {"headers": {}, "query": {}, "method": "POST"} if chosen["type"] == "webhook" else {}
    return chosen["id"], {"body": body, **more}, {}


def _ask(
    request: HttpRequest,
    board: Board,
    definition: dict[str, Any],
    triggers: list[dict[str, Any]],
    *,
    test: bool,
    wrong: Mapping[str, str] = {},
    message: str = "",
    status: int = 200,  # noqa: B006 - never changed
) -> HttpResponse:
    chosen = next(
        (one for one in triggers if one["id"] == request.POST.get("trigger")), triggers[0] if triggers else None
    )
    sample = sample_of(trigger_shape({**definition, "triggers": [chosen] if chosen else []}, board.samples))
    body = sample.get("body") if isinstance(sample, dict) and sample is not MISSING else None
    fields = fields_of(chosen.get("config") or {}) if chosen and chosen["type"] == "manual" else []
    context = {
        "workflow": board.workflow,
        "board": board,
        "test": test,
        "trigger": chosen,
        "triggers": [{"id": one["id"], "label": trigger_label(one)} for one in triggers],
        "fields": [
            {**field, "value": request.POST.get(field["id"], ""), "wrong": wrong.get(field["id"])} for field in fields
        ],
        "body": request.POST.get("body") or json.dumps(body if body is not None else {}, indent=2, ensure_ascii=False),
        "message": message,
        "url": reverse("flow_test_run" if test else "flow_run_now", args=[board.workflow.pk]),
    }
    return render(request, "canvas/ask_input.html", context, status=status)


urlpatterns = [
    path("flows/<int:pk>/test/step/", step_test, name="flow_test_step"),
    path("flows/<int:pk>/test/result/", test_result, name="flow_test_result"),
    path("flows/<int:pk>/test/run/", test_run, name="flow_test_run"),
    path("flows/<int:pk>/run/", run_now, name="flow_run_now"),
]
