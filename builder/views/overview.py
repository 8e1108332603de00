"""Keeping the overview of a large flow: collapsed containers, and finding a step."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from .. import drafts
from ..access import get_workflow
from ..finding import found, outline
from ..folding import fold

LONGEST = 200


@require_POST
def fold_step(request: HttpRequest, pk: int) -> HttpResponse:
    """`step`, and `folded` (yes or no): for this person alone."""
    workflow = get_workflow(request.user, pk)
    step, away = request.POST.get("step", "")[:64].replace("\x00", ""), request.POST.get("folded") == "yes"
    fold(workflow, request.user, step, away=away)
    return HttpResponse(status=204)


@require_safe
def find_step(request: HttpRequest, pk: int) -> HttpResponse:
    """What fits a word; without one, everything."""
    query = request.GET.get("q", "")[:LONGEST].strip()
    definition = drafts.load(get_workflow(request.user, pk)).definition
    return render(request, "canvas/found.html", {"hits": found(definition, query) if query else outline(definition), "query": query})


urlpatterns = [
    path("flows/<int:pk>/fold/", fold_step, name="flow_fold"),
    path("flows/<int:pk>/find/", find_step, name="flow_find"),
]
