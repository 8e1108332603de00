"""The builder's page: the canvas, the panel, the picker, and what is looked up for them."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_safe

from runtime.definition import MISSING, find, walk
from runtime.models import Role
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .. import drafts
from ..access import can, get_workflow
from ..board import Board
from ..callers import callers_of
from ..changewords import field_title
from ..drawing import Drawing, every_card, patches
from ..editing import EditError, apply
from ..editing.groups import copies_of
from ..editing.places import label_of
from ..folding import folded
from ..panel import Panel, panel_for
from ..picker import picks, suggested_after, suggested_instead
from ..renaming import rename_preview
from .alerts import told_context
from .keeping import folder_context, kept_context

TABS = ("setup", "safety", "test")


@require_safe
def flow(request: HttpRequest, pk: int) -> HttpResponse:
    """The whole page. `?step=` opens a panel, so that a step has an address."""
    workflow = get_workflow(request.user, pk)
    board = Board.of(workflow)
    context = page_context(request, board)
    panel = _asked_panel(request, board)
    return render(request, "canvas/page.html", {**context, "panel": panel, "selected": panel.id if panel else None})


@require_safe
def panel(request: HttpRequest, pk: int) -> HttpResponse:
    workflow = get_workflow(request.user, pk)
    board = Board.of(workflow)
    found = _asked_panel(request, board)
    if found is None:
        raise Http404("There is no such step any more.")
    return render(request, "canvas/panel.html", {**page_context(request, board), "panel": found})


@require_safe
def field(request: HttpRequest, pk: int) -> HttpResponse:
    """One field of a panel as it stands now, for showing it another way."""
    board = Board.of(get_workflow(request.user, pk))
    found = panel_for(board, request.GET.get("owner", ""))
    name = request.GET.get("field", "")
    shown = next((one for one in found.every_field() if one.name == name), None) if found else None
    if shown is None:
        raise Http404("There is no such field any more.")
    lane = next((lane for lane in found.lanes if lane.when and lane.when.name == name), None)
    context = {**page_context(request, board), "panel": found, "field": shown, "lane": lane}
    return render(request, "canvas/lane_rule.html" if lane else "canvas/field.html", context)


@require_safe
def copy(request: HttpRequest, pk: int) -> HttpResponse:
    """Steps (`?step=`, as often as there are) as text for the clipboard: `{"holdfast": "steps", "steps": [...]}`."""
    workflow = get_workflow(request.user, pk)
    try:
        steps = copies_of(drafts.load(workflow).definition, request.GET.getlist("step"))
    except EditError as wrong:
        raise Http404(str(wrong)) from None
    text = json.dumps({"holdfast": "steps", "steps": steps}, indent=2, ensure_ascii=False)
    return HttpResponse(text, content_type="text/plain")


@require_safe
def picker(request: HttpRequest, pk: int) -> HttpResponse:
    """What can be added at a place, or stand there instead of a step (`?replace=`); `?triggers`: what can start the flow."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    if "triggers" in request.GET:
        context = {"kinds": [*trigger_kinds().values()]}
        return render(request, "canvas/picker_triggers.html", context)
    definition = drafts.load(workflow).definition
    context: dict[str, Any] = {"categories": picks(), "total": len(step_types())}
    if replaced := find(definition, request.GET.get("replace", "")):
        context |= {"replaced": replaced, "name": label_of(replaced), "suggested": suggested_instead(replaced["type"])}
    else:
        before = find(definition, request.GET.get("after", "")) or find(definition, request.GET.get("parent", ""))
        context |= {"before": before, "suggested": suggested_after(before["type"] if before else "")}
    return render(request, "canvas/picker.html", context)


@require_safe
def renaming(request: HttpRequest, pk: int) -> HttpResponse:
    """What would be rewritten if `?step=` were called `?id=`, or why it cannot be."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    definition = drafts.load(workflow).definition
    step, new_id = request.GET.get("step", ""), request.GET.get("id", "").strip()
    context: dict[str, Any] = {"step": step, "new_id": new_id}
    try:
        apply(definition, {"op": "rename", "step": step, "id": new_id})
        context["changes"] = rename_preview(definition, step, new_id)
    except EditError as wrong:
        context["wrong"] = str(wrong)
    return render(request, "canvas/renaming.html", context)


def renewed(request: HttpRequest, board: Board, before: Drawing | None) -> HttpResponse:
    """The parts of the page that changed because the sample data did, out of band; the open panel is drawn anew. Without
    the drawing that the page shows, every card is."""
    opened = request.POST.get("open")
    tab = request.POST.get("tab", "setup")
    shown = panel_for(board, opened, tab if tab in TABS else "setup") if opened is not None else None
    context = {
        **page_context(request, board),
        "patches": patches(before, board.drawing) if before else every_card(board.drawing),
        "panel": shown,
        "selected": shown.id if shown else None,
        "shape_changed": True,
        "own_field": False,
    }
    return render(request, "canvas/edited.html", context)


def page_context(request: HttpRequest, board: Board) -> dict[str, Any]:
    """What the templates of the builder need of a board and of who looks at it. A panel needs less of it than a page."""
    may_edit = can(request.user, Role.BUILDER, board.workflow.team)
    return {
        "board": board,
        "workflow": board.workflow,
        "draft": board.draft,
        "drawing": SimpleLazyObject(lambda: board.drawing),
        "problems": SimpleLazyObject(lambda: _listed(board)),
        "history": SimpleLazyObject(lambda: board.history),
        "folded": folded(board.workflow, request.user),
        "readonly": not may_edit,
        "may_edit": may_edit,
        "may_run": can(request.user, Role.OPERATOR, board.workflow.team),
        "callers": SimpleLazyObject(lambda: callers_of(board.workflow)),
        **folder_context(request, board.workflow),
        **kept_context(request, board.workflow),
        **told_context(board.workflow),
        "section": "flows",
    }


def _listed(board: Board) -> list[dict[str, Any]]:
    """The problems as the drawer has them. It stands away from the fields, so that it names the one that is missing."""
    owners = [*walk(board.definition.get("steps") or []), *(board.definition.get("triggers") or [])]
    types = {owner["id"]: owner["type"] for owner in owners} if board.problems else {}
    found = []
    for problem in board.problems:
        words, (place, _, rest) = problem.message, problem.field.partition(".")
        if problem.kind == MISSING and place == "config" and problem.step in types:
            words = f"“{field_title(types[problem.step], rest)}” is missing: fill it in."
        found.append({"name": board.name_of(problem.step), "problem": problem, "words": words})
    return found


def _asked_panel(request: HttpRequest, board: Board) -> Panel | None:
    if "settings" in request.GET:
        return panel_for(board, "")
    step = request.GET.get("step", "")
    tab = request.GET.get("tab", "setup")
    return panel_for(board, step, tab if tab in TABS else "setup") if step else None


urlpatterns = [
    path("flows/<int:pk>/", flow, name="flow"),
    path("flows/<int:pk>/panel/", panel, name="flow_panel"),
    path("flows/<int:pk>/field/", field, name="flow_field"),
    path("flows/<int:pk>/copy/", copy, name="flow_copy"),
    path("flows/<int:pk>/picker/", picker, name="flow_picker"),
    path("flows/<int:pk>/renaming/", renaming, name="flow_renaming"),
]
