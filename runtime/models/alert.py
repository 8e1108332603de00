"""Rules that say when somebody is told by mail or webhook, and when all is well again."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from ..states import AlertKind, values


class Alert(models.Model):
    """`threshold` is minutes, a number, percent or US dollars, as `kind` says. With a team or a flow, only its runs count.
    `firing_since` is set while it is so, `told_at` when it was told last; times are the wall clock."""

    kind = models.CharField(max_length=8)
    threshold = models.FloatField()
    team = models.ForeignKey("runtime.Team", models.CASCADE, null=True, blank=True, related_name="+")
    workflow = models.ForeignKey("runtime.Workflow", models.CASCADE, null=True, blank=True, related_name="+")
    address = models.EmailField(max_length=320, blank=True, default="")
    url = models.TextField(blank=True, default="", db_default="")
    """Where a webhook goes; a rule has this, an address, or both."""
    quiet_minutes = models.PositiveIntegerField(default=60)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    value = models.FloatField(null=True)
    looked_at = models.DateTimeField(null=True)
    firing_since = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "alert"
        constraints = [models.CheckConstraint(condition=Q(kind__in=values(AlertKind)), name="alert_kind")]
