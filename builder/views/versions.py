"""Publishing, and the versions that were published: list, view, restore, go live, take offline."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from runtime.definition import DefinitionError, find
from runtime.jsonvalues import storable_text
from runtime.models import Role, Run, Version, Workflow
from runtime.publish import make_live, publish
from runtime.states import UNFINISHED

from .. import comparing, drafts
from ..access import can, get_workflow
from ..approvers import unknown_approvers
from ..board import Board
from ..circles import circles
from ..diff import changes
from ..drafts import StaleRevision
from ..drawing import Drawing, drawing
from ..numbers import number_of

PER_PAGE = 30
LONGEST_NOTE = 2000


@require_http_methods(["GET", "HEAD", "POST"])
def publish_flow(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks: what changed, what happens to runs in flight, a note. POST publishes the revision that was shown."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    board = Board.of(workflow)
    if request.method != "POST":
        return render(request, "canvas/publish.html", _publish_context(board))
    if request.POST.get("revision") != str(board.draft.revision):
        moved = "The draft has changed since you opened this. Here it is as it is now."
        return render(request, "canvas/publish.html", {**_publish_context(board), "moved": moved}, status=409)
    if board.blocking or board.unchanged:
        return render(request, "canvas/publish.html", _publish_context(board), status=422)
    try:
        version = _publish(workflow, board.draft.revision, request)
    except (DefinitionError, StaleRevision):
        return render(request, "canvas/publish.html", _publish_context(Board.of(workflow)), status=409)
    messages.success(request, f"Published v{version.number}")
    return HttpResponseClientRedirect(reverse("flow", args=[pk]))


@transaction.atomic
def _publish(workflow: Workflow, revision: int, request: HttpRequest) -> Version:
    """Exactly the revision that was shown: nobody's draft is published by somebody who has not seen it."""
    draft = drafts.locked(workflow, revision)
    note = storable_text(request.POST.get("note", "")).strip()[:LONGEST_NOTE]
    return publish(workflow, draft.definition, note=note, user=request.user)


def _publish_context(board: Board) -> dict[str, Any]:
    in_flight = Run.objects.filter(workflow=board.workflow, state__in=UNFINISHED, test=False)[:1000].count()
    warnings = [{"name": board.name_of(one.step), "message": one.message} for one in board.problems if one.warning]
    return {"board": board, "workflow": board.workflow, "in_flight": in_flight, "warnings": warnings}


@require_safe
def draft_changes(request: HttpRequest, pk: int) -> HttpResponse:
    board = Board.of(get_workflow(request.user, pk))
    return render(request, "canvas/changes.html", {"board": board, "workflow": board.workflow})


@require_safe
def versions(request: HttpRequest, pk: int) -> HttpResponse:
    workflow = get_workflow(request.user, pk)
    found = Version.objects.filter(workflow=workflow, number__isnull=False).select_related("created_by")
    if (before := number_of(request.GET.get("before", ""))) is not None:
        found = found.filter(number__lt=before)
    rows = list(found.order_by("-number")[: PER_PAGE + 1])
    more, rows = len(rows) > PER_PAGE, rows[:PER_PAGE]
    context = {
        "workflow": workflow,
        "versions": _with_runs(rows),
        "older": f"?before={rows[-1].number}" if more else "",
        "newer": "?" if before is not None else "",
        "may_edit": can(request.user, Role.BUILDER, workflow.team),
        "section": "flows",
    }
    return render(request, "canvas/versions.html", context)


def _with_runs(rows: list[Version]) -> list[dict[str, Any]]:
    """With the number of runs, counted up to a thousand each, and of those in flight."""
    counted = []
    for version in rows:
        runs = Run.objects.filter(version=version, test=False)
        counted.append(
            {"version": version, "runs": runs[:1000].count(), "open": runs.filter(state__in=UNFINISHED)[:1000].count()}
        )
    return counted


@require_safe
def version(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """One version on the canvas, to look at; with what changed from the one before it, or a step as it was
    published."""
    workflow, found = _found(request, pk, number, Role.VIEWER)
    step = find(found.definition, request.GET.get("step", ""))
    before = Version.objects.filter(workflow=workflow, number__lt=number).order_by("-number").first()
    context = {
        "workflow": workflow,
        "version": found,
        "drawing": drawing(found.definition),
        "changes": changes(before.definition, found.definition) if before else [],
        "before": before,
        "step": step,
        "selected": step["id"] if step else "",
        "readonly": True,
        "may_edit": can(request.user, Role.BUILDER, workflow.team),
        "section": "flows",
    }
    return render(request, "canvas/version.html", context)


@require_safe
def compare_versions(request: HttpRequest, pk: int) -> HttpResponse:
    """`?from=` and `?to=`, each a version's number or "draft", on two canvases with the differences marked."""
    workflow = get_workflow(request.user, pk)
    to = request.GET.get("to", "") or comparing.DRAFT
    right = comparing.side(workflow, to)
    left = comparing.side(workflow, request.GET.get("from", "") or comparing.before_of(workflow, to)) if right else None
    if left is None or right is None:
        raise Http404("There is no such version.")
    found = comparing.compare(left, right)
    context = {
        "workflow": workflow,
        "comparison": found,
        "sides": [_side(found.left, found.left_drawing, "before-"), _side(found.right, found.right_drawing, "after-")],
        "offered": comparing.offered(workflow),
        "section": "flows",
    }
    return render(request, "canvas/compare.html", context)


def _side(side: comparing.Side, drawn: Drawing, prefix: str) -> dict[str, Any]:
    stage = render_to_string("canvas/stage.html", {"drawing": drawn, "readonly": True})
    stage = mark_safe(comparing.apart(stage, prefix))  # noqa: S308 - our template's own
    return {"side": side, "stage": stage, "prefix": prefix}


@require_POST
def restore(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The version's definition becomes the draft, as one more edit: what was there can be had back by undo."""
    workflow, found = _found(request, pk, number, Role.BUILDER)
    drafts.save(workflow, found.definition, revision=None, user=request.user, label=f"Restore v{number}")
    messages.success(request, f"v{number} is the draft now. Undo brings the other one back.")
    return redirect("flow", pk=pk)


@require_POST
def go_live(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    workflow, found = _found(request, pk, number, Role.BUILDER)
    team = workflow.team_id
    in_team = (*circles(found.definition, team, workflow.pk), *unknown_approvers(found.definition, team))
    if wrong := " ".join(dict.fromkeys(problem.message for problem in in_team)):
        messages.error(request, f"{wrong} Nothing was changed.")
        return redirect("flow_versions", pk=pk)
    make_live(workflow, found, user=request.user)
    messages.success(request, f"v{number} is live: new runs start on it")
    return redirect("flow_versions", pk=pk)


@require_POST
def take_offline(request: HttpRequest, pk: int) -> HttpResponse:
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    make_live(workflow, None, user=request.user)
    messages.success(request, f"{workflow.name} is offline. Runs in flight go on.")
    return redirect("flow_versions", pk=pk)


def _found(request: HttpRequest, pk: int, number: int, role: Role) -> tuple[Workflow, Version]:
    workflow = get_workflow(request.user, pk, role)
    found = Version.objects.filter(workflow=workflow, number=number).select_related("created_by").first()
    if found is None:
        raise Http404("There is no such version.")
    return workflow, found


urlpatterns = [
    path("flows/<int:pk>/publish/", publish_flow, name="flow_publish"),
    path("flows/<int:pk>/changes/", draft_changes, name="flow_changes"),
    path("flows/<int:pk>/versions/", versions, name="flow_versions"),
    path("flows/<int:pk>/compare/", compare_versions, name="flow_compare"),
    path("flows/<int:pk>/versions/<int:number>/", version, name="flow_version"),
    path("flows/<int:pk>/versions/<int:number>/restore/", restore, name="flow_version_restore"),
    path("flows/<int:pk>/versions/<int:number>/live/", go_live, name="flow_version_live"),
    path("flows/<int:pk>/offline/", take_offline, name="flow_offline"),
]
