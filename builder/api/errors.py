"""Every refusal in one shape: `{"error": {"message", "problems": [{"step", "field", "message"}]}}`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from builder.bodies import BodyRefused
from builder.drafts import StaleRevision
from builder.editing import EditError
from builder.replies import error, missed, try_later
from runtime.definition import DefinitionError, Problem
from runtime.jsonvalues import BadJson
from runtime.starts import IdempotencyConflict


class Refused(Exception):
    """An answer with this status and message, raised anywhere in an operation."""

    def __init__(self, status: int, message: str, problems: Iterable[dict[str, Any]] = ()):
        super().__init__(message)
        self.status, self.message, self.problems = status, message, list(problems)


class NotAllowedInJson:
    """Middleware: ninja answers a wrong method in plain words, past its own handlers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        match = request.resolver_match
        if response.status_code != 405 or match is None or match.namespaces[:1] != ["api"]:
            return response
        allowed = response.headers["Allow"]
        return error(405, f"{request.method} is not possible here, but {allowed} is.", headers={"Allow": allowed})


def add_handlers(api: NinjaAPI) -> None:
    for kind, answer in HANDLERS.items():
        api.add_exception_handler(kind, answer)


def listed(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    return [{"step": one.step, "field": one.field, "message": one.message, "warning": one.warning} for one in problems]


def _refused(request: HttpRequest, raised: Any) -> HttpResponse:
    return error(raised.status, raised.message, raised.problems)


def _unknown(request: HttpRequest, raised: Any) -> HttpResponse:
    answer = error(401, "Send a valid token as “Authorization: Bearer …”.", headers={"WWW-Authenticate": "Bearer"})
    return missed(request, answer)


def _http(request: HttpRequest, raised: Any) -> HttpResponse:
    """Ninja hides what was wrong with the body; its cause knows."""
    if isinstance(raised.__cause__, BodyRefused):
        cause = raised.__cause__
        return error(cause.status, cause.message, [{"step": "", "field": cause.field, "message": cause.message}])
    return error(raised.status_code, str(raised))


def _invalid(request: HttpRequest, raised: Any) -> HttpResponse:
    problems = [{"step": "", "field": _field(item["loc"]), "message": item["msg"]} for item in raised.errors]
    return error(422, "The request does not fit. See problems.", problems)


def _field(location: Iterable[Any]) -> str:
    """(`body`, `data`, `input`) -> `body.input`: the middle part is the name of our own parameter."""
    parts = [str(part) for part in location]
    return ".".join(parts[:1] + parts[2:] if parts[:1] == ["body"] and len(parts) > 2 else parts)


def _definition(request: HttpRequest, raised: Any) -> HttpResponse:
    return error(422, "The definition has problems.", listed(raised.problems))


def _stale(request: HttpRequest, raised: Any) -> HttpResponse:
    return error(409, f"{raised} Get the draft again and repeat your change on it.")


def _no_database(request: HttpRequest, raised: Any) -> HttpResponse:
    return try_later("The database cannot take this on just now. Try again.", 10)


HANDLERS: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
    Refused: _refused,
    AuthenticationError: _unknown,
    HttpError: _http,
    ValidationError: _invalid,
    DefinitionError: _definition,
    StaleRevision: _stale,
    EditError: lambda request, raised: error(422, str(raised)),
    BadJson: lambda request, raised: error(
        422, str(raised), [{"step": "", "field": raised.path, "message": str(raised)}]
    ),
    IdempotencyConflict: lambda request, raised: error(409, str(raised)),
    PermissionDenied: lambda request, raised: error(403, str(raised) or "Your role does not allow this."),
    Http404: lambda request, raised: error(404, str(raised) or "There is nothing here."),
    RequestDataTooBig: lambda request, raised: error(
        413, f"The body is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes."
    ),
    OperationalError: _no_database,
    InterfaceError: _no_database,
    InternalError: _no_database,
}
