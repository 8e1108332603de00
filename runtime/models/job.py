"""What a person asked for many runs at once. Worked off by the workers, a handful of runs per transaction."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from ..states import JobState, values


class Job(models.Model):
    """`runs` are those that were meant when it was asked for, `teams` those that they belong to; `done` is how many of them
    have had their turn, `changed` how many it changed something about. Progress and acts are committed together, so that no
    run has two turns. `key` comes with the form. Times are the wall clock."""

    key = models.CharField(max_length=64, unique=True)
    action = models.CharField(max_length=8)
    format = models.CharField(max_length=5, blank=True, default="")
    about = models.TextField(blank=True, default="")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    runs = ArrayField(models.BigIntegerField())
    teams = ArrayField(models.BigIntegerField(), default=list, db_default=[])
    total = models.IntegerField()
    done = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    state = models.CharField(max_length=7, default=JobState.QUEUED)
    token = models.BigIntegerField(null=True)
    leased_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "job"
        constraints = [models.CheckConstraint(condition=Q(state__in=values(JobState)), name="job_state")]
        indexes = [
            models.Index(fields=["id"], condition=Q(state__in=["queued", "working"]), name="job_open"),
            models.Index(fields=["user", "-id"], name="job_user"),
        ]


class JobPart(models.Model):
    """A piece of an export's file, in order."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="parts")
    n = models.IntegerField()
    text = models.TextField()

    class Meta:
        db_table = "job_part"
        constraints = [models.UniqueConstraint(fields=["job", "n"], name="job_part_once")]
