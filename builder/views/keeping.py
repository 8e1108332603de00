"""How long a flow's finished runs are kept: a setting of the flow, in the panel beside the canvas."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST

from runtime.models import Role, Workflow

from ..access import can, get_workflow
from ..flowmaking import keep_runs

LONGEST_DAYS = 36_500


@require_POST
def retention(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes a number of days, 0 for ever, or nothing for what the installation does."""
    workflow = get_workflow(request.user, pk, Role.ADMIN)
    text = request.POST.get("days", "").strip()
    if text and not (text.isascii() and text.isdigit() and int(text[:6]) <= LONGEST_DAYS):
        wrong = f"Write a whole number of days, at most {LONGEST_DAYS:,}; 0 keeps them for ever."
        return _shown(request, workflow, kept=text[:12], kept_wrong=wrong)
    keep_runs(workflow, int(text) if text else None, user=request.user)
    return _shown(request, workflow, kept_saved=True)


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


urlpatterns = [path("flows/<int:pk>/retention/", retention, name="flow_retention")]
