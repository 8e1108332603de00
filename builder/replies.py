"""What machines are answered: JSON, with errors in one shape everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.http import JsonResponse


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
