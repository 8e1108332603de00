"""The builder's page: the canvas, the panel, the picker, and every edit."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from runtime.definition import find
from runtime.jsonvalues import BadJson, loads_strict, storable_text
from runtime.models import Role, Workflow
from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .. import drafts
from ..access import can, get_workflow
from ..board import Board
from ..diff import changes
from ..drafts import Saved, StaleRevision
from ..drawing import patches
from ..editing import EditError, apply
from ..editing.groups import copies_of
from ..editing.places import label_of
from ..fieldedits import field_operation
from ..forms.base import FieldError
from ..models import Draft
from ..panel import Panel, panel_for
from ..picker import picks, suggested_after, suggested_instead
from ..renaming import rename_preview
from .keeping import kept_context

TABS = ("setup", "safety", "test")


@require_safe
def flow(request: HttpRequest, pk: int) -> HttpResponse:
    """The whole page. `?step=` opens a panel, so that a step has an address."""
    workflow = get_workflow(request.user, pk)
    board = Board.of(workflow)
    context = _context(request, board)
    panel = _asked_panel(request, board)
    return render(request, "canvas/page.html", {**context, "panel": panel, "selected": panel.id if panel else None})


@require_safe
def panel(request: HttpRequest, pk: int) -> HttpResponse:
    workflow = get_workflow(request.user, pk)
    board = Board.of(workflow)
    found = _asked_panel(request, board)
    if found is None:
        raise Http404("There is no such step any more.")
    return render(request, "canvas/panel.html", {**_context(request, board), "panel": found})


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
    context = {**_context(request, board), "panel": found, "field": shown, "lane": lane}
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


@require_POST
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """One operation on one revision. `operation` is JSON; a field of the panel is sent as it was typed (`field`,
    `owner`).

    Answers with the parts of the page that changed; 409 when the draft has moved on, with ways out; 422 when the
    operation cannot be applied.
    """
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    revision, key = _revision(request.POST), storable_text(request.POST.get("key", ""))[:40]
    try:
        operation = _operation(request.POST, drafts.load(workflow))
        saved = drafts.edit(workflow, operation, revision=revision, user=request.user, key=key)
    except FieldError as wrong:
        return _field_refused(request, Board.of(workflow), wrong)
    except EditError as wrong:
        return _refused(request, str(wrong))
    except StaleRevision as stale:
        return _stale(request, workflow, stale)
    return _edited(request, workflow, saved, operation)


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    return _step_in_history(request, pk, drafts.undo, "Undid")


@require_POST
def redo(request: HttpRequest, pk: int) -> HttpResponse:
    return _step_in_history(request, pk, drafts.redo, "Redid")


@require_safe
def status(request: HttpRequest, pk: int) -> HttpResponse:
    """Asked for while the page is open: 204 while the draft is where the page has it, otherwise a notice of who moved
    it."""
    workflow = get_workflow(request.user, pk)
    draft = drafts.load(workflow)
    if draft.revision <= _revision(request.GET):
        return HttpResponse(status=204)
    return render(request, "canvas/moved.html", {"workflow": workflow, "draft": draft})


def _step_in_history(request: HttpRequest, pk: int, act: Any, verb: str) -> HttpResponse:
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    try:
        saved = act(workflow, revision=_revision(request.POST), user=request.user)
    except StaleRevision as stale:
        return _stale(request, workflow, stale)
    announce = f"{verb}: {saved.label[:1].lower()}{saved.label[1:]}" if saved.label else "Nothing to undo"
    return _edited(request, workflow, saved, {"op": act.__name__}, announce)


def _operation(post: QueryDict, draft: Draft) -> dict[str, Any]:
    if "field" in post:
        return field_operation(draft.definition, draft.workflow.live_version, post)
    try:
        operation = loads_strict(post.get("operation", "").encode(), root="operation")
    except BadJson as wrong:
        raise EditError(str(wrong)) from None
    if not isinstance(operation, dict):
        raise EditError("The operation is not an object.")
    return operation


def _edited(
    request: HttpRequest, workflow: Workflow, saved: Saved, operation: dict[str, Any], announce: str = ""
) -> HttpResponse:
    """The changed parts, out of band; an event tells the page the new revision and what to select."""
    board = Board(workflow, saved.draft)
    asked = request.POST.get("open")
    opened = (
        saved.focus
        if asked and operation.get("step") == asked and operation["op"] in ("configure", "rename")
        else asked
    )
    shown = panel_for(board, opened, request.POST.get("tab", "setup")) if opened is not None else None
    context = {
        **_context(request, board),
        "patches": patches(board.drawing_before(saved.seen, saved.before), board.drawing),
        "panel": shown,
        "shape_changed": bool(shown) and (shown.shape != request.POST.get("shape") or opened != asked),
        "own_field": "field" in request.POST,
    }
    response = render(request, "canvas/edited.html", context)
    detail = {
        "revision": saved.draft.revision,
        "focus": saved.focus,
        "picked": saved.picked,
        "label": saved.label,
        "op": operation.get("op"),
        "announce": announce or saved.label,
        "panel_gone": opened is not None and shown is None,
    }
    return trigger_client_event(response, "draft:saved", detail)


def _field_refused(request: HttpRequest, board: Board, wrong: FieldError) -> HttpResponse:
    """What was typed is no value: it stays in the field, unsaved, with the reason beside it."""
    context = {"name": request.POST.get("field", ""), "message": str(wrong), "row": wrong.row}
    response = render(request, "canvas/field_refused.html", context)
    return trigger_client_event(
        response, "draft:refused", {"field": context["name"], "message": str(wrong), "row": wrong.row}
    )


def _refused(request: HttpRequest, message: str) -> HttpResponse:
    response = HttpResponse(status=422)
    return trigger_client_event(response, "draft:refused", {"message": message})


def _stale(request: HttpRequest, workflow: Workflow, stale: StaleRevision) -> HttpResponse:
    """Who was faster, and what they changed; the page keeps its own edit to send again."""
    seen = drafts.at_revision(stale.draft, stale.seen)
    context = {
        "workflow": workflow,
        "draft": stale.draft,
        "changes": changes(seen, stale.draft.definition) if seen else None,
        "url": reverse("flow", args=[workflow.pk]),
    }
    return render(request, "canvas/stale.html", context, status=409)


def _context(request: HttpRequest, board: Board) -> dict[str, Any]:
    may_edit = can(request.user, Role.BUILDER, board.workflow.team)
    return {
        "board": board,
        "workflow": board.workflow,
        "draft": board.draft,
        "drawing": board.drawing,
        "problems": [{"name": board.name_of(problem.step), "problem": problem} for problem in board.problems],
        "history": board.history,
        "readonly": not may_edit,
        "may_edit": may_edit,
        "may_run": can(request.user, Role.OPERATOR, board.workflow.team),
        **kept_context(request, board.workflow),
        "section": "flows",
    }


def _asked_panel(request: HttpRequest, board: Board) -> Panel | None:
    if "settings" in request.GET:
        return panel_for(board, "")
    step = request.GET.get("step", "")
    tab = request.GET.get("tab", "setup")
    return panel_for(board, step, tab if tab in TABS else "setup") if step else None


def _revision(data: QueryDict) -> int:
    text = data.get("revision", "")
    return int(text) if text.isdecimal() and len(text) < 10 else -1


urlpatterns = [
    path("flows/<int:pk>/", flow, name="flow"),
    path("flows/<int:pk>/panel/", panel, name="flow_panel"),
    path("flows/<int:pk>/field/", field, name="flow_field"),
    path("flows/<int:pk>/copy/", copy, name="flow_copy"),
    path("flows/<int:pk>/picker/", picker, name="flow_picker"),
    path("flows/<int:pk>/renaming/", renaming, name="flow_renaming"),
    path("flows/<int:pk>/edit/", edit, name="flow_edit"),
    path("flows/<int:pk>/undo/", undo, name="flow_undo"),
    path("flows/<int:pk>/redo/", redo, name="flow_redo"),
    path("flows/<int:pk>/status/", status, name="flow_status"),
]
