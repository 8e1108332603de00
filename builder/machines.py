"""Webhooks and callbacks, past what is there for people: sessions, messages, sign-in, nonces for scripts. Nothing of that is
asked for them, and it would cost more than the rest of the request."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from builder.gate import PUBLIC, rule_for

FOR_MACHINES = ("/hooks/", "/callbacks/")
GUARDS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}


class Straight:
    """Middleware: such a request goes to its view at once. What stands above in the list is done, what stands below is not."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(FOR_MACHINES):
            return self.get_response(request)
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return self.get_response(request)
        if rule_for(match.view_name, request.method) != PUBLIC:
            return self.get_response(request)
        request.get_host()  # refuses a name that is none of ours
        request.resolver_match = match
        response = match.func(request, *match.args, **match.kwargs)
        for name, value in GUARDS.items():
            response.headers.setdefault(name, value)
        response.headers["Content-Length"] = str(len(response.content))
        return response
