"""Drafts in the database: load, edit, undo, redo. Every change is one numbered revision on a named one.

A change that was made on an older revision than the newest raises StaleRevision and changes nothing, unless both may stand;
what to do about it is for a person to say.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from runtime.models import Workflow

from . import editing
from .editing import EditError
from .joining import both_stand
from .models import Draft, Revision

KEPT = 500
"""Revisions kept per draft. Undo reaches as far back."""
MOST_SINCE = 20
"""So many revisions of others may lie between an edit and what it was made on for both to stand unasked."""

BLANK = {"format": 1, "triggers": [], "steps": []}


class StaleRevision(Exception):
    """Somebody else's change came first. `draft` is what stands now."""

    def __init__(self, draft: Draft, seen: int):
        super().__init__(f"The draft is at revision {draft.revision}; the change was made on {seen}.")
        self.draft, self.seen = draft, seen


@dataclass(frozen=True, slots=True)
class Saved:
    """`draft` as it stands now, `before` the definition that the editor's page shows and `seen` its revision, `focus` the step to
    select next, `picked` the steps that it was about, `replaced` the definition in whose place it came, `wrote` its own
    revision where it changed anything. `joined`: the page has yet to show what these `people`, as far as they are known, did
    to other parts."""

    draft: Draft
    before: dict[str, Any]
    seen: int
    label: str = ""
    focus: str = ""
    picked: tuple[str, ...] = ()
    replaced: dict[str, Any] | None = None
    wrote: int | None = None
    joined: bool = False
    people: tuple[AbstractBaseUser, ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """When an edit was made: on the revision `since`, and on the editor's `own` after it, with others' between that its page had
    not shown by then."""

    since: int
    own: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class History:
    """What undo and redo would do next, by their labels; None where there is nothing."""

    undo: str | None
    redo: str | None


def load(workflow: Workflow) -> Draft:
    """The workflow's draft; on first use made from the live version, or blank."""
    draft = Draft.objects.filter(workflow=workflow).select_related("updated_by").first()
    if draft:
        return draft
    live = workflow.live_version
    return begin(workflow, live.definition if live else {**BLANK, "name": workflow.name}, user=workflow.created_by)


def begin(workflow: Workflow, definition: dict[str, Any], *, user: AbstractBaseUser | None = None) -> Draft:
    """The first revision of a draft: there is nothing before it to undo to. Two requests may come here at once: the
    second gets the draft of the first. Raises EditError for a definition of no sound shape."""
    definition = editing.apply({}, {"op": "replace", "definition": definition}).definition
    try:
        with transaction.atomic():
            draft = Draft.objects.create(workflow=workflow, definition=definition, updated_by=user)
            Revision.objects.create(draft=draft, number=1, definition=definition, created_by=user)
    except IntegrityError:
        pass
    return Draft.objects.select_related("updated_by").get(workflow=workflow)


def save(workflow: Workflow, definition: dict[str, Any], *, revision: int | None, user=None, label: str = "") -> Saved:
    """Replace the whole definition. Without a `revision` it goes on top of whatever is there."""
    operation = {"op": "replace", "definition": definition, "label": label}
    return edit(workflow, operation, revision=revision, user=user)


def edit(
    workflow: Workflow,
    operation: dict[str, Any],
    *,
    revision: int | None,
    user: AbstractBaseUser | None = None,
    key: str = "",
    join: Made | None = None,
    shown: int | None = None,
) -> Saved:
    """Apply one operation. Raises StaleRevision, EditError. Sent again with the same `key` it answers as the first
    time. With `join` an older revision will do as well when both may stand: what others did since, and this. `shown` is the
    revision that the editor's page shows, where that is another one than the edit was made on."""
    with transaction.atomic():
        draft, newest = _locked(workflow)
        shown = revision if shown is None else shown
        if done_before := _known(draft, key):
            return _again(draft, done_before, shown, operation)
        if join is None or join.since == draft.revision:
            _require(draft, revision)
        elif not _both_stand(draft, join, operation, user):
            raise StaleRevision(draft, join.since)
        replaced, page = draft.definition, newest.number if shown is None else shown
        before = replaced if page == newest.number else at_revision(draft, page)
        if before is None:
            raise StaleRevision(draft, page)
        done = editing.apply(replaced, operation)
        joined, wrote = page != newest.number, None
        people = people_since(draft, page) if joined else ()
        if done.definition != replaced:
            _write(draft, done.definition, user, label=done.label, key=key, undo=newest.number)
            wrote = draft.revision
        return Saved(draft, before, page, done.label, done.focus, done.picked, replaced, wrote, joined, people)


def overwrite(
    workflow: Workflow,
    operation: dict[str, Any],
    *,
    made_on: int,
    revision: int,
    user: AbstractBaseUser | None = None,
    key: str = "",
    shown: int | None = None,
) -> Saved:
    """Apply an operation to the older revision that it was made on, and put that on top of `revision`, which must be
    the newest: what came between goes, and undo brings it back. Raises StaleRevision, EditError."""
    with transaction.atomic():
        draft, newest = _locked(workflow)
        if done_before := _known(draft, key):
            return _again(draft, done_before, revision if shown is None else shown, operation)
        _require(draft, revision)
        base, before = _revision(draft, made_on), draft.definition
        if base is None:
            raise EditError("What this edit was made on is no longer kept. Take what is there now, and edit that.")
        done = editing.apply(base.definition, operation)
        _write(draft, done.definition, user, label=done.label, key=key, undo=newest.number)
        return Saved(draft, before, newest.number, done.label, done.focus, done.picked, before, draft.revision)


def undo(workflow: Workflow, *, revision: int, user: AbstractBaseUser | None = None, key: str = "") -> Saved:
    """Bring back what was before the newest edit. With nothing to undo, nothing changes. `key` as in `edit`."""
    return _turn(workflow, revision, user, key, back=True)


def redo(workflow: Workflow, *, revision: int, user: AbstractBaseUser | None = None, key: str = "") -> Saved:
    """Bring back what the newest undo took away. `key` as in `edit`."""
    return _turn(workflow, revision, user, key, back=False)


def locked(workflow: Workflow, revision: int) -> Draft:
    """The draft at this revision, held until the end of the caller's transaction. Raises StaleRevision."""
    draft, _ = _locked(workflow)
    _require(draft, revision)
    return draft


def history(draft: Draft) -> History:
    kept = Revision.objects.filter(draft=draft)
    newest = kept.defer("definition").filter(number=draft.revision).first()
    if newest is None:
        return History(None, None)
    labels = dict(kept.filter(number__in=[newest.undo or 0, newest.redo or 0]).values_list("number", "label"))
    return History(newest.label if newest.undo in labels else None, labels.get(newest.redo))


def at_revision(draft: Draft, number: int) -> dict[str, Any] | None:
    """The definition as it was at a revision, while that is kept."""
    found = _revision(draft, number)
    return found.definition if found else None


def revision_of(workflows: QuerySet[Workflow]) -> int | None:
    """The number alone, for whoever asks often; None where there is no draft yet."""
    return Draft.objects.filter(workflow__in=workflows).values_list("revision", flat=True).first()


def people_since(draft: Draft, number: int, without: int = 0) -> tuple[AbstractBaseUser, ...]:
    """Who wrote the revisions after this one, without that one, each once, the last one first."""
    rows = Revision.objects.filter(draft=draft, number__gt=number).exclude(number=without)
    rows = rows.select_related("created_by").order_by("-number")
    return tuple({row.created_by_id: row.created_by for row in rows.defer("definition") if row.created_by}.values())


def _turn(workflow: Workflow, revision: int, user: AbstractBaseUser | None, key: str, *, back: bool) -> Saved:
    with transaction.atomic():
        draft, newest = _locked(workflow)
        if done_before := _known(draft, key):
            return _again(draft, done_before, revision)
        _require(draft, revision)
        target, before = _revision(draft, newest.undo if back else newest.redo), draft.definition
        if target is None:
            return Saved(draft, before, newest.number)
        undo, redo = (target.undo, newest.number) if back else (newest.number, target.redo)
        _write(draft, target.definition, user, label=target.label, key=key, undo=undo, redo=redo)
        return Saved(draft, before, newest.number, newest.label if back else target.label, replaced=before, wrote=draft.revision)


def _known(draft: Draft, key: str) -> Revision | None:
    """What an edit that is sent again has made already; others may have gone on from there."""
    if not key:
        return None
    return Revision.objects.filter(draft=draft, key=key).defer("definition").order_by("-number").first()


def _again(draft: Draft, made: Revision, shown: int | None, operation: dict[str, Any] | None = None) -> Saved:
    """The answer to an edit that was saved already and whose answer got lost: from what its sender's page shows to what is now."""
    replaced = _revision(draft, made.number - 1)
    focus, picked = "", ()
    if operation and replaced:
        with suppress(EditError):
            done = editing.apply(replaced.definition, operation)
            focus, picked = done.focus, done.picked
    shown = made.number - 1 if shown is None else shown
    seen = replaced if shown == made.number - 1 else _revision(draft, shown)
    before = seen.definition if seen else draft.definition
    joined, people = draft.revision - shown > (shown < made.number), people_since(draft, shown, made.number)
    return Saved(draft, before, shown, made.label, focus, picked, wrote=made.number, joined=joined, people=people)


def _locked(workflow: Workflow) -> tuple[Draft, Revision]:
    """The draft, and the newest revision without its definition, which is the draft's."""
    drafts = Draft.objects.select_for_update(of=("self",)).select_related("updated_by").filter(workflow=workflow)
    draft = drafts.first()
    if draft is None:
        load(workflow)
        draft = drafts.get()
    return draft, Revision.objects.defer("definition").get(draft=draft, number=draft.revision)


def _both_stand(draft: Draft, made: Made, operation: dict[str, Any], user: Any) -> bool:
    """Raises EditError for an operation that could not be applied to what it was made on."""
    if not 0 < draft.revision - made.since <= MOST_SINCE:
        return False
    since = Revision.objects.filter(draft=draft, number__gte=made.since, number__lte=draft.revision).order_by("number")
    found = list(since.values_list("number", "definition", "created_by"))
    if [number for number, *_ in found] != list(range(made.since, draft.revision + 1)):
        return False
    own = [at for at, (number, _, by) in enumerate(found) if at and number in made.own and by == user.pk]
    return both_stand([definition for _, definition, _ in found], operation, own)


def _require(draft: Draft, revision: int | None) -> None:
    if revision is not None and revision != draft.revision:
        raise StaleRevision(draft, revision)


def _revision(draft: Draft, number: int | None) -> Revision | None:
    if number is None:
        return None
    return Revision.objects.filter(draft=draft, number=number).first()


def _write(draft: Draft, definition: dict[str, Any], user: Any, **fields: Any) -> None:
    number = draft.revision + 1
    Revision.objects.create(draft=draft, number=number, definition=definition, created_by=user, **fields)
    draft.revision, draft.definition, draft.updated_by = number, definition, user
    Draft.objects.filter(pk=draft.pk).update(revision=number, definition=definition, updated_by=user, updated_at=Now())
    draft.refresh_from_db(fields=["updated_at"])
    # Until the first publishing, which takes the name over, the draft's name is the flow's.
    Workflow.objects.filter(pk=draft.pk, live_version=None).exclude(name=definition["name"]).update(
        name=definition["name"]
    )
    Revision.objects.filter(draft=draft, number__lte=number - KEPT).delete()
