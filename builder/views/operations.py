"""The operations page: workers, where everything is, what is stuck, what is failing, what costs money."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from builder import operations
from builder.live import digest
from runtime import acts

MOST_AT_ONCE = 500


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
        "mail": operations.mail() if user.is_superuser else None,
    }


@require_POST
def requeue_failures(request: HttpRequest) -> HttpResponse:
    """Requeue the runs that failed alike. What failed since the page was drawn counts too; done twice, nothing more happens."""
    key = request.POST.get("key", "")
    group = next((failure for failure in operations.failing(request.user) if failure.key == key), None)
    runs = group.runs[:MOST_AT_ONCE] if group else []
    done = sum(acts.requeue(run, user=request.user) for run in runs)
    if done:
        more = f" {len(group.runs) - len(runs):,} are left: do it again." if len(group.runs) > len(runs) else ""
        messages.success(request, f"Requeued {done:,} run{'' if done == 1 else 's'}.{more}")
    else:
        messages.warning(request, "These runs have been taken up already; nothing was changed.")
    return redirect("operations")


urlpatterns = [
    path("operations/", operations_page, name="operations"),
    path("operations/requeue/", requeue_failures, name="operations_requeue"),
]
