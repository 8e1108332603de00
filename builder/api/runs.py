"""Runs: start, list, read, cancel, requeue, start again."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.urls import reverse
from ninja import Query, Router, Status

from builder.access import OPERATOR, can, get_run, get_workflow, runs_for
from builder.largevalues import given_file, large_output
from builder.models import Scope
from builder.replies import error_body
from runtime import acts, slots
from runtime.definition import canonical
from runtime.jsonvalues import MIB, check_json
from runtime.models import Act, Run, Version, Wait
from runtime.starts import IdempotencyConflict, start
from runtime.states import WaitState
from runtime.tokens import without_signatures

from .auth import guarded
from .errors import Refused
from .paging import Cursor, Limit, page
from .schemas import CancelIn, ChangedOut, DroppedOut, ErrorOut, RerunIn, RunDetail, RunPage, StartedOut, StartIn, StepPage
from .steps import steps_of

router = Router()
State = Literal["open", "attention", "succeeded", "failed", "cancelled"]


@router.post(
    "/workflows/{int:workflow_id}/runs",
    response={201: StartedOut, 200: StartedOut, 409: ErrorOut | DroppedOut, 422: ErrorOut},
    summary="Start a run",
    **guarded("start_run"),
)
def start_run(request: HttpRequest, workflow_id: int, data: StartIn) -> Status:
    """201: a new run; 200: the one that this idempotency key started before; 409: it did so with another input, or the
    flow's limits dropped the run, which is then among the runs as cancelled."""
    workflow = get_workflow(request.user, workflow_id, request.role)
    if workflow.live_version is None:
        raise Refused(409, "This workflow has not been published.")
    if workflow.paused:
        raise Refused(409, "This workflow is paused.")
    check_json(data.input, "body.input")
    text = canonical({"input": data.input})
    if len(text.encode()) > MIB:
        raise Refused(413, f"The input is larger than {MIB:,} bytes.")
    try:
        started = start(
            workflow.live_version,
            trigger_key=_trigger_key(workflow.live_version, data.trigger),
            input={"body": data.input},
            idempotency_key=f"key:{data.idempotency_key}" if data.idempotency_key else None,
            input_hash=hashlib.sha256(text.encode()).hexdigest() if data.idempotency_key else "",
            user=request.user,
        )
    except IdempotencyConflict:
        raise Refused(409, f"The idempotency key “{data.idempotency_key}” was used with another input.") from None
    answer = {"run": started.run_id, "url": _url(started.run_id), "created": started.created}
    if started.dropped:
        return Status(409, {**answer, "dropped": True, **error_body(started.dropped)})
    return Status(201 if started.created else 200, answer)


@router.get("/runs", response=RunPage, summary="List runs", **guarded("list_runs"))
def list_runs(
    request: HttpRequest,
    cursor: Cursor = None,
    limit: Limit = 50,
    workflow: Annotated[int | None, Query(None, description="Only runs of this workflow.")] = None,
    state: Annotated[State | None, Query(None)] = None,
    test: Annotated[bool | None, Query(None, description="Only test runs, or only real ones.")] = None,
) -> dict[str, Any]:
    wanted = {"workflow_id": workflow, "state": state, "test": test}
    rows = runs_for(request.user).filter(**{name: value for name, value in wanted.items() if value is not None})
    found, following = page(
        rows.select_related("version").defer("input", "output", "version__definition"), cursor, limit
    )
    return {"items": [_shown(run) for run in found], "next": following}


@router.get("/runs/{int:run_id}", response=RunDetail, summary="Get a run", **guarded("get_run"))
def read_run(request: HttpRequest, run_id: int) -> dict[str, Any]:
    run = _seen(request, run_id)
    waits = Wait.objects.filter(run_id=run.pk, state=WaitState.OPEN).order_by("pk")[:200]
    queued = slots.standings([run.pk]).get(run.pk)
    told = {"input": run.input, "output": run.output, "error": run.error}
    return {
        **_shown(run), **(told if _may_answer(request, run) else without_signatures(told)), "waits": list(waits),
        "queued": {"before": queued.before, "why": queued.why} if queued else None,
    }


@router.get("/runs/{int:run_id}/steps", response=StepPage, summary="List a run's steps", **guarded("list_steps"))
def list_steps(
    request: HttpRequest,
    run_id: int,
    cursor: Annotated[str | None, Query(None, max_length=2000, description="`next` of the page before.")] = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """In the order of their paths, each with the attempts of its calls; at the end the calls that are in flight. The addresses of
    callbacks are told to those alone who may answer in their place: operators, by a token that is not read-only."""
    run = _seen(request, run_id)
    found, following = steps_of(run, cursor, limit, whole=_may_answer(request, run))
    return {"items": found, "next": following}


@router.get("/runs/{int:run_id}/output", summary="Read a large output", **guarded("read_output"))
def read_output(
    request: HttpRequest,
    run_id: int,
    path: Annotated[str, Query(max_length=2000, description="The step's path.")],
    take: Annotated[int, Query(ge=1)] = 1,
) -> StreamingHttpResponse:
    """The whole value as JSON, of a step whose `output_size` is not null."""
    run = get_run(request.user, run_id)
    large = large_output(run, path, take, whole=_may_answer(request, run))
    return StreamingHttpResponse(large.pieces(), content_type="application/json")


@router.get("/runs/{int:run_id}/file", summary="Read a file that a step gave", **guarded("read_file"))
def read_file(
    request: HttpRequest,
    run_id: int,
    path: Annotated[str, Query(max_length=2000, description="The step's path.")],
    take: Annotated[int, Query(ge=1)] = 1,
) -> StreamingHttpResponse:
    """The bytes that an API call was answered and that its output tells of."""
    found = given_file(get_run(request.user, run_id), path, take)
    if found is None:
        raise Http404("This step gave no file.")
    return found.response()


@router.post("/runs/{int:run_id}/cancel", response=ChangedOut, summary="Cancel a run", **guarded("cancel_run"))
def cancel_run(request: HttpRequest, run_id: int, data: CancelIn) -> dict[str, Any]:
    """Calls in flight end and are recorded; no new one begins."""
    run = get_run(request.user, run_id, request.role)
    return _changed(run, acts.cancel(run.pk, user=request.user, why=data.why))


@router.post(
    "/runs/{int:run_id}/requeue", response={200: ChangedOut, 409: ErrorOut}, summary="Requeue a failed run", **guarded("requeue_run")
)
def requeue_run(request: HttpRequest, run_id: int) -> dict[str, Any]:
    """It goes on at what failed. Finished steps do not run again. 409: another run goes on with its results."""
    run = get_run(request.user, run_id, request.role)
    try:
        return _changed(run, acts.requeue(run.pk, user=request.user))
    except acts.NotPossible as wrong:
        raise Refused(409, str(wrong)) from None


@router.post(
    "/runs/{int:run_id}/rerun", response={201: StartedOut, 200: StartedOut, 409: ErrorOut}, summary="Start a run again",
    **guarded("rerun_run"),
)  # fmt: skip
def rerun_run(request: HttpRequest, run_id: int, data: RerunIn) -> Status:
    """A new run with the same input. 200: the one that this idempotency key started before; 409: nothing can be kept, and why."""
    run = get_run(request.user, run_id, request.role)
    version = run.workflow.live_version if data.version == "live" else run.version
    if version is None:
        raise Refused(409, "This workflow has not been published.")
    key = hashlib.sha256(f"{request.user.pk}|{run.pk}|{data.idempotency_key}".encode()).hexdigest() if data.idempotency_key else ""
    created = not Act.objects.filter(pk=key).exists()
    try:
        started = acts.rerun(run, user=request.user, version=version, keep=data.keep, key=key)
    except Run.DoesNotExist:
        raise Http404("The run is kept no longer.") from None
    except acts.NotPossible as wrong:
        raise Refused(409, str(wrong)) from None
    return Status(201 if created else 200, {"run": started, "url": _url(started), "created": created})


def _seen(request: HttpRequest, run_id: int) -> Run:
    """With a token that is only good for starting runs: one that its person has started."""
    run = get_run(request.user, run_id)
    if request.token.scope == Scope.START and run.started_by_id != request.user.pk:
        raise Http404(f"There is no run {run_id} that you have started.")
    return run


def _may_answer(request: HttpRequest, run: Run) -> bool:
    """Whether the token may do what the address of a callback lets anybody do, and so may read it."""
    return request.token.scope != Scope.READ and can(request.user, OPERATOR, run.workflow.team)


def _trigger_key(version: Version, wanted: str | None) -> str:
    """The trigger that idempotency keys belong to: the one named, the first API trigger, or `api` for want of one."""
    declared = version.definition.get("triggers") or []
    if wanted is None:
        return next((trigger["id"] for trigger in declared if trigger["type"] == "api"), "api")
    if any(trigger["id"] == wanted and trigger["type"] in ("api", "manual") for trigger in declared):
        return wanted
    message = f"The live version has no API or manual trigger “{wanted}”."
    raise Refused(422, message, [{"step": "", "field": "body.trigger", "message": message}])


def _changed(run: Run, changed: bool) -> dict[str, Any]:
    run.refresh_from_db(fields=["state"])
    return {"changed": changed, "state": run.state}


def _shown(run: Run) -> dict[str, Any]:
    return {
        "id": run.pk,
        "workflow": run.workflow_id,
        "version": run.version.number,
        "state": run.state,
        "title": run.title,
        "test": run.test,
        "trigger": run.trigger_key,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "cost": run.cost,
        "url": _url(run.pk),
    }


def _url(run_id: int) -> str:
    return settings.HOLDFAST_ORIGIN + reverse("run", args=[run_id])
