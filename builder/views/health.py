"""Health for load balancers, monitors and `up`: JSON, 200 when all is well and 503 when not. Open to everybody."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from builder import health, metrics
from builder.replies import error, missed


@csrf_exempt
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """Whether the whole product works: database, migrations, workers; with the oldest run that waits for a worker."""
    return _answer(
        request,
        {
            "migrations": health.migrations,
            "workers": health.workers,
            "due_runs": health.due_runs,
        },
    )


@csrf_exempt
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether this web process may be sent requests: database and migrations. Runs are accepted without workers too."""
    return _answer(request, {"migrations": health.migrations})


@csrf_exempt
@never_cache
def metrics_text(request: HttpRequest) -> HttpResponse:
    """For Prometheus, which shows the token. Without one in the settings nobody is answered."""
    if request.method not in ("GET", "HEAD"):
        return error(405, "Send a GET request.", headers={"Allow": "GET, HEAD"})
    expected = settings.HOLDFAST_METRICS_TOKEN
    shown = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    if not expected or not constant_time_compare(shown, expected):
        wrong = error(401, "Show HOLDFAST_METRICS_TOKEN as a bearer token.", headers={"WWW-Authenticate": "Bearer"})
        return missed(request, wrong)
    return HttpResponse(metrics.exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _answer(request: HttpRequest, checks: dict[str, Any]) -> HttpResponse:
    if request.method not in ("GET", "HEAD"):
        return error(405, "Send a GET request.", headers={"Allow": "GET, HEAD"})
    found = {"database": health.database()}
    try:
        if found["database"]["ok"]:
            found |= {name: look() for name, look in checks.items()}
    except DatabaseError:
        found["database"] = {"ok": False, "message": "The database does not answer, or lacks tables."}
    ok = all(part["ok"] for part in found.values())
    return JsonResponse({"ok": ok, **found}, status=200 if ok else 503)


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics_text, name="metrics"),
]
