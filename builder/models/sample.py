"""Sample data of a flow's draft: what the builder shows and tries expressions on. No live run ever reads it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from runtime.models.json_in_order import JsonInOrder


class Sample(models.Model):
    """Which input counts as the sample: of a run, or one that was pasted or caught. Without a row, the newest run's."""

    RUN, PASTED, CAUGHT = "run", "pasted", "caught"

    workflow = models.OneToOneField("runtime.Workflow", models.CASCADE, primary_key=True, related_name="+")
    kind = models.CharField(max_length=8)
    run_id = models.BigIntegerField(null=True, blank=True)
    trigger = JsonInOrder(null=True, blank=True)
    made_at = models.DateTimeField(db_default=Now())
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        db_table = "draft_sample"

    def __str__(self) -> str:
        return f"{self.kind} sample of {self.workflow}"


class Pin(models.Model):
    """An output that a step of the draft is taken to have: in previews, and in test runs instead of the step itself."""

    workflow = models.ForeignKey("runtime.Workflow", models.CASCADE, related_name="+")
    step = models.CharField(max_length=64)
    output = JsonInOrder()
    made_at = models.DateTimeField(db_default=Now())
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        db_table = "draft_pin"
        constraints = [models.UniqueConstraint(fields=["workflow", "step"], name="draft_pin_step")]

    def __str__(self) -> str:
        return f"{self.step} of {self.workflow}"


class Listener(models.Model):
    """The test address of a draft. It takes one call while somebody listens; otherwise there is nothing at it."""

    workflow = models.OneToOneField("runtime.Workflow", models.CASCADE, primary_key=True, related_name="+")
    token = models.CharField(max_length=64, unique=True)
    until = models.DateTimeField(null=True, blank=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        db_table = "draft_listener"

    def __str__(self) -> str:
        return f"test address of {self.workflow}"
