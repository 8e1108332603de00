"""Worker processes and their beats, and the mark by which a process learns whether its last batch was committed."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Value
from django.db.models.functions import Now


class Worker(models.Model):
    """One worker process from its start to its end. Times are the database's wall clock, never business time."""

    cluster = models.TextField()
    host = models.TextField()
    pid = models.IntegerField()
    code_version = models.TextField(default="")
    formats = ArrayField(models.SmallIntegerField(), default=list)
    step_types = ArrayField(models.TextField(), default=list)
    started_at = models.DateTimeField(db_default=Now())
    beat_at = models.DateTimeField(db_default=Now())
    slots = models.IntegerField(default=0)
    in_flight = models.IntegerField(default=0)
    finished = models.BigIntegerField(default=0)
    unable = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    """Versions that it cannot run -> why, with step and field."""
    figures = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    """What it has counted since its start, by the names of `runtime.worker.Worker.counted`."""
    stopping = models.BooleanField(default=False)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "worker"


class JournalMark(models.Model):
    """`batch` is the last batch committed; `epoch` shuts out batches sent on a connection that was given up."""

    worker_id = models.BigIntegerField(primary_key=True)
    epoch = models.IntegerField(default=1)
    batch = models.BigIntegerField(default=0)

    class Meta:
        db_table = "journal_mark"
