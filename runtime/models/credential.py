"""Secrets of other systems. Write-only for people: what is stored is encrypted and never shown again."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Credential(models.Model):
    """`config` is what may be seen (`base_url`, `model`, `header`), `secret` the encrypted JSON of what may not.

    `hosts` are the only hosts it is ever sent to. Steps name it by `name` within their workflow's team.
    """

    team = models.ForeignKey("runtime.Team", models.PROTECT, related_name="credentials")
    name = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    hosts = ArrayField(models.TextField(), default=list)
    config = models.JSONField(default=dict)
    secret = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "credential"
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="credential_name")]

    def __str__(self) -> str:
        return self.name
