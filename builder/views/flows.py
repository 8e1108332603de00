"""The list of flows, and making, importing, exporting, copying, pausing and deleting them."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.text import slugify
from django.views.decorators.http import require_POST, require_safe
from django.views.generic import RedirectView

from runtime.jsonvalues import BadJson, loads_strict, storable_text
from runtime.models import Role, Team, Version, Workflow

from .. import drafts
from ..access import can, get_workflow, teams_for
from ..callers import callers_of
from ..editing import EditError
from ..examples import ON_THE_LIST, example, examples
from ..flowlist import Page, page_of
from ..flowmaking import delete_flow, duplicate_flow, make_flow, pause_flow
from ..numbers import number_of

FILTERS = (("", "All"), ("live", "Live"), ("paused", "Paused"), ("draft", "Draft"))


@require_safe
def flows(request: HttpRequest) -> HttpResponse:
    """The page, or only the table for a filter that was typed."""
    state = request.GET.get("state", "")
    state = state if state in dict(FILTERS) else ""
    search = request.GET.get("q", "").strip()[:200].replace("\x00", "")
    folder = request.GET.get("folder", "")[:80]
    found = page_of(request.user, state=state, search=search, folder=folder, before=request.GET.get("before", "")[:80])
    context = {
        "page": found,
        "filters": _filters(found),
        "older": _address(found, before=found.older) if found.older else "",
        "first": _address(found) if request.GET.get("before") else "",
        "folders": _folders(found),
        "examples": examples(),
        "first_examples": examples()[:ON_THE_LIST],
        "teams": teams_for(request.user, Role.BUILDER),
        "section": "flows",
    }
    template = "flows/table.html" if request.htmx and not request.htmx.boosted else "flows/list.html"
    return render(request, template, context)


@require_safe
def examples_page(request: HttpRequest) -> HttpResponse:
    """All examples, with what each does."""
    mine = teams_for(request.user, Role.BUILDER)
    return render(request, "flows/examples.html", {"examples": examples(), "teams": mine, "section": "flows"})


@require_POST
def flow_new(request: HttpRequest) -> HttpResponse:
    """Blank, or from an example by its name."""
    team, chosen = _team(request), request.POST.get("example", "")
    definition = example(chosen) if chosen else None
    if chosen and definition is None:
        raise Http404("There is no such example.")
    name = storable_text(request.POST.get("name", "")).strip() or (definition["name"] if definition else "New flow")
    try:
        return _to(make_flow(team, name, user=request.user, definition=definition))
    except EditError as wrong:
        messages.error(request, f"Nothing was made. {wrong}")
        return redirect("flows")


@require_POST
def flow_import(request: HttpRequest) -> HttpResponse:
    """A file that was exported, or written by hand. What is wrong with its meaning, the builder shows."""
    team, file = _team(request), request.FILES.get("file")
    try:
        if file is None:
            raise EditError("Choose a file.")
        definition = loads_strict(file.read(), root="file")
        if not isinstance(definition, dict):
            raise EditError("The file holds no flow.")
        if "nodes" in definition and "steps" not in definition:
            raise EditError("This is a flow of another product, whose steps are others. “Steps and triggers” tells what takes their place here.")
        workflow = make_flow(
            team, str(definition.get("name") or "Imported flow"), user=request.user, definition=definition
        )
    except (BadJson, EditError) as wrong:
        messages.error(request, f"Nothing was imported. {wrong}")
        return redirect("flows")
    return _to(workflow)


@require_safe
def flow_export(request: HttpRequest, pk: int) -> HttpResponse:
    """The draft as a file, or a version by `?version=`. Connections stay names; secrets are never in a definition."""
    workflow = get_workflow(request.user, pk)
    definition, number = drafts.load(workflow).definition, number_of(request.GET.get("version", ""))
    if request.GET.get("version"):
        version = Version.objects.filter(workflow=workflow, number=number).first() if number else None
        if version is None:
            raise Http404("There is no such version.")
        definition = version.definition
    text = json.dumps(definition, indent=2, ensure_ascii=False) + "\n"
    ending = f"-v{number}" if number else ""
    response = HttpResponse(text, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{slugify(workflow.name) or "flow"}{ending}.json"'
    return response


@require_POST
def flow_duplicate(request: HttpRequest, pk: int) -> HttpResponse:
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    try:
        return _to(duplicate_flow(workflow, user=request.user))
    except EditError as wrong:
        messages.error(request, f"Nothing was made. {wrong}")
        return redirect("flow", pk=pk)


@require_POST
def flow_callers(request: HttpRequest, pk: int) -> HttpResponse:
    """What uses it, for the question before it is deleted or taken offline. Changes nothing."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    return render(request, "canvas/callers_told.html", {"callers": callers_of(workflow)})


@require_POST
def flow_delete(request: HttpRequest, pk: int) -> HttpResponse:
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    if delete_flow(workflow, user=request.user):
        messages.success(request, f"Deleted {workflow.name}")
    return redirect("flows")


@require_POST
def flow_pause(request: HttpRequest, pk: int) -> HttpResponse:
    """`to` is paused, or else it takes new runs again: the same form sent twice does the same."""
    workflow = get_workflow(request.user, pk, Role.BUILDER)
    paused = request.POST.get("to") == "paused"
    pause_flow(workflow, paused, user=request.user, why=storable_text(request.POST.get("why", "")).strip())
    messages.success(request, f"{workflow.name} takes {'no ' if paused else ''}new runs{'' if paused else ' again'}")
    return redirect("flow", pk=pk)


def _team(request: HttpRequest) -> Team:
    """The team that was chosen, else the first in which the person may build."""
    mine, chosen = teams_for(request.user, Role.BUILDER), request.POST.get("team", "")
    number = number_of(chosen)
    team = mine.filter(pk=number).first() if number is not None else mine.first()
    if team is None or not can(request.user, Role.BUILDER, team):
        raise Http404("There is no team in which you may make flows.")
    return team


def _to(workflow: Workflow) -> HttpResponseRedirect:
    return redirect("flow", pk=workflow.pk)


def _filters(found: Page) -> list[dict[str, Any]]:
    return [
        {"label": label, "url": _address(found, state=state), "on": state == found.chosen, "count": found.counts[state]}
        for state, label in FILTERS
    ]


def _folders(found: Page) -> list[dict[str, Any]]:
    if not found.folders:
        return []
    every = {"label": "All folders", "url": _address(found, folder=""), "on": not found.folder}
    return [every] + [
        {"label": name, "url": _address(found, folder=name), "on": name == found.folder, "count": count}
        for name, count in found.folders.items()
    ]


def _address(found: Page, **changed: str) -> str:
    query = QueryDict(mutable=True)
    for name, value in ({"state": found.chosen, "q": found.search, "folder": found.folder} | changed).items():
        if value:
            query[name] = value
    return f"{reverse('flows')}?{query.urlencode()}"


urlpatterns = [
    path("", flows, name="flows"),
    path("flows/", RedirectView.as_view(pattern_name="flows"), name="flows_folder"),
    path("flows/examples/", examples_page, name="examples"),
    path("flows/new/", flow_new, name="flow_new"),
    path("flows/import/", flow_import, name="flow_import"),
    path("flows/<int:pk>/export/", flow_export, name="flow_export"),
    path("flows/<int:pk>/duplicate/", flow_duplicate, name="flow_duplicate"),
    path("flows/<int:pk>/callers/", flow_callers, name="flow_callers"),
    path("flows/<int:pk>/delete/", flow_delete, name="flow_delete"),
    path("flows/<int:pk>/pause/", flow_pause, name="flow_pause"),
]
