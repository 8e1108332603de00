"""Ctrl K, and the search in the top bar."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_safe

from builder.searching import found


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """A page of what was found, or that itself when it is one thing. For htmx the choices alone."""
    query = request.GET.get("q", "")
    hits = found(request.user, query)
    if request.htmx:
        return render(request, "search/choices.html", {"hits": hits, "query": query})
    if query.strip() and len(hits) == 1:
        return redirect(hits[0].url)
    return render(request, "search/search.html", {"hits": hits, "search_query": query})


urlpatterns = [path("search/", search, name="search")]
