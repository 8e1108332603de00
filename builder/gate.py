"""Who may open what: one table for every view and every API operation, and the middleware that asks it.

A view that is not in the table answers nobody. Which rows somebody then reaches, the look-ups of `builder.access` say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.urls import ResolverMatch, reverse
from django_htmx.http import HttpResponseClientRedirect

from builder.access import ADMIN, BUILDER, OPERATOR, RANK, VIEWER, refusal, roles_of
from builder.proof import asked_to_prove
from builder.signin import asked_to_set_up
from runtime.models import Role

log = logging.getLogger(__name__)

PUBLIC = "public"
SIGNED_IN = "signed in"
SUPERUSER = "superuser"

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
    "run_continue": OPERATOR,
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
    "flow_callers": BUILDER,
    "flow_folder": BUILDER,
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
    "api:rerun_run": OPERATOR,
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
            log.error("The view %r is not in the table of builder/gate.py, so nobody may open it.", name or view)
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
            raise PermissionDenied(why_not(rule))
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


def why_not(rule: str) -> str:
    """For the person who was not admitted."""
    if rule == SUPERUSER:
        return "Only the administrators of this installation may do this."
    return "Sign in first." if rule == SIGNED_IN else refusal(rule)


def _is_api_operation(match: ResolverMatch) -> bool:
    return match.namespaces[:1] == ["api"] and match.url_name != "api-root"


def _ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """The sign-in page, and back here afterwards; a fragment makes the whole page go there."""
    back = request.get_full_path() if request.method in ("GET", "HEAD") else reverse("flows")
    if getattr(request, "htmx", None):
        current = request.htmx.current_url_abs_path or reverse("flows")
        return HttpResponseClientRedirect(redirect_to_login(current, resolve_url(settings.LOGIN_URL)).url)
    return redirect_to_login(back, resolve_url(settings.LOGIN_URL))
