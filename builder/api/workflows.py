"""Workflows: list, make, import, export, their drafts, and publishing."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Query, Router, Status

from builder import dataflow, drafts
from builder.access import get_workflow, teams_for, workflows_for
from builder.approvers import unknown_approvers
from builder.circles import circles
from builder.flowmaking import make_flow
from builder.models import Draft
from runtime.definition import DefinitionError, Problem, check
from runtime.models import Team, Version, Workflow
from runtime.publish import publish

from .auth import guarded
from .errors import Refused, listed
from .paging import Cursor, Limit, page
from .schemas import (
    Definition,
    DraftIn,
    DraftOut,
    ErrorOut,
    ImportIn,
    PublishIn,
    VersionOut,
    WorkflowIn,
    WorkflowOut,
    WorkflowPage,
)

router = Router()


@router.get("/workflows", response=WorkflowPage, summary="List workflows", **guarded("list_workflows"))
def list_workflows(request: HttpRequest, cursor: Cursor = None, limit: Limit = 50) -> dict[str, Any]:
    rows = workflows_for(request.user).select_related("team", "live_version")
    found, following = page(rows, cursor, limit)
    return {"items": [_shown(workflow) for workflow in found], "next": following}


@router.post("/workflows", response={201: WorkflowOut}, summary="Make an empty workflow", **guarded("create_workflow"))
def create_workflow(request: HttpRequest, data: WorkflowIn) -> Status:
    workflow = make_flow(_team(request, data.team), data.name, user=request.user)
    return Status(201, _shown(workflow))


@router.post(
    "/workflows/import",
    response={201: WorkflowOut, 422: ErrorOut},
    summary="Make a workflow from a definition",
    **guarded("import_workflow"),
)
def import_workflow(request: HttpRequest, data: ImportIn) -> Status:
    """All problems are listed and nothing is saved unless there is none that blocks. The result is a draft."""
    team = _team(request, data.team)
    _require_sound(data.definition, team.pk)
    workflow = make_flow(team, data.definition["name"], user=request.user, definition=data.definition)
    return Status(201, _shown(workflow))


@router.get("/workflows/{int:workflow_id}", response=WorkflowOut, summary="Get a workflow", **guarded("get_workflow"))
def read_workflow(request: HttpRequest, workflow_id: int) -> dict[str, Any]:
    return _shown(get_workflow(request.user, workflow_id))


@router.get(
    "/workflows/{int:workflow_id}/export",
    response=Definition,
    summary="Export a definition",
    **guarded("export_workflow"),
)
def export_workflow(
    request: HttpRequest,
    workflow_id: int,
    version: str = Query(
        "live", pattern=r"^(live|draft|[1-9]\d{0,8})$", description="`live`, `draft` or a version's number."
    ),
) -> dict[str, Any]:
    """Exactly what was published or imported. Connections stay names: a definition never holds secrets."""
    workflow = get_workflow(request.user, workflow_id)
    if version == "draft":
        return drafts.load(workflow).definition
    return _version(workflow, version).definition


@router.get("/workflows/{int:workflow_id}/draft", response=DraftOut, summary="Get the draft", **guarded("get_draft"))
def get_draft(request: HttpRequest, workflow_id: int) -> dict[str, Any]:
    workflow = get_workflow(request.user, workflow_id)
    return _shown_draft(workflow, drafts.load(workflow))


@router.put(
    "/workflows/{int:workflow_id}/draft",
    response={200: DraftOut, 409: ErrorOut, 422: ErrorOut},
    summary="Replace the draft",
    **guarded("put_draft"),
)
def put_draft(request: HttpRequest, workflow_id: int, data: DraftIn) -> dict[str, Any]:
    """A draft may have problems; its shape must be sound. 409 when somebody has changed it since `revision`."""
    workflow = get_workflow(request.user, workflow_id, request.role)
    saved = drafts.save(workflow, data.definition, revision=data.revision, user=request.user, label="Put by API")
    return _shown_draft(workflow, saved.draft)


@router.post(
    "/workflows/{int:workflow_id}/publish",
    response={201: VersionOut, 409: ErrorOut, 422: ErrorOut},
    summary="Publish the draft",
    **guarded("publish_workflow"),
)
def publish_workflow(request: HttpRequest, workflow_id: int, data: PublishIn) -> Status:
    """The draft becomes the next version, and new runs start on it. Runs in flight finish on theirs."""
    workflow = get_workflow(request.user, workflow_id, request.role)
    draft = drafts.load(workflow)
    if data.revision is not None and data.revision != draft.revision:
        raise drafts.StaleRevision(draft, data.revision)
    _require_sound(draft.definition, workflow.team_id, workflow.pk)
    return Status(201, publish(workflow, draft.definition, note=data.note, user=request.user))


def _team(request: HttpRequest, name: str | None) -> Team:
    """The team that will own a new workflow: the one named, or the only one in which the person builds."""
    teams = teams_for(request.user, request.role)
    if name is not None:
        team = teams.filter(name=name).first()
        if team is None:
            raise Refused(404, f"There is no team “{name}” in which you may build.")
        return team
    mine = list(teams[:2])
    if len(mine) == 1:
        return mine[0]
    raise Refused(
        422, "Say which team owns it.", [{"step": "", "field": "body.team", "message": "Name one of your teams."}]
    )


def _problems(definition: dict[str, Any], team_id: int, workflow_id: int | None = None) -> list[Problem]:
    """Structure first: what flows where can only be told of a sound one."""
    found = check(definition)
    if any(not one.warning for one in found):
        return found
    in_team = (*circles(definition, team_id, workflow_id), *unknown_approvers(definition, team_id))
    return [*found, *dataflow.problems(dataflow.Known(definition)), *in_team]


def _require_sound(definition: dict[str, Any], team_id: int, workflow_id: int | None = None) -> None:
    problems = _problems(definition, team_id, workflow_id)
    if any(not problem.warning for problem in problems):
        raise DefinitionError(problems)


def _version(workflow: Workflow, which: str) -> Version:
    if which == "live":
        if workflow.live_version is None:
            raise Http404("This workflow has not been published. Ask for its draft.")
        return workflow.live_version
    found = Version.objects.filter(workflow=workflow, number=int(which)).first()
    if found is None:
        raise Http404(f"This workflow has no version {which}.")
    return found


def _shown(workflow: Workflow) -> dict[str, Any]:
    return {
        "id": workflow.pk,
        "name": workflow.name,
        "team": workflow.team.name,
        "live_version": workflow.live_version.number if workflow.live_version else None,
        "paused": workflow.paused,
        "created_at": workflow.created_at,
        "url": settings.HOLDFAST_ORIGIN + reverse("flow", args=[workflow.pk]),
    }


def _shown_draft(workflow: Workflow, draft: Draft) -> dict[str, Any]:
    problems = _problems(draft.definition, workflow.team_id, workflow.pk)
    return {"revision": draft.revision, "definition": draft.definition, "problems": listed(problems)}
