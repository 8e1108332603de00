"""Choosing what counts as the sample data of a draft: a run, a pasted payload, one call that is caught, pinned outputs."""

from __future__ import annotations

import json
import logging
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseTrouble
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from runtime.definition import find
from runtime.jsonvalues import BadJson, loads_strict
from runtime.models import Role, Run, StepResult, Workflow
from runtime.triggers.signing import shown_in

from .. import drafts, samples
from ..access import get_workflow
from ..board import Board
from ..bodies import BodyRefused, read_body
from ..models import Listener, Sample
from ..numbers import number_of
from ..replies import error, missed, try_later
from .canvas import renewed
from .hooks import NOT_HERE, event_of

log = logging.getLogger(__name__)

WITHOUT_OUTPUT = ("condition", "parallel", "stop")
REQUEST = {"headers": {}, "query": {}, "method": "POST"}


@require_http_methods(["GET", "HEAD", "POST"])
def flow_samples(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks where the sample comes from; POST takes it: `from` is newest, run (`run`) or pasted (`body`), or `keep` for
    what is there now, to see it."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    board = Board.of(workflow)
    if request.method != "POST":
        return render(request, "canvas/samples.html", _dialog(board))
    if request.POST.get("from") == "keep":
        return renewed(request, board, None)
    before = board.drawing
    try:
        _take(request, workflow, board.definition)
    except BadJson as wrong:
        context = _dialog(board) | {"wrong": f"The {wrong}", "body": request.POST.get("body", "")}
        response = render(request, "canvas/samples.html", context, status=422)
        response["HX-Retarget"], response["HX-Reswap"] = "#layer", "innerHTML"
        return response
    return trigger_client_event(renewed(request, Board.of(workflow), before), "samples:changed", {})


def _take(request: HttpRequest, workflow: Workflow, definition: dict[str, Any]) -> None:
    """Raises BadJson, Http404."""
    source = request.POST.get("from", "")
    if source == "run":
        samples.choose(workflow, Sample.RUN, user=request.user, run_id=_run_of(workflow, request.POST.get("run", "")))
    elif source == "pasted":
        body = loads_strict(request.POST.get("body", "").encode(), root="payload")
        webhook = _webhook(definition) is not None
        samples.choose(
            workflow, Sample.PASTED, user=request.user, trigger={"body": body} | (REQUEST if webhook else {})
        )
    else:
        samples.choose(workflow, "", user=request.user)


def _dialog(board: Board) -> dict[str, Any]:
    body = board.samples.trigger.get("body") if isinstance(board.samples.trigger, dict) else None
    return {
        "workflow": board.workflow,
        "chosen": Sample.objects.filter(workflow=board.workflow).first(),
        "runs": samples.runs_to_choose_from(board.workflow),
        "body": json.dumps(body, indent=2, ensure_ascii=False) if body is not None else "{\n  \n}",
        "webhook": _webhook(board.definition) is not None,
        "until": samples.listening(board.workflow),
    }


def _webhook(definition: dict[str, Any]) -> dict[str, Any] | None:
    """The config of the draft's first webhook."""
    found = (one for one in definition.get("triggers") or [] if one.get("type") == "webhook")
    return next((one.get("config") or {} for one in found), None)


@require_POST
def flow_pin(request: HttpRequest, pk: int) -> HttpResponse:
    """`step`, and what to pin: `run` (the output it had there), `sample` (what is shown now), or `output` as JSON text.
    `unpin` takes the pin away."""
    board = Board.of(get_workflow(request.user, pk, Role.BUILDER))
    step_id, before = request.POST.get("step", ""), board.drawing
    step = find(board.definition, step_id)
    if step is None or step["type"] in WITHOUT_OUTPUT:
        raise Http404("There is no such step, or it has no output.")
    if request.POST.get("unpin"):
        samples.unpin(board.workflow, step_id)
        return renewed(request, Board.of(board.workflow), before)
    try:
        output = _to_pin(request, board, step_id)
    except BadJson as wrong:
        return render(request, "canvas/pin_wrong.html", {"message": f"The {wrong}"}, status=422)
    if not isinstance(output, dict):
        return render(request, "canvas/pin_wrong.html", {"message": "An output is a group: { … }."}, status=422)
    samples.pin(board.workflow, step_id, output, user=request.user)
    return renewed(request, Board.of(board.workflow), before)


def _run_of(workflow: Workflow, text: str) -> int:
    """The number of one of its runs. Raises Http404."""
    number = number_of(text)
    if number is None or not Run.objects.filter(pk=number, workflow=workflow).exists():
        raise Http404("There is no such run of this flow.")
    return number


def _to_pin(request: HttpRequest, board: Board, step: str) -> Any:
    if request.POST.get("sample"):
        return board.samples.steps.get(step)
    if number := request.POST.get("run", ""):
        results = StepResult.objects.filter(run_id=_run_of(board.workflow, number), step=step, state="succeeded")
        found = results.order_by("-finished_at").first()
        return found.value if found else None
    return loads_strict(request.POST.get("output", "").encode(), root="output")


@require_http_methods(["GET", "HEAD", "POST"])
def flow_listen(request: HttpRequest, pk: int) -> HttpResponse:
    """POST opens the test address, or with `stop` closes it; GET says whether a call has come."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    if request.method == "POST" and request.POST.get("stop"):
        samples.stop_listening(workflow)
        return render(request, "canvas/samples.html", _dialog(Board.of(workflow)))
    if request.method == "POST":
        samples.listen(workflow, user=request.user)
    listener = Listener.objects.filter(workflow=workflow).first()
    open_until = samples.listening(workflow)
    if request.method != "POST" and open_until:
        return HttpResponse(status=204)
    context = {
        "workflow": workflow,
        "until": open_until,
        "address": settings.HOLDFAST_ORIGIN + reverse("hook_test", args=[listener.token]) if listener else "",
        "came": listener is not None and listener.until is None,
        "sample": Sample.objects.filter(workflow=workflow).first(),
    }
    return render(request, "canvas/listening.html", context)


@csrf_exempt
def hook_test(request: HttpRequest, token: str) -> HttpResponse:
    """The test address: one call is kept as the sample while somebody listens. Nothing is started, and no signature is
    asked for; a header that is itself the secret is not kept."""
    if request.method != "POST":
        return error(405, "Send a POST request to this address.", headers={"Allow": "POST"})
    try:
        listener = samples.listener_at(token)
        if listener is None:
            return missed(request, error(404, NOT_HERE))
        config = _webhook(drafts.load(listener.workflow).definition) or {}
        secret = shown_in(listener.workflow.team_id, config.get("signature"))
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() != secret}
        event = event_of(request, config, headers, read_body(request))
        if not samples.caught(listener, event):
            return error(404, NOT_HERE)
    except BodyRefused as refused:
        return error(refused.status, refused.message)
    except DatabaseTrouble:
        log.exception("A call to a test address could not be kept.")
        return try_later("This cannot be taken on just now. Send it again.", 10)
    return JsonResponse({"sample": True})


urlpatterns = [
    path("hooks/test/<str:token>/", hook_test, name="hook_test"),
    path("flows/<int:pk>/samples/", flow_samples, name="flow_samples"),
    path("flows/<int:pk>/samples/pin/", flow_pin, name="flow_pin"),
    path("flows/<int:pk>/samples/listen/", flow_listen, name="flow_listen"),
]
