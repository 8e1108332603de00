"""Making, copying and putting away flows: each change with its entry in the audit trail."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from runtime.audit import record
from runtime.models import Team, Trigger, Workflow
from runtime.pausing import LONGEST_WHY

from . import drafts
from .circles import circles
from .editing import EditError

LONGEST_NAME = 200
LONGEST_FOLDER = 80


@transaction.atomic
def make_flow(team: Team, name: str, *, user: Any, definition: dict[str, Any] | None = None) -> Workflow:
    """A flow with a draft, not published. The definition's name becomes `name`. Raises EditError for one of no sound
    shape, and for one that would start itself."""
    name = name.strip()[:LONGEST_NAME] or "New flow"
    workflow = Workflow.objects.create(team=team, name=name, created_by=user)
    draft = drafts.begin(workflow, {**(drafts.BLANK if definition is None else definition), "name": name}, user=user)
    if wrong := " ".join(problem.message for problem in circles(draft.definition, team.pk, workflow.pk)):
        raise EditError(wrong)
    record("make_flow", f"workflow:{workflow.pk}", actor=user, team_id=team.pk, detail={"name": name})
    return workflow


def duplicate_flow(workflow: Workflow, *, user: Any) -> Workflow:
    definition = deepcopy(drafts.load(workflow).definition)
    made = make_flow(workflow.team, f"{workflow.name} (copy)", user=user, definition=definition)
    put_into_folder(made, workflow.folder, user=user)
    return made


@transaction.atomic
def delete_flow(workflow: Workflow, *, user: Any) -> bool:
    """Softly: it starts no more runs and leaves the lists; runs in flight and their history stay. Whether it was
    there."""
    changed = Workflow.objects.filter(pk=workflow.pk, deleted_at=None).update(deleted_at=Now())
    if changed:
        Trigger.objects.filter(workflow=workflow).update(enabled=False, next_at=None)
        record(
            "delete_flow",
            f"workflow:{workflow.pk}",
            actor=user,
            team_id=workflow.team_id,
            detail={"name": workflow.name},
        )
    return bool(changed)


@transaction.atomic
def keep_runs(workflow: Workflow, days: int | None, *, user: Any) -> bool:
    """How many days finished runs are kept; 0 for ever, None as the installation does. Whether anything changed."""
    workflow = Workflow.objects.select_for_update().get(pk=workflow.pk)
    if workflow.retention_days == days:
        return False
    detail = {"days": days, "before": workflow.retention_days}
    workflow.retention_days = days
    workflow.save(update_fields=["retention_days"])
    record("keep_runs", f"workflow:{workflow.pk}", actor=user, team_id=workflow.team_id, detail=detail)
    return True


@transaction.atomic
def put_into_folder(workflow: Workflow, folder: str, *, user: Any) -> bool:
    """An empty name takes it out. Whether anything changed."""
    folder = " ".join(folder.split())[:LONGEST_FOLDER]
    before = Workflow.objects.select_for_update().get(pk=workflow.pk).folder
    if before == folder:
        return False
    Workflow.objects.filter(pk=workflow.pk).update(folder=folder)
    detail = {"folder": folder, "before": before}
    record("folder_flow", f"workflow:{workflow.pk}", actor=user, team_id=workflow.team_id, detail=detail)
    return True


@transaction.atomic
def pause_flow(workflow: Workflow, paused: bool, *, user: Any, why: str = "") -> bool:
    """A paused flow takes no new runs. Whether anything changed."""
    why = why[:LONGEST_WHY] if paused else ""
    changed = Workflow.objects.filter(pk=workflow.pk).exclude(paused=paused).update(paused=paused, paused_why=why)
    if changed:
        action, detail = "pause" if paused else "unpause", {"why": why} if why else {}
        record(action, f"workflow:{workflow.pk}", actor=user, team_id=workflow.team_id, detail=detail)
    return bool(changed)
