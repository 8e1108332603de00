"""Connections: secrets of other systems. Builders see which there are; administrators of the team make and change them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from builder import access, connections
from builder.connectiontest import try_connection
from runtime.audit import record
from runtime.credentials import KINDS, CannotOpen, bound_hosts
from runtime.limits import admitted
from runtime.models import Credential

MOST_SHOWN = 500
TESTS_PER_MINUTE = 10


@require_safe
def connection_list(request: HttpRequest) -> HttpResponse:
    rows = access.credentials_for(request.user, access.BUILDER).select_related("team").defer("secret")
    rows = rows.order_by("team__name", "name")
    context = {
        "rows": [
            {"row": row, "kind": KINDS.get(row.kind), "hosts": bound_hosts(row.hosts, row.config)} for row in rows[:MOST_SHOWN]
        ],
        "several_teams": access.teams_for(request.user, access.BUILDER).count() > 1,
        "may_make": access.teams_for(request.user, access.ADMIN).exists(),
        "kinds": KINDS.values(),
    }
    return render(request, "connections/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def connection_create(request: HttpRequest) -> HttpResponse:
    """`?kind=` chooses the form; without one the kinds are shown to choose from."""
    teams = list(access.teams_for(request.user, access.ADMIN))
    kind = KINDS.get(request.GET.get("kind", ""))
    if kind is None:
        return render(request, "connections/kinds.html", {"kinds": KINDS.values()})
    form = connections.empty_form(kind)
    team = next((team for team in teams if str(team.pk) == request.POST.get("team")), teams[0] if len(teams) == 1 else None)
    if request.method == "POST":
        form = connections.read_form(kind, request.POST)
        if team is None:
            form.wrong["team"] = "Choose the team whose flows may use it."
        if not form.wrong and (made := connections.create(team, form, actor=request.user)):
            messages.success(request, f"Connection {made.name} is ready to use.")
            return redirect("connections")
    context = {"form": form, "fields": fields(form, None), "teams": teams, "team": team, "action": request.get_full_path()}
    return render(request, "connections/form.html", context, status=422 if form.wrong else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def connection(request: HttpRequest, credential_id: int) -> HttpResponse:
    """One connection: what may be seen of it, where it is used, and for administrators its form."""
    changing = request.method == "POST"
    row = access.get_credential(request.user, credential_id, access.ADMIN if changing else access.BUILDER)
    if row.kind not in KINDS:
        raise Http404("Connections of this kind are unknown to this version.")
    form = connections.form_of(row)
    if changing:
        form = connections.read_form(KINDS[row.kind], request.POST, row)
        if not form.wrong and saved(request, row, form):
            return redirect("connection", row.pk)
    context = {
        "row": row,
        "form": form,
        "fields": fields(form, row),
        "uses": connections.uses(row),
        "hosts": bound_hosts(row.hosts, row.config),
        "may_change": access.can(request.user, access.ADMIN, row.team_id),
        "action": reverse("connection", args=[row.pk]),
    }
    return render(request, "connections/form.html", context, status=422 if form.wrong else 200)


def saved(request: HttpRequest, row: Credential, form: connections.Form) -> bool:
    try:
        connections.change(row, form, actor=request.user)
    except CannotOpen:
        for each in form.kind.fields:
            if each.secret:
                form.wrong[each.name] = "The stored secret cannot be read with the present keys. Enter it again."
        return False
    messages.success(request, f"Connection {row.name} is saved. Steps use it from their next call on.")
    return True


@require_POST
def connection_test(request: HttpRequest, credential_id: int) -> HttpResponse:
    """Use it once, and tell what came of it."""
    row = access.get_credential(request.user, credential_id, request.role)
    if row.kind not in KINDS or not connections.form_of(row).sent:
        raise Http404("Connections of this kind are sent nowhere.")
    if admitted(f"connection test:{row.pk}", TESTS_PER_MINUTE):
        messages.warning(request, "It was tested often just now. Wait a minute.")
        return redirect("connection", row.pk)
    well, words = try_connection(row)
    record("test_connection", f"credential:{row.pk}", actor=request.user, team_id=row.team_id, detail={"name": row.name, "told": words})
    messages.add_message(request, {True: messages.SUCCESS, False: messages.ERROR}.get(well, messages.WARNING), words)
    return redirect("connection", row.pk)


@require_POST
def connection_delete(request: HttpRequest, credential_id: int) -> HttpResponse:
    row = access.get_credential(request.user, credential_id, access.ADMIN)
    try:
        connections.delete(row, actor=request.user)
    except connections.InUse:
        messages.error(request, f"{row.name} is used by flows. Take it out of them first; nothing was changed.")
        return redirect("connection", row.pk)
    messages.success(request, f"Connection {row.name} is deleted.")
    return redirect("connections")


def fields(form: connections.Form, row: Credential | None) -> list[dict[str, Any]]:
    """The kind's fields as the page draws them. A secret's value is never sent to the browser."""
    return [
        {
            "field": each,
            "value": "" if each.secret else form.values.get(each.name, ""),
            "wrong": form.wrong.get(each.name, ""),
            "kept": each.secret and row is not None,
        }
        for each in form.kind.fields
    ]


urlpatterns = [
    path("connections/", connection_list, name="connections"),
    path("connections/new/", connection_create, name="connection_create"),
    path("connections/<int:credential_id>/", connection, name="connection"),
    path("connections/<int:credential_id>/test/", connection_test, name="connection_test"),
    path("connections/<int:credential_id>/delete/", connection_delete, name="connection_delete"),
]
