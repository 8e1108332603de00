"""Runs, and the one narrow row per unfinished run that says who may advance it, and when.

Rows that a running step writes carry no database foreign key to the run: each such check would lock the run's row once
per step. Runs are deleted only by retention, which deletes their rows first.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTextTransform

from ..clock import BusinessNow
from ..states import UNFINISHED, DispatchState, RunState, values
from .json_in_order import JsonInOrder


class Run(models.Model):
    """One execution of one version. `id` is what people see as "Run 48,213"."""

    workflow = models.ForeignKey("runtime.Workflow", models.PROTECT, related_name="runs", db_index=False)
    version = models.ForeignKey("runtime.Version", models.PROTECT, related_name="runs", db_constraint=False)
    trigger_key = models.CharField(max_length=64)
    idempotency_key = models.TextField(null=True, blank=True)
    input_hash = models.CharField(max_length=64, blank=True, default="")
    input = JsonInOrder(default=dict)
    state = models.CharField(max_length=10, default=RunState.OPEN)
    title = models.TextField(blank=True, default="")
    test = models.BooleanField(default=False)
    output = JsonInOrder(null=True, blank=True)
    error = models.JSONField(null=True, blank=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True, blank=True)
    created_at = models.DateTimeField(db_default=BusinessNow())
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    parent_id = models.BigIntegerField(null=True, blank=True)
    """The run whose sub-flow step started this one."""
    depth = models.SmallIntegerField(default=0, db_default=0)
    """How many runs led to this one, each by starting the next."""
    rerun_of = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="reruns", db_index=False)

    class Meta:
        db_table = "run"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=values(RunState)), name="run_state"),
            models.CheckConstraint(
                condition=Q(state__in=UNFINISHED, ended_at__isnull=True)
                | (~Q(state__in=UNFINISHED) & Q(ended_at__isnull=False)),
                name="run_ended",
            ),
            models.UniqueConstraint(
                fields=["idempotency_key", "trigger_key", "workflow"],
                condition=Q(idempotency_key__isnull=False),
                name="run_key",
            ),
        ]
        indexes = [
            models.Index(fields=["workflow", "-id"], name="run_workflow"),
            models.Index(
                fields=["workflow", "state", "-id"], condition=Q(state__in=["attention", "failed", "cancelled"]),
                name="run_workflow_state",
            ),
            models.Index(fields=["parent_id"], condition=Q(parent_id__isnull=False), name="run_parent"),
            models.Index(fields=["state", "-id"], condition=~Q(state="succeeded"), name="run_state_id"),
            models.Index(KeyTextTransform("kind", "error"), F("id").desc(), condition=Q(state="failed"), name="run_error_kind"),
            models.Index(fields=["workflow", "ended_at"], condition=Q(ended_at__isnull=False), name="run_ended_at"),
            models.Index(fields=["-id"], condition=Q(test=True), name="run_tests"),
            models.Index(fields=["rerun_of"], condition=Q(rerun_of__isnull=False), name="run_rerun_of"),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk:,}"


class Dispatch(models.Model):
    """Eligible (`due_at`) and claimed (`token`, `leased_until`) are apart. The row is the run's only lock, and is gone at
    the run's end, so that claiming costs the same beside a million finished runs.

    `wakes` counts what happened to the run while somebody held it. `lost` counts leases lost in a row, `deaths` those
    that were lost while the run was the only one its worker held.

    Of a run whose flow has limits (`runtime.slots`): `slot_of` is the flow whose slots it takes, `slot_key` its key
    there. The row itself is the slot, so that none can be lost; a run that is `queued` has none, and nobody claims it.
    With `yields` it gives its slot up while it waits.
    """

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, db_constraint=False)
    version_id = models.BigIntegerField()
    state = models.CharField(max_length=8, default=DispatchState.READY)
    due_at = models.DateTimeField(null=True)
    token = models.BigIntegerField(null=True)
    worker_id = models.BigIntegerField(null=True)
    leased_until = models.DateTimeField(null=True)
    claims = models.IntegerField(default=0)
    wakes = models.IntegerField(default=0)
    lost = models.SmallIntegerField(default=0)
    alone = models.BooleanField(default=False)
    deaths = models.SmallIntegerField(default=0)
    priority = models.SmallIntegerField(default=0, db_default=0)
    queued = models.BooleanField(default=False, db_default=False)
    slot_of = models.BigIntegerField(null=True)
    slot_key = models.TextField(null=True, db_collation="C")
    yields = models.BooleanField(default=False, db_default=False)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "dispatch"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=values(DispatchState)), name="dispatch_state"),
            models.CheckConstraint(
                condition=Q(state="claimed", token__isnull=False, worker_id__isnull=False, leased_until__isnull=False)
                | (~Q(state="claimed") & Q(token__isnull=True, worker_id__isnull=True, leased_until__isnull=True)),
                name="dispatch_claim",
            ),
            models.CheckConstraint(
                condition=~Q(state="ready") | Q(due_at__isnull=False), name="dispatch_ready_is_due"
            ),
            models.CheckConstraint(condition=Q(queued=False) | Q(slot_of__isnull=False), name="dispatch_queued"),
        ]
        indexes = [
            models.Index(
                fields=["priority", "due_at", "run"], name="dispatch_due_runs",
                condition=Q(token__isnull=True, due_at__isnull=False, queued=False),
            ),
            models.Index(
                fields=["slot_of", "queued", "slot_key", "priority", "due_at"], condition=Q(slot_of__isnull=False),
                name="dispatch_slots",
            ),
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="dispatch_expires"),
            models.Index(fields=["leased_until"], condition=Q(token__isnull=False), name="dispatch_lease"),
            models.Index(fields=["lost"], condition=Q(token__isnull=True, lost__gt=0), name="dispatch_lost"),
        ]


class RunEnd(models.Model):
    """An end that something follows (`runtime.endings`): taken away by who does it. With `wait_id`, a wait for a started
    run was dropped, and that run ends too."""

    run_id = models.BigIntegerField()
    wait_id = models.BigIntegerField(null=True)
    failure_flow = models.CharField(max_length=200, default="", db_default="")

    class Meta:
        db_table = "run_end"


class RunSearch(models.Model):
    """One of the values that a run can be found by, in lower case, as its flow declares them."""

    pk = models.CompositePrimaryKey("run_id", "value")
    run_id = models.BigIntegerField()
    value = models.TextField(db_collation="C")

    class Meta:
        db_table = "run_search"
        indexes = [models.Index("value", F("run_id").desc(), name="run_search_value")]


class Frame(models.Model):
    """A loop's or parallel's place. `cursor` is the next iteration to begin, `open` those begun and not ended."""

    pk = models.CompositePrimaryKey("run_id", "path", "take")
    run_id = models.BigIntegerField()
    path = models.TextField(db_collation="C")
    take = models.IntegerField()
    kind = models.CharField(max_length=8)
    total = models.IntegerField(null=True)
    cursor = models.IntegerField(default=0)
    open = models.JSONField(default=list)
    succeeded = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    started_at = models.DateTimeField(db_default=BusinessNow())

    class Meta:
        db_table = "frame"


class FrameChunk(models.Model):
    """At most 100 items of a loop, so that an iteration reads its neighbours and not the whole list."""

    pk = models.CompositePrimaryKey("run_id", "path", "take", "n")
    run_id = models.BigIntegerField()
    path = models.TextField(db_collation="C")
    take = models.IntegerField()
    n = models.IntegerField()
    items = JsonInOrder()

    class Meta:
        db_table = "frame_chunk"


class FrameValue(models.Model):
    """What a loop's `collect` expression gave for one iteration; or a part of what a step gives, by the number of its attempt."""

    pk = models.CompositePrimaryKey("run_id", "path", "take", "index")
    run_id = models.BigIntegerField()
    path = models.TextField(db_collation="C")
    take = models.IntegerField()
    index = models.IntegerField()
    value = JsonInOrder(null=True)

    class Meta:
        db_table = "frame_value"
