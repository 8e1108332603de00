"""Which containers somebody has collapsed on the canvas of a flow."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Fold(models.Model):
    """One row per collapsed step, of one person: how one looks at a flow changes nothing for the others."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    workflow = models.ForeignKey("runtime.Workflow", models.CASCADE, related_name="+")
    step = models.CharField(max_length=64)

    class Meta:
        db_table = "fold"
        constraints = [models.UniqueConstraint(fields=["user", "workflow", "step"], name="fold_step")]

    def __str__(self) -> str:
        return f"{self.step} of {self.workflow}, for {self.user}"
