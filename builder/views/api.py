"""Where the API lives, and what describes it."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from builder.api import api
from builder.api.reference import sections
from builder.replies import error


@cache
def described() -> tuple[dict[str, Any], bytes, str]:
    """The OpenAPI description, its JSON and its ETag: made once in a process, since nothing of it changes in one."""
    schema = api.get_openapi_schema()
    text = json.dumps(schema).encode()
    return schema, text, f'"{hashlib.sha256(text).hexdigest()[:32]}"'


@require_safe
def api_openapi(request: HttpRequest) -> HttpResponse:
    _, text, etag = described()
    kept = {"ETag": etag, "Cache-Control": "no-cache"}
    if etag in request.headers.get("If-None-Match", ""):
        return HttpResponse(status=304, headers=kept)
    return HttpResponse(text, content_type="application/json", headers=kept)


def api_docs(request: HttpRequest) -> HttpResponse:
    """The OpenAPI description as a page of our own: no script, nothing loaded from elsewhere."""
    return render(request, "api/docs.html", {"sections": sections(described()[0])})


@csrf_exempt
def api_missing(request: HttpRequest, rest: str) -> HttpResponse:
    """Programs are answered in JSON also where there is nothing."""
    return error(404, f"There is no /api/v1/{rest[:100]}. See /api/v1/docs.")


urlpatterns: list[Any] = [
    path("api/v1/docs", api_docs, name="api_docs"),
    path("api/v1/openapi.json", api_openapi, name="api_openapi"),
    path("api/v1/", api.urls),
    path("api/v1/<path:rest>", api_missing, name="api_missing"),
]
