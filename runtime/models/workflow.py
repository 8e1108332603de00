"""Workflows and their versions. A published version never changes: the database refuses it, also from psql."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from .json_in_order import JsonInOrder


class Workflow(models.Model):
    """A named flow. Its draft lives in the builder, its history here; deleted softly, so that runs keep their past."""

    team = models.ForeignKey("runtime.Team", models.PROTECT, related_name="workflows")
    name = models.CharField(max_length=200)
    live_version = models.ForeignKey("runtime.Version", models.PROTECT, null=True, blank=True, related_name="+")
    paused = models.BooleanField(default=False)
    paused_why = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    deleted_at = models.DateTimeField(null=True, blank=True)
    retention_days = models.PositiveIntegerField("days that finished runs are kept", null=True, blank=True)
    """Null: as HOLDFAST_RETENTION_DAYS says. 0: for ever."""
    folder = models.CharField(max_length=80, blank=True, default="", db_default="")
    """Where the list of flows shows it; there when a flow names it. Empty: in none."""

    class Meta:
        db_table = "workflow"
        indexes = [models.Index(fields=["team", "-id"], name="workflow_team")]

    def __str__(self) -> str:
        return self.name


class FlowLimit(models.Model):
    """The limits of a flow's live version (`runtime.slots`), which hold for the runs of all its versions; null: none.
    Who hands out slots locks the row. It stays when a version without limits goes live, for runs may still queue."""

    workflow = models.OneToOneField(Workflow, models.CASCADE, primary_key=True, related_name="limit")
    at_most = models.IntegerField(null=True)
    per_key = models.IntegerField(null=True)
    key = models.TextField(default="")
    per_minute = models.IntegerField(null=True)
    drops = models.BooleanField(default=False)
    yields = models.BooleanField(default=False)
    priority = models.TextField(default="")
    max_age = models.FloatField(null=True)
    """Seconds."""

    class Meta:
        db_table = "flow_limit"


class Version(models.Model):
    """A definition frozen. `number` is null for the snapshot that a test run of a draft is pinned to."""

    workflow = models.ForeignKey(Workflow, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField(null=True, blank=True)
    format = models.PositiveSmallIntegerField(default=1)
    definition = JsonInOrder()
    hash = models.CharField(max_length=64)
    note = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        db_table = "version"
        constraints = [
            models.UniqueConstraint(fields=["workflow", "number"], name="version_number"),
            models.UniqueConstraint(
                fields=["workflow", "hash"], condition=models.Q(number__isnull=True), name="version_snapshot"
            ),
        ]

    def __str__(self) -> str:
        return f"v{self.number}" if self.number else "draft snapshot"
