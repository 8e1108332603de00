"""Who did what: append-only, the database refuses changes."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from ..clock import BusinessNow


class AuditEntry(models.Model):
    """`action` is a verb such as `publish`, `requeue`, `resolve`, `decide`; `subject` names the object (`run:48213`)."""

    at = models.DateTimeField(db_default=BusinessNow())
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.DO_NOTHING, null=True, related_name="+", db_constraint=False)
    actor_name = models.TextField(default="")
    team_id = models.BigIntegerField(null=True)
    action = models.CharField(max_length=32)
    subject = models.TextField()
    detail = models.JSONField(default=dict)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        db_table = "audit"
        indexes = [
            models.Index(fields=["subject", "-id"], name="audit_subject"),
            models.Index(fields=["team_id", "-id"], name="audit_team"),
            models.Index(fields=["action", "-id"], name="audit_action"),
        ]
