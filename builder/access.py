"""Who may do what: one table for every view and every API operation, and the scoped look-ups that views use.

Deny by default, twice. A view that is not in the table answers nobody. And views reach rows only through the look-ups
below, which know the person's teams: a row of another team does not exist (404), a role that is too low may not (403).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.urls import ResolverMatch, reverse
from django_htmx.http import HttpResponseClientRedirect

from builder.proof import asked_to_prove
from builder.signin import asked_to_set_up
from runtime.models import Credential, Membership, Role, Run, Team, Workflow

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Model)

PUBLIC = "public"
SIGNED_IN = "signed in"
SUPERUSER = "superuser"
VIEWER, BUILDER, OPERATOR, ADMIN = Role.VIEWER, Role.BUILDER, Role.OPERATOR, Role.ADMIN

Rule = str | tuple[str, str]
"""One demand for every method, or (to read: GET and HEAD, to change: every other method)."""

# URL name -> Rule. A role means: at least this role in some team; the look-up then asks for it in the row's own team.
# To add a view: give its path a name, add the name to its area here, and fetch its rows with
# `get_workflow(request.user, id, request.role)` and the like: `request.role` is what stands here. `namespace:*` covers
# a whole namespace. Names that begin with `api:` are API operations, by operation id. tests/builder/test_access.py
# fails for an address without a name here, and tries each as nobody and as every role.
VIEWS: dict[str, Rule] = {
    # In and out
    "login": PUBLIC,
    "account_login": PUBLIC,
    "admin_login": PUBLIC,
    "mfa_authenticate": PUBLIC,
    "openid_start": PUBLIC,
    "openid_back": PUBLIC,
    "logout": SIGNED_IN,
    "account_logout": SIGNED_IN,
    "password_change": SIGNED_IN,
    "admin_password": SIGNED_IN,
    "password_change_done": SIGNED_IN,
    # For machines: each checks a token, a signature or a bearer of its own
    "hook": PUBLIC,
    "hook_no_slash": PUBLIC,
    "hook_test": PUBLIC,
    "form_page": PUBLIC,
    "callback": PUBLIC,
    "callback_no_slash": PUBLIC,
    "healthz": PUBLIC,
    "metrics": PUBLIC,
    "readyz": PUBLIC,
    # One's own account
    "account": SIGNED_IN,
    "account_proof": SIGNED_IN,
    "account_reauthenticate": SIGNED_IN,
    "mfa_reauthenticate": SIGNED_IN,
    "mfa_index": SIGNED_IN,
    "mfa_activate_totp": SIGNED_IN,
    "mfa_deactivate_totp": SIGNED_IN,
    "mfa_view_recovery_codes": SIGNED_IN,
    "mfa_generate_recovery_codes": SIGNED_IN,
    "mfa_download_recovery_codes": SIGNED_IN,
    "usersessions_list": SIGNED_IN,
    "account_tokens": SIGNED_IN,
    "account_token_revoke": SIGNED_IN,
    # Teams and members
    "settings": VIEWER,
    "team": VIEWER,
    "team_create": SUPERUSER,
    "team_rename": ADMIN,
    "team_asked": ADMIN,
    "member_add": ADMIN,
    "member_role": ADMIN,
    "member_remove": ADMIN,
    "audit": ADMIN,
    "audit_export": ADMIN,
    # Runs
    "runs": VIEWER,
    "run": VIEWER,
    "run_live": VIEWER,
    "run_output": VIEWER,
    "run_output_file": VIEWER,
    "run_file": VIEWER,
    "runs_act": OPERATOR,
    "runs_told": OPERATOR,
    "jobs": OPERATOR,
    "job": OPERATOR,
    "job_stop": OPERATOR,
    "job_file": OPERATOR,
    "filter_save": VIEWER,
    "filter_delete": VIEWER,
    "run_cancel": OPERATOR,
    "run_requeue": OPERATOR,
    "run_rerun": OPERATOR,
    "run_retry": OPERATOR,
    "run_skip": OPERATOR,
    "run_step": BUILDER,
    "run_fail": OPERATOR,
    "run_wait": OPERATOR,
    "run_answer": OPERATOR,
    # Approvals: by link, where the token is the permission, and signed in, for those who are asked and for operators
    "approve": PUBLIC,
    "approvals": SIGNED_IN,
    "approval": SIGNED_IN,
    "approvals_decide": SIGNED_IN,
    "approval_reassign": SIGNED_IN,
    "approval_remind": OPERATOR,
    "approval_withdraw": OPERATOR,
    # Operations
    "operations": OPERATOR,
    "operations_requeue": OPERATOR,
    "operations_pause": SUPERUSER,
    "waits": OPERATOR,
    "alerts": OPERATOR,
    "alert_delete": OPERATOR,
    "sent_mail": OPERATOR,
    "mail": OPERATOR,
    "mail_body": OPERATOR,
    "mail_resend": OPERATOR,
    # Connections
    "connections": BUILDER,
    "connection": (BUILDER, ADMIN),
    "connection_create": ADMIN,
    "connection_test": ADMIN,
    "connection_delete": ADMIN,
    # Flows and their builder
    "flows": VIEWER,
    "flows_folder": VIEWER,
    "flow": VIEWER,
    "flow_panel": VIEWER,
    "flow_field": VIEWER,
    "flow_try": BUILDER,
    "functions": SIGNED_IN,
    "flow_copy": VIEWER,
    "flow_status": VIEWER,
    "flow_since": VIEWER,
    "flow_fold": VIEWER,
    "flow_find": VIEWER,
    "flow_export": VIEWER,
    "flow_changes": VIEWER,
    "flow_versions": VIEWER,
    "flow_version": VIEWER,
    "flow_compare": VIEWER,
    "flow_replay": BUILDER,
    "examples": VIEWER,
    "flow_new": BUILDER,
    "flow_import": BUILDER,
    "flow_duplicate": BUILDER,
    "flow_delete": BUILDER,
    "flow_pause": BUILDER,
    "flow_retention": ADMIN,
    "flow_failures": OPERATOR,
    "flow_picker": BUILDER,
    "flow_renaming": BUILDER,
    "flow_edit": BUILDER,
    "flow_undo": BUILDER,
    "flow_redo": BUILDER,
    "flow_publish": BUILDER,
    "flow_version_restore": BUILDER,
    "flow_version_live": BUILDER,
    "flow_offline": BUILDER,
    "flow_samples": BUILDER,
    "flow_pin": BUILDER,
    "flow_listen": BUILDER,
    "flow_test_step": BUILDER,
    "flow_test_result": BUILDER,
    "flow_test_run": BUILDER,
    "flow_test_watch": BUILDER,
    "flow_run_now": OPERATOR,
    # API pages
    "api_docs": SIGNED_IN,
    "api_openapi": PUBLIC,
    "api_missing": PUBLIC,
    "api:api-root": PUBLIC,
    # API operations
    "api:whoami": SIGNED_IN,
    "api:list_workflows": VIEWER,
    "api:create_workflow": BUILDER,
    "api:import_workflow": BUILDER,
    "api:get_workflow": VIEWER,
    "api:export_workflow": VIEWER,
    "api:get_draft": VIEWER,
    "api:put_draft": BUILDER,
    "api:publish_workflow": BUILDER,
    "api:start_run": OPERATOR,
    "api:list_runs": VIEWER,
    "api:get_run": VIEWER,
    "api:list_steps": VIEWER,
    "api:read_output": VIEWER,
    "api:read_file": VIEWER,
    "api:cancel_run": OPERATOR,
    "api:requeue_run": OPERATOR,
    "api:list_approvals": SIGNED_IN,
    "api:decide_approval": SIGNED_IN,
    "api:send_signal": OPERATOR,
    # Going anywhere
    "search": SIGNED_IN,
    # Help: what each step type and trigger does
    "palette": SIGNED_IN,
    # The design system on one page
    "gallery": SUPERUSER,
    # Django's admin knows no teams
    "admin:login": PUBLIC,
    "admin:password_change": SIGNED_IN,  # leads to ours
    "admin:*": SUPERUSER,
}

# Names of views that ask who it is once more (builder/proof.py), before they change anything, and before they show anything. What
# would outlive the session, such as a token or a role, is not for whoever finds a browser that is signed in.
PROVEN_TO_CHANGE = {
    "account_tokens", "usersessions_list", "member_add", "member_role", "member_remove", "connection_create", "connection",
    "admin:auth_user_add", "admin:auth_user_change", "admin:auth_user_password_change", "admin:builder_identity_add",
}  # fmt: skip
PROVEN_TO_LOOK = {"account_proof", "mfa_view_recovery_codes", "mfa_download_recovery_codes"}

RANK = {role: rank for rank, role in enumerate(Role)}


class DenyByDefault:
    """Middleware: lets a request through to its view only as the table says."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """What a view answers is for whoever asked, and no cache keeps it unless the view says so."""
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is not None and _is_api_operation(match):
            return None  # asks the table itself, once the bearer is known
        name = match.view_name if match else ""
        rule = rule_for(name, request.method or "GET")
        if rule is None:
            log.error("The view %r is not in the table of builder/access.py, so nobody may open it.", name or view)
            raise PermissionDenied("This page is not in the table of who may open what.")
        request.role = role_of(rule)
        if rule == PUBLIC:
            return None
        if admitted(request.user, rule):
            answer = asked_to_set_up(request, name) if settings.HOLDFAST_REQUIRE_SECOND_FACTOR else None
            if answer is None and needs_proof(name, request.method or "GET"):
                answer = asked_to_prove(request, reverse("account_proof"))
            return answer
        if request.user.is_authenticated:
            raise PermissionDenied(refusal(rule))
        return _ask_to_sign_in(request)


def rule_for(name: str, method: str = "GET") -> str | None:
    """What the table demands of this view for this method; None when it is not in the table."""
    rule = VIEWS.get(name)
    if rule is None and ":" in name:
        rule = VIEWS.get(name.split(":")[0] + ":*")
    if isinstance(rule, tuple):
        return rule[0] if method in ("GET", "HEAD", "OPTIONS") else rule[1]
    return rule


def needs_proof(name: str, method: str) -> bool:
    return name in PROVEN_TO_LOOK or name in PROVEN_TO_CHANGE and method not in ("GET", "HEAD", "OPTIONS")


def role_of(rule: str) -> Role:
    """The role to ask for in the row's own team. It is `request.role` in views and API operations."""
    return Role(rule) if rule in RANK else Role.VIEWER


def admitted(user: Any, rule: str, roles: Mapping[int, Role] | None = None) -> bool:
    """Whether somebody may enter at all. Which rows they then see, the look-ups say. `roles` are those of `roles_of`, where they
    have been asked for already."""
    if rule == PUBLIC:
        return True
    if not (user.is_authenticated and user.is_active):
        return False
    if rule == SIGNED_IN or user.is_superuser:
        return True
    held = roles_of(user) if roles is None else roles
    return rule != SUPERUSER and any(RANK[role] >= RANK[Role(rule)] for role in held.values())


def refusal(rule: str, team: Team | None = None) -> str:
    """Why not, for the person."""
    if rule == SUPERUSER:
        return "Only the administrators of this installation may do this."
    if rule == SIGNED_IN:
        return "Sign in first."
    where = f"the team {team}" if team else "a team"
    return f"This needs the role {Role(rule).label.lower()} in {where}. Ask its administrator."


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
    return Workflow.objects.filter(deleted_at=None, **_within(user, role, "team"))


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
    return list(Workflow.objects.filter(**_within(user, role, "team")).values_list("pk", flat=True))


def credentials_for(user: Any, role: Role | str = VIEWER) -> QuerySet[Credential]:
    return Credential.objects.filter(**_within(user, role, "team"))


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


def _within(user: Any, role: Role | str, field: str) -> dict[str, Any]:
    """A filter on the team; none at all for a superuser, whom it would only slow down."""
    if _sees_all(user):
        return {}
    return {f"{field}__in": teams_for(user, role).order_by()}


def _sees_all(user: Any) -> bool:
    return user.is_authenticated and user.is_active and user.is_superuser


def _is_api_operation(match: ResolverMatch) -> bool:
    return match.namespaces[:1] == ["api"] and match.url_name != "api-root"


def _ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """The sign-in page, and back here afterwards; a fragment makes the whole page go there."""
    back = request.get_full_path() if request.method in ("GET", "HEAD") else reverse("flows")
    if getattr(request, "htmx", None):
        current = request.htmx.current_url_abs_path or reverse("flows")
        return HttpResponseClientRedirect(redirect_to_login(current, resolve_url(settings.LOGIN_URL)).url)
    return redirect_to_login(back, resolve_url(settings.LOGIN_URL))
