"""Teams own workflows and credentials; a membership gives one person one role in one team."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower


class Role(models.TextChoices):
    """Ordered: each role may do what the ones before it may."""

    VIEWER = "viewer", "Viewer"
    BUILDER = "builder", "Builder"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Administrator"


class Team(models.Model):
    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    asked_by_others = models.BooleanField(default=False, db_default=False)
    """Whether approvals in flows of other teams may name it."""

    class Meta:
        db_table = "team"
        # Steps name teams in either case: nobody's team comes along under another's name.
        constraints = [models.UniqueConstraint(Lower("name"), name="team_name_once")]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)

    class Meta:
        db_table = "membership"
        constraints = [
            models.UniqueConstraint(fields=["user", "team"], name="membership_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}: {self.get_role_display()}"
