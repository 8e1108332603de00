"""Teams and their members: the changes, each with its entry in the audit trail."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from runtime.audit import record
from runtime.models import Membership, Role, Team

DEFAULT_TEAM = "Team"
PRODUCT = "Holdfast"


class LastAdministrator(Exception):
    """The change would leave the team without an administrator."""


def ensure_default_team(user: Any) -> Team:
    """The first team, with `user` as its administrator, so that a new installation can be used at once.

    With any team there already, that is left as it is: called at every start.
    """
    with transaction.atomic():
        team = Team.objects.order_by("pk").first()
        if team is None:
            team, _ = Team.objects.get_or_create(name=DEFAULT_TEAM)
            Membership.objects.get_or_create(user=user, team=team, defaults={"role": Role.ADMIN})
        return team


def who_asks(team: Team) -> str:
    """The name over pages for people from outside: the team's, once somebody has given it one."""
    return PRODUCT if team.name == DEFAULT_TEAM else team.name


@transaction.atomic
def create_team(name: str, *, actor: Any) -> Team:
    """A new team, with its maker as administrator."""
    team = Team.objects.create(name=name)
    Membership.objects.create(user=actor, team=team, role=Role.ADMIN)
    record("create_team", f"team:{team.pk}", actor=actor, team_id=team.pk, detail={"name": name})
    return team


@transaction.atomic
def rename_team(team: Team, name: str, *, actor: Any) -> None:
    before, team.name = team.name, name
    team.save(update_fields=["name"])
    record("rename_team", f"team:{team.pk}", actor=actor, team_id=team.pk, detail={"from": before, "to": name})


@transaction.atomic
def let_ask(team: Team, others: bool, *, actor: Any) -> None:
    """Whether approvals in flows of other teams may name this one."""
    if Team.objects.filter(pk=team.pk).exclude(asked_by_others=others).update(asked_by_others=others):
        record("let_ask", f"team:{team.pk}", actor=actor, team_id=team.pk, detail={"others": others})


@transaction.atomic
def set_role(team: Team, user: Any, role: Role, *, actor: Any) -> bool:
    """Make somebody a member, or change a member's role. Whether anything changed. Raises LastAdministrator."""
    _lock(team)
    member = Membership.objects.filter(team=team, user=user).first()
    if member and member.role == role:
        return False
    if member and member.role == Role.ADMIN:
        _keep_an_administrator(team, user)
    Membership.objects.update_or_create(team=team, user=user, defaults={"role": role})
    detail = {"user": str(user), "from": member.role if member else None, "to": role}
    record("set_role", f"user:{user.pk}", actor=actor, team_id=team.pk, detail=detail)
    return True


@transaction.atomic
def remove_member(team: Team, user: Any, *, actor: Any) -> bool:
    """End a membership. Whether there was one. Raises LastAdministrator."""
    _lock(team)
    member = Membership.objects.filter(team=team, user=user).first()
    if member is None:
        return False
    if member.role == Role.ADMIN:
        _keep_an_administrator(team, user)
    member.delete()
    record(
        "remove_member",
        f"user:{user.pk}",
        actor=actor,
        team_id=team.pk,
        detail={"user": str(user), "from": member.role},
    )
    return True


def _lock(team: Team) -> None:
    """Two administrators who demote each other at once must not both succeed."""
    Team.objects.select_for_update().get(pk=team.pk)


def _keep_an_administrator(team: Team, leaving: Any) -> None:
    if not Membership.objects.filter(team=team, role=Role.ADMIN, user__is_active=True).exclude(user=leaving).exists():
        raise LastAdministrator(f"{team} needs at least one administrator. Make somebody else one first.")
