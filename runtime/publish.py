"""Freezing a definition: publishing makes it live, a snapshot pins the test run of a draft."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Max

from .audit import record
from .clock import business_now
from .definition import digest, require
from .durations import parse_duration
from .models import FlowLimit, FormerName, Trigger, Version, Workflow
from .shape import FORMAT
from .triggers import trigger_kinds


@transaction.atomic
def publish(workflow: Workflow, definition: dict[str, Any], *, note: str = "", user=None) -> Version:
    """Freeze the definition as the next version and make it live. Raises DefinitionError with every problem."""
    require(definition)
    workflow = Workflow.objects.select_for_update().get(pk=workflow.pk)
    newest = Version.objects.filter(workflow=workflow).aggregate(Max("number"))["number__max"] or 0
    version = Version.objects.create(
        workflow=workflow, number=newest + 1, format=FORMAT, definition=definition, hash=digest(definition), note=note,
        created_by=user,
    )
    make_live(workflow, version, user=user)
    return version


@transaction.atomic
def make_live(workflow: Workflow, version: Version | None, *, user=None) -> None:
    """Let new runs start on this version; None takes the workflow offline. Runs in flight stay on theirs."""
    workflow.live_version = version
    workflow.name = version.definition["name"] if version else workflow.name
    workflow.save(update_fields=["live_version", "name"])
    _sync_triggers(workflow, version.definition["triggers"] if version and "triggers" in version.definition else [])
    if version:
        _sync_limits(workflow, version.definition.get("limits") or {})
    record("publish" if version else "take_offline", f"workflow:{workflow.pk}", actor=user, team_id=workflow.team_id,
           detail={"version": version.number if version else None})


def snapshot(workflow: Workflow, definition: dict[str, Any], *, user=None) -> Version:
    """The unnumbered version of exactly this definition, made once, and anew when a flow of the team got another name: what
    names of flows mean is decided by when a version was made. Raises DefinitionError."""
    require(definition)
    renamed = FormerName.objects.filter(team_id=workflow.team_id).aggregate(Max("pk"))["pk__max"]
    version, _ = Version.objects.get_or_create(
        workflow=workflow, hash=digest(definition | {"renamed": renamed}), number=None,
        defaults={"format": FORMAT, "definition": definition, "created_by": user},
    )
    return version


def _sync_limits(workflow: Workflow, declared: dict[str, Any]) -> None:
    """What workers and starts read of the limits. A row that is there stays: runs may queue by it."""
    row = {
        "at_most": declared.get("at_most"),
        "per_key": declared.get("per_key"),
        "key": declared.get("key") or "",
        "per_minute": declared.get("per_minute"),
        "drops": declared.get("more") == "drop",
        "yields": declared.get("waiting_holds") is False,
        "priority": str(declared.get("priority") or ""),
        "max_age": parse_duration(declared["max_age"]).total_seconds() if declared.get("max_age") else None,
    }
    if declared or FlowLimit.objects.filter(workflow=workflow).exists():
        FlowLimit.objects.update_or_create(workflow=workflow, defaults=row)


def _sync_triggers(workflow: Workflow, declared: list[dict[str, Any]]) -> None:
    """One row per declared trigger, found by its id so that its address stays; the others are disabled."""
    now = business_now()
    for item in declared:
        config = item.get("config") or {}
        trigger, _ = Trigger.objects.get_or_create(workflow=workflow, key=item["id"], defaults={"type": item["type"]})
        unchanged = trigger.enabled and trigger.type == item["type"] and trigger.config == config
        trigger.type, trigger.config, trigger.enabled = item["type"], config, True
        if not (unchanged and trigger.next_at):
            trigger.next_at = trigger_kinds()[item["type"]].next_after(config, now)
        trigger.save()
    Trigger.objects.filter(workflow=workflow).exclude(key__in=[item["id"] for item in declared]).update(
        enabled=False, next_at=None
    )
