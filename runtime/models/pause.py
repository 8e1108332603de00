"""That nothing is taken up: one row while all work is paused, none while it goes on."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Pause(models.Model):
    """`id` is always 1, so that there is one at most. Times are the wall clock."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField(db_default=Now())
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    why = models.TextField(blank=True, default="")

    class Meta:
        db_table = "pause"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="pause_one")]
