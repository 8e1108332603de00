"""Bearer tokens of the API. Only the hash is stored: a token is shown once, when it is made."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class Scope(models.TextChoices):
    """For what a token is good, never more than its person may."""

    ALL = "all", "Everything that you may do"
    START = "start", "Start runs, send signals, and see what became of them"
    READ = "read", "Read only"


class ApiToken(models.Model):
    """`prefix` is the visible beginning by which a person recognises the token; `hash` is SHA-256 of the whole, in hex."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12)
    hash = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=8, choices=Scope, default=Scope.ALL, db_default=Scope.ALL)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "api_token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
