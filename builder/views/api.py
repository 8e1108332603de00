"""Where the API lives, and a page that describes it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from builder.api import api
from builder.api.reference import sections
from builder.replies import error


def api_docs(request: HttpRequest) -> HttpResponse:
    """The OpenAPI description as a page of our own: no script, nothing loaded from elsewhere."""
    return render(request, "api/docs.html", {"sections": sections(api.get_openapi_schema())})


@csrf_exempt
def api_missing(request: HttpRequest, rest: str) -> HttpResponse:
    """Programs are answered in JSON also where there is nothing."""
    return error(404, f"There is no /api/v1/{rest[:100]}. See /api/v1/docs.")


urlpatterns: list[Any] = [
    path("api/v1/docs", api_docs, name="api_docs"),
    path("api/v1/", api.urls),
    path("api/v1/<path:rest>", api_missing, name="api_missing"),
]
