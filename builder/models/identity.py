"""Whom an OpenID provider means."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Identity(models.Model):
    """`subject` is the provider's own name for the person, which it never gives to another; addresses it may."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "identity"
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="identity_subject"),
            models.UniqueConstraint(fields=["user", "issuer"], name="identity_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.issuer}"
