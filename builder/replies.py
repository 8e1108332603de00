"""What machines are answered: JSON, with errors in one shape everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from runtime.limits import admitted, caller


def error(
    status: int, message: str, problems: Iterable[Mapping[str, str]] = (), headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """`{"error": {"message", "problems": [{"step", "field", "message"}]}}`."""
    return JsonResponse(error_body(message, problems), status=status, headers=headers)


def error_body(message: str, problems: Iterable[Mapping[str, str]] = ()) -> dict[str, Any]:
    return {"error": {"message": message, "problems": [dict(problem) for problem in problems]}}


def try_later(message: str, seconds: int) -> JsonResponse:
    """503 with Retry-After: nothing was taken on, so the sender has to come again."""
    return error(503, message, headers={"Retry-After": str(seconds)})


def too_many(message: str, seconds: float) -> JsonResponse:
    """429 with Retry-After, in whole seconds."""
    return error(429, message, headers={"Retry-After": str(math.ceil(seconds))})


def missed(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """The answer to a token or signature that is wrong; 429 for a caller from whom too many of these come."""
    wait = admitted(f"miss:{caller(request.META.get('REMOTE_ADDR', ''))}", settings.HOLDFAST_MISSES_PER_MINUTE)
    return too_many("Too many requests that are not for us. Check the address and the signature.", wait) if wait else answer
