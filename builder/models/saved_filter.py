"""Filters of the run list that a person keeps by a name."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavedFilter(models.Model):
    """`query` is the query string of the run list."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    query = models.TextField()

    class Meta:
        db_table = "saved_filter"
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_filter_name")]
        ordering = ["name"]
