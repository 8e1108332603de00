"""Settings of a flow that belong to it and not to its draft, in the panel beside the canvas: the folder that it is in, and how long
its finished runs are kept. They hold at once, for all versions."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_POST

from runtime.jsonvalues import storable_text
from runtime.models import Role, Workflow

from ..access import can, get_workflow, workflows_for
from ..flowlist import folders_of
from ..flowmaking import keep_runs, put_into_folder
from ..numbers import number_of

LONGEST_DAYS = 36_500


@require_POST
def retention(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes a number of days, 0 for ever, or nothing for what the installation does."""
    workflow = get_workflow(request.user, pk, Role.ADMIN)
    text = request.POST.get("days", "").strip()
    days = number_of(text)
    if text and (days is None or days > LONGEST_DAYS):
        wrong = f"Write a whole number of days, at most {LONGEST_DAYS:,}; 0 keeps them for ever."
        return _shown(request, workflow, kept=text[:12], kept_wrong=wrong)
    keep_runs(workflow, days, user=request.user)
    return _shown(request, workflow, kept_saved=True)


@require_POST
def folder(request: HttpRequest, pk: int) -> HttpResponse:
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    put_into_folder(workflow, storable_text(request.POST.get("folder", "")), user=request.user)
    workflow.refresh_from_db()
    context = {"workflow": workflow, "may_edit": True, **folder_context(request, workflow), "folder_saved": True}
    return render(request, "canvas/folder.html", context)


def folder_context(request: HttpRequest, workflow: Workflow) -> dict[str, Any]:
    """What `canvas/folder.html` shows of a flow: the folders that its team has."""
    team = workflows_for(request.user).filter(team=workflow.team_id)
    return {"folders": SimpleLazyObject(lambda: list(folders_of(team)))}  # only the flow's own settings show them


def kept_context(request: HttpRequest, workflow: Workflow) -> dict[str, Any]:
    """What `canvas/kept.html` shows of a flow."""
    days, usual = workflow.retention_days, settings.HOLDFAST_RETENTION_DAYS
    return {
        "kept": "" if days is None else str(days),
        "kept_usually": f"{usual:,} day{'' if usual == 1 else 's'}" if usual else "for ever",
        "may_keep": can(request.user, Role.ADMIN, workflow.team),
    }


def _shown(request: HttpRequest, workflow: Workflow, **more: Any) -> HttpResponse:
    return render(request, "canvas/kept.html", {"workflow": workflow, **kept_context(request, workflow), **more})


urlpatterns = [
    path("flows/<int:pk>/retention/", retention, name="flow_retention"),
    path("flows/<int:pk>/folder/", folder, name="flow_folder"),
]
