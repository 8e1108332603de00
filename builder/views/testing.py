"""Trying things out from the builder, and starting the live flow by hand."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from runtime.acts import cancel
from runtime.clock import business_now
from runtime.definition import DefinitionError, find
from runtime.expressions import ExpressionError
from runtime.jsonvalues import BadJson, loads_strict
from runtime.models import Attempt, Role, Run, StepResult, Workflow
from runtime.starts import start_with_files
from runtime.states import UNFINISHED
from runtime.steps.base import File
from runtime.tokens import URLSAFE
from runtime.triggers import trigger_kinds
from runtime.triggers.manual import fields_of

from ..access import get_workflow
from ..board import Board, problems_of
from ..changewords import field_title
from ..dataflow import Known, names_at
from ..dataflow.samples import trigger_shape
from ..dataflow.shapes import MISSING, sample_of
from ..dryrun import dry_run, not_filled_in
from ..editing.triggers import trigger_label
from ..largevalues import large_output
from ..numbers import number_of
from ..runload import fingerprint
from ..samples import pins_of, runs_to_choose_from
from ..testruns import start_step_test, start_test
from ..testshape import up_to
from ..testwatch import watched
from ..uploads import answers, files_of

BY_HAND = "manual"


@require_POST
def step_test(request: HttpRequest, pk: int) -> HttpResponse:
    """Without an effect; with `real`, as a test run of this step alone."""
    board = Board.of(get_workflow(request.user, pk, Role.BUILDER))
    step = request.POST.get("step", "")
    names = names_at(board.known, step)
    try:
        if request.POST.get("real"):
            started = start_step_test(board.workflow, board.definition, step, names, user=request.user)
            return _result(request, board.workflow, started.run_id, step)
        shown = dry_run(board.definition, step, names, board.workflow.team_id)
    except (ExpressionError, ValueError) as wrong:
        shown = not_filled_in(wrong)
    return render(request, "canvas/test_shown.html", {"shown": shown, "at": _title(board.definition, step, shown.field)})


def _answer(result: StepResult) -> Any:
    """What the other system said in the end, where a step called one."""
    last = Attempt.objects.filter(run_id=result.run_id, path=result.path, take=result.take).order_by("-n").first()
    response = last.response if last else None
    return {name: value for name, value in response.items() if name != "timings"} if isinstance(response, dict) else response


def _title(definition: dict[str, Any], step: str, field: str) -> str:
    """What the panel calls the field of the step."""
    found = find(definition, step)
    name = field.removeprefix("config").removeprefix(".")
    return field_title(found["type"], name) if found and name else ""


@require_safe
def test_result(request: HttpRequest, pk: int) -> HttpResponse:
    """Where a test run stands at one step; asks again by itself until it has ended."""
    workflow, run_id = get_workflow(request.user, pk), number_of(request.GET.get("run", ""))
    return _result(request, workflow, run_id, request.GET.get("step", ""))


def _result(request: HttpRequest, workflow: Workflow, run_id: int | None, step: str) -> HttpResponse:
    run = Run.objects.filter(pk=run_id, workflow=workflow, test=True).first()
    if run is None:
        raise Http404("There is no such run.")
    results = StepResult.objects.filter(run_id=run_id, step=step).order_by("-finished_at")
    result = results.filter(error__isnull=False).first() or results.first()  # of many iterations the one that failed
    error = result.error if result else run.error if run.state not in UNFINISHED else None
    context = {
        "workflow": workflow,
        "run": run,
        "step": step,
        "result": result,
        "error": error,
        "answer": _answer(result) if result and error else None,
        "at": _title(run.version.definition, step, str(error.get("field") or "")) if error else "",
        "part": large_output(run, result.path, result.take).part(0) if result and result.output_size is not None else None,
        "waiting": run.state in UNFINISHED,
    }
    return render(request, "canvas/test_result.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def test_run(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks for the input, POST starts the draft as a test run, which the canvas then follows. `to` ends it behind a
    step; `replay` is a run whose input it begins with."""
    board = Board.of(get_workflow(request.user, pk, Role.BUILDER))
    asked = _Asked.of(request, board)
    if request.method != "POST":
        return _ask(request, board, asked, test=True)
    try:
        given = _input(request, asked)
        if given.wrong:
            return _ask(request, board, asked, test=True, wrong=given.wrong, status=422)
        how = {"trigger_key": given.trigger, "input": given.input, "files": given.files, "user": request.user, "key": _once(request)}
        started = start_test(board.workflow, asked.definition, pins=pins_of(board.workflow), **how)
    except (BadJson, DefinitionError) as problem:
        return _ask(request, board, asked, test=True, message=str(problem), status=422)
    return render(request, "canvas/test_bar.html", {**watched(board.workflow, started.run_id), "oob": True})


@require_http_methods(["GET", "HEAD", "POST"])
def test_watch(request: HttpRequest, pk: int) -> HttpResponse:
    """Where a test run stands, step by step; asks again by itself until it has ended. POST cancels it."""
    workflow, number = get_workflow(request.user, pk, Role.BUILDER), number_of(request.GET.get("run", ""))
    if number is None:
        raise Http404("There is no such run.")
    if request.method != "POST" and request.GET.get("seen") == fingerprint(number):
        return HttpResponse(status=204)
    found = watched(workflow, number)
    if request.method == "POST":
        cancel(found["run"].pk, user=request.user)
        found = watched(workflow, number)
    return render(request, "canvas/test_bar.html", found)


@require_http_methods(["GET", "HEAD", "POST"])
def run_now(request: HttpRequest, pk: int) -> HttpResponse:
    """The live version, started by a person through the form of its manual trigger."""
    board = Board.of(get_workflow(request.user, pk, Role.OPERATOR))
    live = board.live
    definition = live.definition if live else {}
    declared = definition.get("triggers") or []
    asked = _Asked(definition, [one for one in declared if one["type"] == "manual"] or declared)
    if request.method != "POST" or live is None or board.workflow.paused:
        return _ask(request, board, asked, test=False)
    try:
        given = _input(request, asked)
        if given.wrong:
            return _ask(request, board, asked, test=False, wrong=given.wrong, status=422)
    except BadJson as problem:
        return _ask(request, board, asked, test=False, message=str(problem), status=422)
    started = start_with_files(live, given.files, trigger_key=given.trigger, input=given.input, user=request.user, idempotency_key=_once(request))
    return HttpResponseClientRedirect(reverse("run", args=[started.run_id]))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to run: the definition, the triggers that may have started it, where it ends, whose input it takes."""

    definition: dict[str, Any]
    triggers: list[dict[str, Any]]
    to: str = ""
    past: Run | None = None

    @classmethod
    def of(cls, request: HttpRequest, board: Board) -> _Asked:
        values = request.POST if request.method == "POST" else request.GET
        to, number = values.get("to", ""), values.get("replay", "")
        past = None
        if number:
            runs = Run.objects.filter(workflow=board.workflow)
            past = runs.filter(pk=number_of(number)).first()
            if past is None:
                raise Http404("There is no such run of this flow.")
        definition = up_to(board.definition, to) if to else board.definition
        return cls(definition, definition.get("triggers") or [], to, past)

    def chosen(self, request: HttpRequest) -> dict[str, Any] | None:
        """The trigger that is named, else the one that the past run had, else the first."""
        values = request.POST if request.method == "POST" else request.GET
        wanted = (values.get("trigger"), self.past.trigger_key if self.past else None)
        by_id = {one["id"]: one for one in self.triggers}
        return next((by_id[key] for key in wanted if key in by_id), self.triggers[0] if self.triggers else None)


@dataclass(frozen=True, slots=True)
class _Given:
    """What to start with; `wrong` says of fields what is wrong with them."""

    trigger: str
    input: dict[str, Any]
    wrong: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, File] = field(default_factory=dict)


def _input(request: HttpRequest, asked: _Asked) -> _Given:
    """Raises BadJson."""
    chosen, past = asked.chosen(request), asked.past.input if asked.past else {}
    if chosen is None:
        return _Given(BY_HAND, past or {"body": {}})
    if chosen["type"] in ("manual", "form"):
        sent = answers(request, chosen.get("config") or {}, past=asked.past)
        more = {"by": request.user.email, "at": business_now().isoformat()} if chosen["type"] == "form" else {}
        return _Given(chosen["id"], {"body": sent.body, **more}, sent.wrong, sent.files)
    if chosen["type"] == "ended":
        return _Given(chosen["id"], past or trigger_kinds()["ended"].sample(chosen.get("config") or {}) or {})
    if chosen["type"] == "schedule":
        now = business_now().isoformat()
        return _Given(chosen["id"], past or {"scheduled_at": now, "occurrence": f"by hand@{now}"})
    body = loads_strict((request.POST.get("body") or "{}").encode(), root="body")
    more = {"headers": {}, "query": {}, "method": "POST"} if chosen["type"] == "webhook" else {}
    return _Given(chosen["id"], {**more, **past, "body": body})


def _once(request: HttpRequest) -> str | None:
    """The key of a form that was filled in: sent twice, as by a double click, it starts one run."""
    text = request.POST.get("_once", "")  # no field of a trigger is called so
    return f"form:{text}" if URLSAFE.fullmatch(text) else None


def _ask(
    request: HttpRequest,
    board: Board,
    asked: _Asked,
    *,
    test: bool,
    wrong: Mapping[str, str] = MappingProxyType({}),
    message: str = "",
    status: int = 200,
) -> HttpResponse:
    chosen, typed = asked.chosen(request), request.POST
    sample = sample_of(trigger_shape({**asked.definition, "triggers": [chosen] if chosen else []}, board.samples))
    if asked.past:
        sample = asked.past.input
    body = sample.get("body") if isinstance(sample, dict) and sample is not MISSING else None
    known = body if isinstance(body, dict) and (asked.past or test) else {}
    fields = fields_of(chosen.get("config") or {}) if chosen and chosen["type"] in ("manual", "form") else []
    problems = problems_of(Known(asked.definition, board.samples), board.connections) if test else []
    context = {
        "workflow": board.workflow,
        "board": board,
        "test": test,
        "trigger": chosen,
        "triggers": [{"id": one["id"], "label": trigger_label(one)} for one in asked.triggers],
        "fields": [
            {**field, "value": typed.get(field["id"], known.get(field["id"], "")), "wrong": wrong.get(field["id"])}
            for field in fields
        ],
        "takes_files": bool(files_of(fields)),
        "body": typed.get("body") or json.dumps(body if body is not None else {}, indent=2, ensure_ascii=False),
        "message": message,
        "once": secrets.token_urlsafe(18),
        "url": reverse("flow_test_run" if test else "flow_run_now", args=[board.workflow.pk]),
        "to": asked.to,
        "to_name": board.name_of(asked.to) if asked.to else "",
        "past": asked.past,
        "runs": runs_to_choose_from(board.workflow) if test else [],
        "blocking": [problem for problem in problems if not problem.warning],
        "pins": sorted(board.name_of(step) for step in board.samples.pins) if test else [],
    }
    return render(request, "canvas/ask_input.html", context, status=status)


urlpatterns = [
    path("flows/<int:pk>/test/step/", step_test, name="flow_test_step"),
    path("flows/<int:pk>/test/result/", test_result, name="flow_test_result"),
    path("flows/<int:pk>/test/run/", test_run, name="flow_test_run"),
    path("flows/<int:pk>/test/watch/", test_watch, name="flow_test_watch"),
    path("flows/<int:pk>/run/", run_now, name="flow_run_now"),
]
