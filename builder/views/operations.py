"""The operations page: workers, where everything is, what is stuck, what is failing, what costs money."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from builder import operations, waitboard
from builder.live import digest
from builder.numbers import number_of
from builder.views.runs.acts import LONGER
from runtime import acts, jobs, pausing
from runtime.jsonvalues import storable_text

AT_ONCE = 100


@require_safe
def operations_page(request: HttpRequest) -> HttpResponse:
    """With `HX-Request` only what changes; 204 while it would look the same, relative times aside."""
    html = render_to_string("operations/_panels.html", context(request), request)
    etag = f'"{digest(html)}"'
    if not request.headers.get("HX-Request"):
        return render(request, "operations/operations.html", {"panels": html, "etag": etag})
    if request.headers.get("If-None-Match") == etag:
        return HttpResponse(status=204)
    return HttpResponse(html, headers={"ETag": etag})


def context(request: HttpRequest) -> dict[str, Any]:
    user = request.user
    failures = operations.failing(user)
    return {
        "workers": operations.workers(),
        "states": operations.everywhere(user),
        "succeeded": operations.succeeded(user),
        "stuck": operations.stuck(user),
        "failures": failures[: operations.LISTED],
        "failed": sum(len(failure.runs) for failure in failures),
        "costs": operations.costs(user),
        "waiting": operations.waiting(user),
        "schedules": operations.schedules(user),
        "mail": operations.mail() if user.is_superuser else None,
    }


@require_POST
def requeue_failures(request: HttpRequest) -> HttpResponse:
    """Requeue the runs that failed alike. What failed since the page was drawn counts too; done twice, nothing more happens."""
    key = request.POST.get("key", "")
    group = next((failure for failure in operations.failing(request.user) if failure.key == key), None)
    runs = group.runs if group else []
    if len(runs) > AT_ONCE:
        key = f"{request.user.pk}:{secrets.token_hex(16)}"
        job = jobs.ask("requeue", sorted(runs), user=request.user, key=key, about=f"Failed alike: {group.message}")
        return redirect("job", job.pk)
    done = sum(acts.changes(acts.requeue, run, request.user) for run in runs)
    if done:
        messages.success(request, f"Requeued {done:,} run{'' if done == 1 else 's'}.")
    else:
        messages.warning(request, "These runs have been taken up already; nothing was changed.")
    return redirect("operations")


@require_POST
def pause_all(request: HttpRequest) -> HttpResponse:
    """Of all teams: no worker takes up a run any more, or with `resume` again."""
    if request.POST.get("resume"):
        done, words = pausing.resume(user=request.user), "Work goes on."
    else:
        done = pausing.pause(user=request.user, why=storable_text(request.POST.get("why", "")).strip())
        words = "All work is paused. What workers hold goes on to its next wait."
    if done:
        messages.success(request, words)
    else:
        messages.warning(request, "It was so already; nothing was changed.")
    return redirect("operations")


@require_safe
def waits_page(request: HttpRequest) -> HttpResponse:
    """Everything that waits, newest first, by kind and page."""
    kind = request.GET.get("kind", "")
    kind = kind if kind in waitboard.WORDS else ""
    rows, older = waitboard.page(request.user, kind, number_of(request.GET.get("before", "")))
    address = reverse("waits")
    kinds = [{"label": "All", "url": address, "on": not kind}]
    kinds += [{"label": word, "url": f"{address}?kind={name}", "on": kind == name} for name, word in waitboard.WORDS.items()]
    older_url = f"{address}?{urlencode({'kind': kind, 'before': older})}" if older else ""
    context = {"rows": rows, "kinds": kinds, "older_url": older_url, "section": "operations", "here": request.get_full_path(), "longer": LONGER}
    return render(request, "operations/waits.html", context)


urlpatterns = [
    path("operations/", operations_page, name="operations"),
    path("operations/waits/", waits_page, name="waits"),
    path("operations/pause/", pause_all, name="operations_pause"),
    path("operations/requeue/", requeue_failures, name="operations_requeue"),
]
