"""What starts runs of a live version, apart from people and the API. Made from the definition when it is published."""

from __future__ import annotations

import secrets

from django.db import models


def new_token() -> str:
    """The unguessable part of a webhook's address: 192 bits, URL-safe."""
    return secrets.token_urlsafe(24)


class Trigger(models.Model):
    """One row per (workflow, trigger id of the definition). It survives publishing, so that its address stays."""

    workflow = models.ForeignKey("runtime.Workflow", models.CASCADE, related_name="triggers")
    key = models.CharField(max_length=64)
    type = models.CharField(max_length=32)
    config = models.JSONField(default=dict)
    token = models.CharField(max_length=64, unique=True, default=new_token)
    enabled = models.BooleanField(default=True)
    next_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    last_run_id = models.BigIntegerField(null=True, blank=True)
    """The run that its last time started."""

    class Meta:
        db_table = "trigger"
        constraints = [models.UniqueConstraint(fields=["workflow", "key"], name="trigger_key")]
        indexes = [
            models.Index(fields=["type"], condition=models.Q(type="ended", enabled=True), name="trigger_ended"),
            models.Index(fields=["next_at"], condition=models.Q(enabled=True, next_at__isnull=False), name="trigger_due"),
        ]

    def __str__(self) -> str:
        return f"{self.workflow}: {self.key}"
