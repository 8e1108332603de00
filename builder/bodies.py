"""Reading what machines send. The address fixes the parser, not the Content-Type; the limit comes before reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse

from builder.replies import error
from builder.uploads import room_for
from runtime.jsonvalues import DEEPEST, MIB, BadJson, check_json, loads_strict

MOST_FIELDS = 1000
DRAINED = 8 * MIB
_FORM = "application/x-www-form-urlencoded"


class BodyRefused(Exception):
    """The answer that the sender gets instead."""

    def __init__(self, status: int, message: str, field: str = "body"):
        super().__init__(message)
        self.status, self.message, self.field = status, message, field


class OneLimit:
    """Middleware: no page or operation takes a body that announces more than forms may hold, but for the page of a form that asks
    for files. Django counts fields alone, so that anybody could have it parse and keep files up to what the server takes, also
    where no file is asked for."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        try:
            announced = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:  # Django then reads nothing
            announced = 0
        if announced <= most or announced <= most + room_for(request.path_info):
            return self.get_response(request)
        message = f"The body is larger than {most:,} bytes."
        if request.path_info.startswith("/api/"):
            return error(413, message)
        raise RequestDataTooBig(message)


def read_body(request: HttpRequest, limit: int = MIB) -> bytes:
    """The raw body, of at most `limit` bytes. Raises BodyRefused: 400 cut short, 411, 413, 415 compressed."""
    refuse_compressed(request)
    if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        return _read_chunked(request, limit)
    announced = _content_length(request)
    if announced > limit:
        _drain(request, announced)
        raise BodyRefused(413, f"The body is larger than {limit:,} bytes.")
    try:
        body = request.read(announced)
    except OSError:
        body = b""
    if len(body) < announced:
        raise BodyRefused(400, "The body is shorter than its Content-Length.")
    return body


def refuse_compressed(request: HttpRequest) -> None:
    """A few bytes may unpack to gigabytes. Raises BodyRefused."""
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise BodyRefused(415, "Send the body uncompressed, without Content-Encoding.")


def headers_of(request: HttpRequest) -> dict[str, str]:
    """By their names in lower case; `request.headers` costs several times as much to make."""
    named = {"CONTENT_TYPE": "content-type", "CONTENT_LENGTH": "content-length"}
    return {
        named.get(name) or name[5:].replace("_", "-").lower(): value
        for name, value in request.META.items() if name.startswith("HTTP_") or name in named
    }  # fmt: skip


def parse_body(
    body: bytes, content_type: str, format: str = "json", *, limit: int = MIB, deepest: int = DEEPEST
) -> Any:
    """The value of a `json` or `form` body. Raises BodyRefused: 400 not valid, 415 another kind of body."""
    kind = content_type.partition(";")[0].strip().lower()
    fits = kind in (_FORM, "") if format == "form" else kind != _FORM and not kind.startswith("multipart/")
    if not fits:
        raise BodyRefused(415, f"Send a form as {_FORM}." if format == "form" else "Send JSON.")
    if format == "form":
        return parse_pairs(body, "body")
    try:
        return loads_strict(body, limit, deepest=deepest)
    except BadJson as problem:
        raise BodyRefused(400, f"The {problem}", problem.path) from None


def parse_pairs(encoded: bytes, root: str) -> dict[str, str | list[str]]:
    """URL-encoded pairs -> name: text; a name that comes again makes a list. A dot in a name is a dot in a name."""
    try:
        pairs = parse_qsl(encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        raise BodyRefused(400, f"The {root} is not URL-encoded UTF-8.", root) from None
    except ValueError:
        raise BodyRefused(400, f"The {root} has more than {MOST_FIELDS:,} fields.", root) from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    try:
        check_json(found, root)
    except BadJson as problem:
        raise BodyRefused(400, f"The {problem}", problem.path) from None
    return found


def _content_length(request: HttpRequest) -> int:
    text = request.META.get("CONTENT_LENGTH") or "0"
    if not (text.isascii() and text.isdigit()):
        raise BodyRefused(400, "The Content-Length is not a number.")
    return int(text[:20])


def _read_chunked(request: HttpRequest, limit: int) -> bytes:
    """Django gives no body without a Content-Length. Servers that say so end the stream themselves."""
    if not request.META.get("wsgi.input_terminated"):
        raise BodyRefused(411, "Send the body with a Content-Length.")
    try:
        body = request.META["wsgi.input"].read(limit + 1)
    except OSError:
        raise BodyRefused(400, "The body ended before its last chunk.") from None
    if len(body) > limit:
        raise BodyRefused(413, f"The body is larger than {limit:,} bytes.")
    return body


def _drain(request: HttpRequest, announced: int) -> None:
    """A sender that is cut off while it sends sees a reset connection and not our 413. Not for any size."""
    if announced > DRAINED:
        return
    try:
        while request.read(64 * 1024):
            pass
    except OSError:
        pass
