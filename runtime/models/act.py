"""Keys of acts that were done, so that a form that is sent twice does nothing the second time."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Act(models.Model):
    """`key` comes with the form. `result` is the run that the act started, if it started one."""

    key = models.CharField(max_length=64, primary_key=True)
    run_id = models.BigIntegerField()
    action = models.CharField(max_length=16)
    result = models.BigIntegerField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "act"
        indexes = [models.Index(fields=["at"], name="act_at")]
