"""Rates that hold across processes (`runtime.limits`)."""

from __future__ import annotations

from django.db import models


class RateLimit(models.Model):
    """`until`: when everything admitted so far would have been sent at the even rate. An unlogged table: a crash of the
    database forgets who was admitted in the minute before it."""

    key = models.TextField(primary_key=True, db_collation="C")
    until = models.DateTimeField()

    class Meta:
        db_table = "rate_limit"
