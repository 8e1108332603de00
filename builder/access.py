"""Which rows somebody reaches: their role in each team, and the look-ups that views use.

Views reach rows only through these, which know the person's teams: a row of another team does not exist (404), a role that is
too low may not (403). Which views there are for whom, the table of `builder.gate` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.http import Http404

from runtime.models import Credential, Membership, Role, Run, Team, Workflow

M = TypeVar("M", bound=Model)

VIEWER, BUILDER, OPERATOR, ADMIN = Role.VIEWER, Role.BUILDER, Role.OPERATOR, Role.ADMIN
RANK = {role: rank for rank, role in enumerate(Role)}


def refusal(role: Role | str, team: Team | None = None) -> str:
    """Why not, for the person whose role is too low."""
    where = f"the team {team}" if team else "a team"
    return f"This needs the role {Role(role).label.lower()} in {where}. Ask its administrator."


def roles_of(user: Any) -> dict[int, Role]:
    """Team id -> the person's role there. Superusers are administrators everywhere, which this does not list."""
    if not user.is_authenticated:
        return {}
    return {
        team: Role(role) for team, role in Membership.objects.filter(user_id=user.pk).values_list("team_id", "role")
    }


def role_in(user: Any, team: Team | int) -> Role | None:
    """The person's role in a team, or None."""
    if not (user.is_authenticated and user.is_active):
        return None
    if user.is_superuser:
        return Role.ADMIN
    found = Membership.objects.filter(user_id=user.pk, team=team).values_list("role", flat=True).first()
    return Role(found) if found else None


def can(user: Any, role: Role | str, team: Team | int) -> bool:
    """Whether the person has at least this role in the team."""
    own = role_in(user, team)
    return own is not None and RANK[own] >= RANK[Role(role)]


def teams_for(user: Any, role: Role | str = VIEWER) -> QuerySet[Team]:
    """The teams in which the person has at least this role, by name."""
    if not (user.is_authenticated and user.is_active):
        return Team.objects.none()
    if user.is_superuser:
        return Team.objects.order_by("name")
    enough = [each for each in Role if RANK[each] >= RANK[Role(role)]]
    mine = Membership.objects.filter(user_id=user.pk, role__in=enough)
    return Team.objects.filter(pk__in=mine.values("team_id")).order_by("name")


def workflows_for(user: Any, role: Role | str = VIEWER) -> QuerySet[Workflow]:
    """Workflows that are not deleted, of the teams in which the person has at least this role."""
    return Workflow.objects.filter(deleted_at=None, **_within(user, role))


def runs_for(user: Any, role: Role | str = VIEWER) -> QuerySet[Run]:
    """Runs of those teams, also of workflows deleted since. The workflows are named by their numbers: Postgres knows how
    many runs each has, and finds the few of a small team without walking past all others."""
    if _sees_all(user):
        return Run.objects.all()
    return Run.objects.filter(workflow_id__in=flows_of(user, role))


def of_runs_for(user: Any, rows: QuerySet[M], role: Role | str = VIEWER) -> QuerySet[M]:
    """Of these rows, which name a run by `run_id`, those of the runs above. The run of each row is looked up, which no plan turns
    into a walk through all runs: for rows that are taken in order and up to a bound."""
    if _sees_all(user):
        return rows
    flow = Subquery(Run.objects.filter(pk=OuterRef("run_id")).values("workflow_id"))
    return rows.alias(flow_of_run=flow).filter(flow_of_run__in=flows_of(user, role))


def flows_of(user: Any, role: Role | str) -> list[int]:
    """The numbers of the workflows of those teams, deleted ones too; of all teams for a superuser."""
    return list(Workflow.objects.filter(**_within(user, role)).values_list("pk", flat=True))


def credentials_for(user: Any, role: Role | str = VIEWER) -> QuerySet[Credential]:
    return Credential.objects.filter(**_within(user, role))


def get_workflow(user: Any, pk: int, role: Role | str = VIEWER) -> Workflow:
    """The workflow, with its team and live version. Http404 in a foreign team, PermissionDenied below the role."""
    return _get(user, role, workflows_for(user).select_related("team", "live_version"), pk, lambda found: found.team)


def get_run(user: Any, pk: int, role: Role | str = VIEWER) -> Run:
    """The run, with its workflow, team and version; refusals as in `get_workflow`."""
    return _get(
        user, role, runs_for(user).select_related("workflow__team", "version"), pk, lambda found: found.workflow.team
    )


def get_credential(user: Any, pk: int, role: Role | str = VIEWER) -> Credential:
    """The credential, with its team; refusals as in `get_workflow`."""
    return _get(user, role, credentials_for(user).select_related("team"), pk, lambda found: found.team)


def get_team(user: Any, pk: int, role: Role | str = VIEWER) -> Team:
    return _get(user, role, teams_for(user), pk, lambda found: found)


def _get(user: Any, role: Role | str, rows: QuerySet[M], pk: int, team_of: Callable[[M], Team]) -> M:
    found = rows.filter(pk=pk).first()
    if found is None:
        raise Http404(f"There is no {rows.model._meta.verbose_name} {pk} that you may see.")
    if not can(user, role, team_of(found)):
        raise PermissionDenied(refusal(role, team_of(found)))
    return found


def _within(user: Any, role: Role | str) -> dict[str, Any]:
    """A filter on the team; none at all for a superuser, whom it would only slow down."""
    return {} if _sees_all(user) else {"team__in": teams_for(user, role).order_by()}


def _sees_all(user: Any) -> bool:
    return user.is_authenticated and user.is_active and user.is_superuser
