"""Callbacks: another system reports back to the run that called it. The address carries its own signature."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from django.db import Error as DatabaseTrouble
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from builder.bodies import BodyRefused, parse_body, read_body
from builder.replies import error, missed, too_many, try_later
from runtime.definition import find
from runtime.limits import admitted
from runtime.models import Run
from runtime.paths import step_of
from runtime.steps.callback import unfit
from runtime.tokens import callback_verified
from runtime.waits import TooManySignals, signal

log = logging.getLogger(__name__)

LONGEST_KEY = 255
CHECKS_PER_MINUTE = 20
"""Of one address, where the flow says what has to be sent: to hold a large value against a schema may take seconds."""


@csrf_exempt
def callback(request: HttpRequest, run_id: int, signature: str, path: str) -> HttpResponse:
    """POST JSON, or nothing. 202: kept, also when the run does not wait yet; 200: came before, or the run has ended.

    The same Idempotency-Key, or without one the same body, is the same report.
    """
    if request.method != "POST":
        return error(405, "Send a POST request to this address.", headers={"Allow": "POST"})
    if not callback_verified(run_id, path, signature):
        return missed(request, error(404, "There is no callback at this address."))
    try:
        body = read_body(request)
        payload = parse_body(body, request.headers.get("Content-Type", "")) if body.strip() else None
        schema = _schema(run_id, path)
        if schema and (wait := admitted(f"callback:{run_id}:{path}", CHECKS_PER_MINUTE)):
            return too_many(f"This address takes {CHECKS_PER_MINUTE} calls a minute, since each is checked. Send it again.", wait)
        if wrong := unfit(payload, schema):
            return error(422, f"This does not fit what the flow waits for: {wrong}")
        kept = signal(run_id, path, payload, _dedupe(request, body))
    except BodyRefused as refused:
        return error(refused.status, refused.message)
    except TooManySignals:
        return error(429, "This run keeps 100 calls that it has not used; more are not taken.", headers={"Retry-After": "60"})
    except DatabaseTrouble:
        log.exception("A callback of run %s could not be taken on, and was answered with 503.", run_id, extra={"run": run_id})
        return try_later("This cannot be taken on just now. Send it again.", 10)
    return JsonResponse({"kept": kept}, status=202 if kept else 200)


def _schema(run_id: int, path: str) -> dict[str, Any]:
    """What the step says that has to be sent; it may not have come to its wait yet."""
    run = Run.objects.select_related("version").only("version__definition").filter(pk=run_id).first()
    step = find(run.version.definition, step_of(path)) if run else None
    return ((step or {}).get("config") or {}).get("schema") or {}


def _dedupe(request: HttpRequest, body: bytes) -> str:
    sent = request.headers.get("Idempotency-Key", "").strip()
    if len(sent) > LONGEST_KEY or "\x00" in sent:
        raise BodyRefused(400, f"The Idempotency-Key is longer than {LONGEST_KEY} characters.")
    return f"key:{sent}" if sent else f"body:{hashlib.sha256(body).hexdigest()}"


urlpatterns = [
    path("callbacks/<int:run_id>/<str:signature>/<path:path>/", callback, name="callback"),
    path("callbacks/<int:run_id>/<str:signature>/<path:path>", callback, name="callback_no_slash"),
]
