"""What Django refuses before a view has seen it."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400; 413, and what it means, where what was sent is too large."""
    if isinstance(exception, RequestDataTooBig):
        return HttpResponse(render_to_string("413.html"), status=413)
    return defaults.bad_request(request, exception)
