"""Webhooks: a request of another system becomes a run, once, or is refused with the reason.

The answer is 202 only after the run is committed. Whatever keeps us from that is a 503, so that the sender comes again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Any, NamedTuple

from django.conf import settings
from django.db import Error as DatabaseTrouble
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from builder.bodies import BodyRefused, headers_of, parse_body, parse_pairs, read_body
from builder.replies import error, error_body, missed, too_many, try_later
from runtime.clock import business_now
from runtime.expressions import EvaluationError, compile
from runtime.hooks import Hook, find, forget_hook, post, remember, remembered
from runtime.jsonvalues import BadJson, check_json
from runtime.models import Run
from runtime.starts import IdempotencyConflict, Started, start
from runtime.states import UNFINISHED, RunState
from runtime.triggers.signatures import NotSigned, verify
from runtime.triggers.signing import SecretUnavailable, check_shown, signing_secrets
from runtime.triggers.webhook import METHODS, SHOWN

log = logging.getLogger(__name__)

NOT_HERE = "There is no webhook at this address."
NEVER_KEPT = frozenset({"authorization", "proxy-authorization", "cookie"})
LONGEST_KEY = 255
WAITING = BoundedSemaphore(max(1, settings.HOLDFAST_WEB_THREADS // 2))
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")


@csrf_exempt
def hook(request: HttpRequest, token: str) -> HttpResponse:
    """POST -> 202 `{"run": id, "url": address}`; 200 and the same run for an event that came before. A webhook that answers
    when the run ends: 200 `{"run", "state", "output"}`, 500 where it failed, and 202 where that takes longer.

    A paused workflow answers 503, so that a sender that tries again loses nothing.
    """
    if request.method not in METHODS:
        return error(405, "Send a POST request to this address.", headers={"Allow": "POST"})
    try:
        return _receive(request, token)
    except BodyRefused as refused:
        return error(refused.status, refused.message)
    except NotSigned as refused:
        return missed(request, error(401, str(refused)))
    except NotFromThere:
        return missed(request, error(403, "Requests from this address are not taken."))
    except IdempotencyConflict:
        return error(409, "This Idempotency-Key was used before, with another body.")
    except (DatabaseTrouble, SecretUnavailable):
        log.exception("A webhook request could not be taken on, and was answered with 503.")
        return try_later("This cannot be taken on just now. Send it again.", 10)


def _receive(request: HttpRequest, token: str) -> HttpResponse:
    body = Body(request)
    if (hook := remembered(token)) and (answer := _quickly(request, hook, body)):
        return answer
    forget_hook(token)
    hook = find(token, settings.HOLDFAST_HOOKS_PER_MINUTE) if _TOKEN.fullmatch(token) else None
    if hook is None:
        if request.method != "POST":  # as a webhook says that is there
            return error(405, "Send a POST request to this address.", headers={"Allow": "POST"})
        return missed(request, error(404, NOT_HERE))
    if hook.later:
        return too_many(f"This webhook takes {settings.HOLDFAST_HOOKS_PER_MINUTE:,} requests a minute. Send it again.", hook.later)
    wanted = _look_at(request, hook, body)
    if isinstance(wanted, HttpResponse):
        return wanted
    started = start(hook.live, trigger_key=hook.key, input=wanted.event, idempotency_key=wanted.key, input_hash=wanted.hash)
    if not hook.config.get("only"):  # else many requests start nothing, and would be looked at twice
        remember(hook)
    return _answer(hook, started)


def _quickly(request: HttpRequest, hook: Hook, body: Body) -> HttpResponse | None:
    """The answer to a request that starts a run, as nearly all do, where the webhook is still as it is remembered. None for any
    other, of which nothing was counted or done: it is looked at with the webhook as it is."""
    try:
        wanted = _look_at(request, hook, body)
    except (BodyRefused, NotFromThere, NotSigned, SecretUnavailable):
        return None
    if isinstance(wanted, HttpResponse):
        return None
    started = post(hook, settings.HOLDFAST_HOOKS_PER_MINUTE, wanted.event, wanted.key, wanted.hash)
    return _answer(hook, started) if started else None


class Body:
    """A request's body, read when it is first asked for. Raises BodyRefused, each time."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._read: bytes | BodyRefused | None = None

    def __call__(self) -> bytes:
        if self._read is None:
            try:
                self._read = read_body(self._request)
            except BodyRefused as refused:
                self._read = refused
        if isinstance(self._read, BodyRefused):
            raise self._read
        return self._read


class NotFromThere(Exception):
    """The webhook takes nothing from this address."""


class Wanted(NamedTuple):
    """A run to start: its input, its idempotency key, the hash that must not differ under that key."""

    event: dict[str, Any]
    key: str | None
    hash: str


def _look_at(request: HttpRequest, hook: Hook, body: Body) -> Wanted | HttpResponse:
    """What this webhook makes of a request. Raises BodyRefused, NotFromThere, NotSigned, SecretUnavailable."""
    methods = hook.config.get("methods") or ["POST"]
    if request.method not in methods:
        words = f"Send a {' or '.join(methods)} request to this address."
        return error(405, words, headers={"Allow": ", ".join(methods)})
    if not _comes_from(request, hook.config.get("allowed")):
        raise NotFromThere
    read = body() if request.method not in ("GET", "DELETE") or request.META.get("CONTENT_LENGTH", "0") != "0" else b""
    headers = _check_signature(hook, headers_of(request), read)
    if hook.paused:
        return try_later("This flow is paused. Send it again later.", 60)
    event = event_of(request, hook.config, headers, read)
    try:
        wanted = _wanted(hook, event)
    except EvaluationError as problem:
        return error(400, f"The webhook cannot tell whether it wants this: {problem}", [_problem(hook, str(problem), "only")])
    try:
        key, input_hash = _key(hook, event, headers, read)
    except EvaluationError as problem:
        return error(400, f"The webhook cannot tell which event this is: {problem}", [_problem(hook, str(problem))])
    if not wanted:
        return JsonResponse({"run": None, "message": "This webhook starts nothing for such a request."})
    return Wanted(event, key, input_hash)


def _check_signature(hook: Hook, headers: dict[str, str], body: bytes) -> dict[str, str]:
    """The headers that may be kept: without one that is the secret itself."""
    kind = (hook.config.get("signature") or {}).get("kind", "none")
    if kind in SHOWN:
        secret = check_shown(hook, headers)
        return {name: text for name, text in headers.items() if name != secret}
    if kind != "none":
        verify(kind, signing_secrets(hook), headers, body, business_now())
    return headers


def _comes_from(request: HttpRequest, allowed: Iterable[str] | None) -> bool:
    if not allowed:
        return True
    networks = [ip_network(line.strip(), strict=False) for line in allowed]
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return any(address in network for network in networks)


def _wanted(hook: Hook, event: dict[str, Any]) -> bool:
    source = hook.config.get("only")
    return not source or compile(source).evaluate({**event, "trigger": event}) is True


def _answer(hook: Hook, started: Started) -> HttpResponse:
    if hook.config.get("respond") == "at_end" and not started.dropped:
        return _at_end(started, int(hook.config.get("respond_within") or 30))
    return _at_once(started)


def _at_end(started: Started, seconds: int) -> HttpResponse:
    """The run's end as the answer. Only half of the threads wait for runs; a request beyond is answered at once."""
    if not WAITING.acquire(blocking=False):
        return _at_once(started)
    try:
        ends, pause = monotonic() + seconds, 0.05
        while (run := Run.objects.only("id", "state", "output", "error").get(pk=started.run_id)).state in UNFINISHED:
            if monotonic() > ends:
                return _at_once(started)
            sleep(pause)
            pause = min(2 * pause, 0.5)
    finally:
        WAITING.release()
    told = {"run": run.pk, "state": run.state, "output": run.output}
    if run.state == RunState.SUCCEEDED:
        return JsonResponse(told)
    return JsonResponse({**told, **error_body((run.error or {}).get("message") or f"The run was {run.state}.")}, status=500)


def event_of(request: HttpRequest, config: dict[str, Any], headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """What expressions call `trigger`. `config` is the webhook's."""
    value = None
    if body or request.method not in ("GET", "DELETE"):
        value = parse_body(body, headers.get("content-type", ""), config.get("format", "json"))
    query = parse_pairs(request.META.get("QUERY_STRING", "").encode("utf-8", "surrogateescape"), "query")
    kept = {name: text for name, text in headers.items() if name not in NEVER_KEPT}
    try:
        check_json(kept, "headers")
    except BadJson as problem:
        raise BodyRefused(400, f"The {problem}") from None
    return {"body": value, "headers": kept, "query": query, "method": request.method}


def _key(hook: Hook, event: dict[str, Any], headers: dict[str, str], body: bytes) -> tuple[str | None, str]:
    """(idempotency key, input hash). The workflow's own rule comes first; for null, and without a rule, the sender's
    Idempotency-Key holds, which must not come again with another body. The two can never be taken for each other."""
    if source := hook.config.get("dedupe"):
        value = compile(source).evaluate({**event, "trigger": event})
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))
            return _bounded("event", text), ""
    sent = headers.get("idempotency-key", "").strip()
    if len(sent) > LONGEST_KEY:
        raise BodyRefused(400, f"The Idempotency-Key is longer than {LONGEST_KEY} characters.")
    return (f"key:{sent}", hashlib.sha256(body).hexdigest()) if sent else (None, "")


def _bounded(kind: str, text: str) -> str:
    """Index entries are limited in length; texts from outside are not."""
    return (
        f"{kind}:{text}" if len(text) <= LONGEST_KEY else f"{kind}-sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    )


def _problem(hook: Hook, message: str, field: str = "dedupe") -> dict[str, str]:
    return {"step": hook.key, "field": f"config.{field}", "message": message}


def _at_once(started: Started) -> HttpResponse:
    told = {"run": started.run_id, "url": f"{settings.HOLDFAST_PUBLIC_URL}/runs/{started.run_id}/"}
    if started.dropped:
        return JsonResponse({**told, "dropped": True, **error_body(started.dropped)}, status=409)
    return JsonResponse(told, status=202 if started.created else 200)


urlpatterns = [
    path("hooks/<str:token>/", hook, name="hook"),
    path("hooks/<str:token>", hook, name="hook_no_slash"),
]
