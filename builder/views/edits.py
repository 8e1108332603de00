"""Every change of a draft from the builder's page: edits, undo and redo; what happens when two people change one draft;
and how a page learns of what others did."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from runtime.jsonvalues import BadJson, loads_strict, storable_text
from runtime.models import Role, Workflow

from .. import drafts
from ..access import get_workflow, workflows_for
from ..board import Board
from ..curl import is_curl, sign_in_of
from ..dataflow import put_right
from ..diff import changes
from ..drafts import MOST_SINCE, Saved, StaleRevision
from ..drawing import patches
from ..editing import EditError, apply
from ..fieldedits import field_operation
from ..fixes import use_label
from ..forms.base import FieldError
from ..forms.widgets.expression import unbraced
from ..models import Draft
from ..numbers import number_of
from ..panel import panel_for
from ..samples import pins_follow
from ..templatetags.canvas import people
from ..texts import Text
from .canvas import page_context

Operation = dict[str, Any]


@require_POST
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """One operation on one revision. `operation` is JSON; a field of the panel is sent as it was typed (`field`,
    `owner`). `over` says on which older revision it was made, to win over what came between; `shown`, which revision the
    page shows, where others' changes came to it after the edit was made; `since` and `own`, see `drafts.Made`.

    Answers with the parts of the page that changed; 409 when the draft has moved on and not both may stand, with ways out;
    422 when the operation cannot be applied.
    """
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    revision, over = _revision(request.POST), _revision(request.POST, "over")
    key, shown = _key(request.POST), number_of(request.POST.get("shown", ""))
    since = _revision(request.POST, "since") if "since" in request.POST else revision
    made = drafts.Made(since, tuple(filter(None, map(number_of, request.POST.get("own", "").split(",")[:MOST_SINCE]))))
    try:
        operation = _operation(request.POST, workflow, revision if over < 0 else over)
        if over < 0:
            saved = drafts.edit(workflow, operation, revision=revision, user=request.user, key=key, join=made, shown=shown)
        else:
            saved = drafts.overwrite(workflow, operation, made_on=over, revision=revision, user=request.user, key=key, shown=shown)
    except FieldError as wrong:
        return _field_refused(request, Board.of(workflow), wrong)
    except EditError as wrong:
        return _refused(str(wrong))
    except StaleRevision as stale:
        return _stale(request, workflow, stale, over if over >= 0 else since, operation, over if over >= 0 else revision)
    return _changed(request, workflow, saved, operation)


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponse:
    return _step_in_history(request, pk, drafts.undo, "Undid")


@require_POST
def redo(request: HttpRequest, pk: int) -> HttpResponse:
    return _step_in_history(request, pk, drafts.redo, "Redid")


@require_safe
def status(request: HttpRequest, pk: int) -> HttpResponse:
    """Asked for while the page is open: 204 while the draft is where the page has it or knows it to be (`known`),
    otherwise a notice of who moved it, and how."""
    seen = _revision(request.GET)
    now = drafts.revision_of(workflows_for(request.user).filter(pk=pk))
    if now is not None and now <= max(seen, _revision(request.GET, "known")):
        return HttpResponse(status=204)
    workflow = get_workflow(request.user, pk)
    draft = drafts.load(workflow)
    return render(request, "canvas/moved.html", {"workflow": workflow, **_since(draft, seen)})


@require_safe
def since(request: HttpRequest, pk: int) -> HttpResponse:
    """The page brought from `revision` to what stands now, in place; 204 when that revision is no longer kept."""
    workflow = get_workflow(request.user, pk)
    draft, seen = drafts.load(workflow), _revision(request.GET)
    before = drafts.at_revision(draft, seen)
    if before is None:
        return HttpResponse(status=204)
    saved = Saved(draft, before, seen)
    return _changed(request, workflow, saved, {}, "The canvas shows the draft as it is now", event="draft:caught_up")


def _since(draft: Draft, seen: int) -> dict[str, Any]:
    """Who changed the draft after a revision, and what; `changes` is None when that revision is no longer kept."""
    before = drafts.at_revision(draft, seen)
    return {
        "draft": draft,
        "people": drafts.people_since(draft, seen),
        "changes": changes(before, draft.definition) if before else None,
    }


def _step_in_history(request: HttpRequest, pk: int, act: Any, verb: str) -> HttpResponse:
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    revision = _revision(request.POST)
    try:
        saved = act(workflow, revision=revision, user=request.user, key=_key(request.POST))
    except StaleRevision as stale:
        return _stale(request, workflow, stale, revision, None)
    announce = f"{verb}: {saved.label[:1].lower()}{saved.label[1:]}" if saved.label else "Nothing to undo"
    return _changed(request, workflow, saved, {"op": act.__name__}, announce)


def _as_seen(workflow: Workflow, revision: int) -> dict[str, Any]:
    """The definition that the page had: what was typed there is read as it was meant."""
    draft = drafts.load(workflow)
    if revision == draft.revision:
        return draft.definition
    return drafts.at_revision(draft, revision) or draft.definition


def _operation(post: QueryDict, workflow: Workflow, made_on: int) -> Operation:
    if "field" in post:
        return field_operation(_as_seen(workflow, made_on), workflow.live_version, post)
    try:
        operation = loads_strict(post.get("operation", "").encode(), root="operation")
    except BadJson as wrong:
        raise EditError(str(wrong)) from None
    if not isinstance(operation, dict):
        raise EditError("The operation is not an object.")
    return operation


def _sets_many(asked: QueryDict) -> bool:
    """Whether one field set others too: a curl command that was pasted as the address."""
    return is_curl(asked.get("value", ""))


def _changed(
    request: HttpRequest,
    workflow: Workflow,
    saved: Saved,
    operation: Operation,
    announce: str = "",
    event: str = "draft:saved",
) -> HttpResponse:
    """The changed parts, out of band; an event tells the page the new revision and what to select."""
    if saved.replaced:
        pins_follow(workflow, saved.replaced, saved.draft.definition)
    board, asked = Board(workflow, saved.draft), request.POST if request.method == "POST" else request.GET
    opened = asked.get("open")
    renamed = saved.focus and operation.get("op") in ("configure", "rename") and operation["step"] != saved.focus
    was = operation["step"] if renamed else ""
    if opened and opened == was:
        opened = saved.focus
    shown = panel_for(board, opened, asked.get("tab", "setup")) if opened is not None else None
    context = {
        **page_context(request, board),
        "patches": patches(board.drawing_before(saved.seen, saved.before), board.drawing),
        "panel": shown,
        "shape_changed": bool(shown) and (saved.joined or shown.shape != asked.get("shape") or opened != asked.get("open") or _sets_many(asked)),
        "own_field": "field" in request.POST,
    }
    detail = {
        "revision": saved.draft.revision,
        "focus": saved.focus,
        "picked": saved.picked,
        "label": saved.label,
        "op": operation.get("op"),
        "was": was,
        "wrote": saved.wrote,
        "announce": announce or saved.label,
        "panel_gone": opened is not None and shown is None,
    }
    response = trigger_client_event(render(request, "canvas/edited.html", context), event, detail)
    words = []
    if saved.joined and saved.before != saved.replaced:
        words.append(f"{people(saved.people, request.user)} changed other parts of this flow in the meantime: both are saved, and shown now.")
    if _sets_many(asked) and (names := sign_in_of(asked["value"])):
        words.append(f"Taken over without what signs in ({', '.join(names)}): choose a connection for that.")
    if words:
        trigger_client_event(response, "toast", {"message": " ".join(words), "kind": "attention"})
    return response


def _field_refused(request: HttpRequest, board: Board, wrong: FieldError) -> HttpResponse:
    """What was typed is no value: it stays in the field, unsaved, with the reason beside it; `put` is what would be one."""
    detail = {"field": request.POST.get("field", ""), "message": str(wrong), "row": wrong.row}
    if wrong.unreadable and (new := _put_right(request.POST, board)):
        detail |= {"put": new, "label": use_label(new)}
    return trigger_client_event(HttpResponse(), "draft:refused", detail)


def _put_right(post: QueryDict, board: Board) -> str | None:
    """For an expression in a field of its own, or one beside its rules."""
    typed = post.get("expression") if post.get("mode") == "expression" else post.get("value")
    text = Text(post.get("owner", ""), post.get("field", ""), unbraced(typed or ""), "expression")
    return put_right(board.known, text)


def _refused(message: str) -> HttpResponse:
    return trigger_client_event(HttpResponse(status=422), "draft:refused", {"message": message})


def _stale(
    request: HttpRequest, workflow: Workflow, stale: StaleRevision, made_on: int, operation: Operation | None, after_own: int = 0
) -> HttpResponse:
    """Who was faster, what they changed, and what becomes of the edit that came too late; the page keeps that one. Undo
    and redo have no operation of their own: on another draft they would mean something else. Where one's own edits lie between,
    up to `after_own`, it cannot win over theirs: those would go with them."""
    context = {"workflow": workflow, "made_on": made_on, **_since(stale.draft, made_on)}
    if operation is not None:
        context |= _told(operation, drafts.at_revision(stale.draft, after_own), stale.draft.definition)
        context["may_overwrite"] = context.get("may_overwrite") and after_own == made_on
    return render(request, "canvas/stale.html", context, status=409)


def _told(operation: Operation, seen: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """`mine` names the edit, `wrong` says why it cannot be applied to what stands now; it can win over that only while
    what it was made on is kept."""
    context: dict[str, Any] = {"mine": "Your last edit"}
    try:
        if seen is not None:
            context |= {"mine": apply(seen, operation).label, "may_overwrite": True}
        apply(now, operation)
    except EditError as wrong:
        context["wrong"] = str(wrong)
    return context


def _key(data: QueryDict) -> str:
    """What names this edit. By a word of its own: a field's rows are posted beside it, and their names are `key`."""
    return storable_text(data.get("edit_key", ""))[:40]


def _revision(data: QueryDict, name: str = "revision") -> int:
    found = number_of(data.get(name, ""))
    return -1 if found is None else found


urlpatterns = [
    path("flows/<int:pk>/edit/", edit, name="flow_edit"),
    path("flows/<int:pk>/undo/", undo, name="flow_undo"),
    path("flows/<int:pk>/redo/", redo, name="flow_redo"),
    path("flows/<int:pk>/status/", status, name="flow_status"),
    path("flows/<int:pk>/since/", since, name="flow_since"),
]
