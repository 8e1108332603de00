"""The names that flows had before."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class FormerName(models.Model):
    """A trigger writes it whenever a flow gets another name. Steps and triggers name flows, and published versions never
    change: what a version means by a name is the flow that had it when the version was made (`holdfast_flow`)."""

    workflow = models.ForeignKey("runtime.Workflow", models.CASCADE, related_name="former_names")
    team_id = models.BigIntegerField()
    name = models.CharField(max_length=200)
    until = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "former_name"
        indexes = [models.Index(fields=["team_id", "name", "until"], name="former_name_of")]
