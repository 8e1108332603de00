"""E-mails and notifications, committed with the step that caused them and sent afterwards."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ..clock import BusinessNow
from ..states import OutboxState, values


class OutboxMessage(models.Model):
    """At most one per (run, path, take, kind, recipient, occurrence), sent at least once with a stable Message-ID.

    `payload` holds `{"to", "cc", "reply_to", "subject", "text", "html", "attachments"}`; an approval's link is put in at sending.
    """

    run_id = models.BigIntegerField(null=True, db_index=True)
    path = models.TextField(db_collation="C", default="")
    take = models.IntegerField(default=1)
    kind = models.CharField(max_length=16)
    recipient = models.TextField()
    occurrence = models.IntegerField(default=1)
    message_id = models.TextField()
    payload = models.JSONField()
    state = models.CharField(max_length=7, default=OutboxState.QUEUED)
    attempts = models.IntegerField(default=0)
    due_at = models.DateTimeField(db_default=BusinessNow())
    token = models.BigIntegerField(null=True, blank=True)
    worker_id = models.BigIntegerField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=BusinessNow())

    class Meta:
        db_table = "outbox"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=values(OutboxState)), name="outbox_state"),
            models.UniqueConstraint(
                fields=["run_id", "path", "take", "kind", "recipient", "occurrence"], name="outbox_once"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state__in=["queued", "sending"]), name="outbox_due"),
            models.Index(fields=["worker_id"], condition=Q(state="sending"), name="outbox_sending"),
            models.Index(fields=["-id"], condition=Q(state="failed"), name="outbox_failed"),
        ]
