"""Teams and their members: who may do what, set by the administrators of each team."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from builder.access import ADMIN, can, get_team, teams_for
from builder.teams import LastAdministrator, create_team, let_ask, remove_member, rename_team, set_role
from runtime.models import Membership, Role, Team

ABOUT_ROLES = [
    (Role.VIEWER, "Sees flows and runs"),
    (Role.BUILDER, "Also builds and publishes flows"),
    (Role.OPERATOR, "Also starts, cancels and requeues runs, and decides in place of approvers"),
    (Role.ADMIN, "Also manages connections and members"),
]


class TeamForm(forms.Form):
    name = forms.CharField(label="Name", max_length=100)


class MemberForm(forms.Form):
    username = forms.CharField(label="User name", max_length=150)
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.VIEWER)

    def clean_username(self) -> Any:
        user = get_user_model().objects.filter(username=self.cleaned_data["username"], is_active=True).first()
        if user is None:
            raise forms.ValidationError("There is no such user. A superuser makes accounts in the administration.")
        return user


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)


@require_GET
def settings(request: HttpRequest) -> HttpResponse:
    """The first of one's teams."""
    first = teams_for(request.user).first()
    return redirect("team", first.pk) if first else render(request, "settings/no_team.html", {"form": TeamForm()})


@require_GET
def team(request: HttpRequest, team_id: int) -> HttpResponse:
    return _page(request, get_team(request.user, team_id, request.role))


@require_POST
def team_create(request: HttpRequest) -> HttpResponse:
    form = TeamForm(request.POST)
    if form.is_valid() and (made := _named(form, lambda name: create_team(name, actor=request.user))):
        messages.success(request, f"Made the team {made}.")
        return redirect("team", made.pk)
    messages.error(request, " ".join(form.errors.get("name", [])))
    return redirect("settings")


@require_POST
def team_rename(request: HttpRequest, team_id: int) -> HttpResponse:
    found = get_team(request.user, team_id, request.role)
    form = TeamForm(request.POST)
    if form.is_valid():
        _named(form, lambda name: rename_team(found, name, actor=request.user))
    if form.errors:
        messages.error(request, " ".join(form.errors.get("name", [])))
    return redirect("team", team_id)


@require_POST
def team_asked(request: HttpRequest, team_id: int) -> HttpResponse:
    """`others`: flows of other teams may name this one in their approvals."""
    found, others = get_team(request.user, team_id, request.role), bool(request.POST.get("others"))
    let_ask(found, others, actor=request.user)
    messages.success(request, f"{'Flows of other teams' if others else 'Only its own flows'} may ask {found}.")
    return redirect("team", team_id)


@require_POST
def member_add(request: HttpRequest, team_id: int) -> HttpResponse:
    found = get_team(request.user, team_id, request.role)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _page(request, found, form, status=422)
    return _change(
        request,
        found,
        lambda: set_role(found, form.cleaned_data["username"], Role(form.cleaned_data["role"]), actor=request.user),
    )


@require_POST
def member_role(request: HttpRequest, team_id: int, user_id: int) -> HttpResponse:
    found = get_team(request.user, team_id, request.role)
    member = get_object_or_404(Membership.objects.select_related("user"), team=found, user_id=user_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _page(request, found, status=422)
    return _change(
        request, found, lambda: set_role(found, member.user, Role(form.cleaned_data["role"]), actor=request.user)
    )


@require_POST
def member_remove(request: HttpRequest, team_id: int, user_id: int) -> HttpResponse:
    found = get_team(request.user, team_id, request.role)
    member = get_object_or_404(Membership.objects.select_related("user"), team=found, user_id=user_id)
    return _change(request, found, lambda: remove_member(found, member.user, actor=request.user))


def _named(form: TeamForm, act: Callable[[str], Any]) -> Any:
    """Names are unique, which only the database can promise."""
    try:
        with transaction.atomic():
            return act(form.cleaned_data["name"])
    except IntegrityError:
        form.add_error("name", f"There is a team “{form.cleaned_data['name']}” already.")


def _change(request: HttpRequest, team: Team, act: Callable[[], bool]) -> HttpResponse:
    try:
        act()
    except LastAdministrator as refused:
        messages.error(request, str(refused))
    return redirect("team", team.pk) if can(request.user, Role.VIEWER, team) else redirect("settings")


def _page(request: HttpRequest, team: Team, form: MemberForm | None = None, *, status: int = 200) -> HttpResponse:
    members = Membership.objects.filter(team=team).select_related("user").order_by("user__username")
    context = {
        "team": team,
        "teams": teams_for(request.user),
        "members": members,
        "roles": Role.choices,
        "about_roles": ABOUT_ROLES,
        "manages": can(request.user, ADMIN, team),
        "form": form or MemberForm(),
    }
    return render(request, "settings/team.html", context, status=status)


urlpatterns = [
    path("settings/", settings, name="settings"),
    path("settings/teams/", team_create, name="team_create"),
    path("settings/teams/<int:team_id>/", team, name="team"),
    path("settings/teams/<int:team_id>/name/", team_rename, name="team_rename"),
    path("settings/teams/<int:team_id>/asked/", team_asked, name="team_asked"),
    path("settings/teams/<int:team_id>/members/", member_add, name="member_add"),
    path("settings/teams/<int:team_id>/members/<int:user_id>/role/", member_role, name="member_role"),
    path("settings/teams/<int:team_id>/members/<int:user_id>/remove/", member_remove, name="member_remove"),
]
