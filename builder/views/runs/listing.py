"""The run list. Page and live fragment come from one template and one context."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from builder import access, runfilter, runlist
from builder.models import SavedFilter
from builder.runfilter import Filter
from builder.runlist import Page
from builder.templatetags.states import SHOWN
from builder.unpriced import unpriced_runs
from runtime.models import Job, Run
from runtime.states import UNFINISHED, JobState

OPEN_JOBS = (JobState.QUEUED, JobState.WORKING)


@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    """With `HX-Request` only the list; 204 while it is as the browser has it."""
    chosen = Filter.of(request.GET)
    page = runlist.page(request.user, chosen)
    counts = runlist.counts(request.user, chosen)
    etag = mark_of(page, counts)
    part = bool(request.headers.get("HX-Request"))
    if part and request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=204)
    context = list_context(request, chosen, page, counts) | {"etag": etag, "part": part}
    if not part:
        context["day"] = runlist.last_day(request.user)
        saved = SavedFilter.objects.filter(user=request.user)
        context["saved"] = [{"filter": one, "on": one.query == chosen.query()} for one in saved]
        context["jobs"] = Job.objects.filter(user=request.user, state__in=OPEN_JOBS).count()
    response = render(request, "runs/_list.html" if part else "runs/runs.html", context)
    response["ETag"], response["Vary"] = etag, "HX-Request"
    return response


def list_context(request: HttpRequest, chosen: Filter, page: Page, counts: dict[str, str]) -> dict[str, Any]:
    standings, unpriced = runlist.standings(page.runs), unpriced_runs([run.pk for run in page.runs])
    address = reverse("runs")
    return {
        "chosen": chosen,
        "rows": [row(run, standings[run.pk], run.pk in unpriced) for run in page.runs],
        "states": [
            {
                "label": SHOWN[state].word if state else "All",
                "url": f"{address}?{chosen.query(state=state)}",
                "on": chosen.state == state,
                "count": counts[state],
                "state": state,
            }
            for state in ("", *runfilter.STATES)
        ],
        "flows": runlist.flows(request.user),
        "newer_url": f"{address}?{chosen.query(after=page.newer)}" if page.newer is not None else "",
        "older_url": f"{address}?{chosen.query(before=page.older)}" if page.older is not None else "",
        "list_url": f"{address}?{chosen.query(before=chosen.before, after=chosen.after)}",
        "tests_url": f"{address}?{chosen.query(tests='' if chosen.tests else '1')}",
        "may_act": access.teams_for(request.user, access.OPERATOR).exists(),
        "count": counts[chosen.state],
        "clear_url": address,
        "narrowed": chosen.narrowed,
        "since": [(name, word) for name, (word, _) in runfilter.SINCE.items()],
        "query": chosen.query(),
        "once": secrets.token_hex(16),
    }


def row(run: Run, standing: runlist.Standing, unpriced: bool) -> dict[str, Any]:
    dispatch = getattr(run, "dispatch", None)
    queued = run.state == "open" and dispatch is not None and dispatch.state == "ready"
    end = run.ended_at or timezone.now()
    return {
        "run": run,
        "state": "queued" if queued else run.state,
        "dispatch": dispatch.state if dispatch is not None else "",
        "word": "Queued" if queued else "",
        "standing": standing,
        "unpriced": unpriced,
        "took": max(0, int((end - run.created_at).total_seconds())) if run.state in UNFINISHED else end - run.created_at,
    }


def mark_of(page: Page, counts: dict[str, str]) -> str:
    """Changes when the list would look different; the clock alone does not change it."""
    told = [
        (run.pk, run.state, run.title, str(run.cost),
         dispatch and (dispatch.state, dispatch.due_at, dispatch.claims, dispatch.queued))
        for run in page.runs
        for dispatch in [getattr(run, "dispatch", None)]
    ]
    return f'"{hashlib.sha256(repr((told, counts)).encode()).hexdigest()[:24]}"'
