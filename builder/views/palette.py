"""Help → Steps: what every step type and trigger does, with an example to insert."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from builder.functionhelp import groups
from builder.palette import sections


@require_safe
def palette(request: HttpRequest) -> HttpResponse:
    return render(request, "palette/palette.html", {"sections": sections(), "functions": groups()})


urlpatterns = [path("palette/", palette, name="palette")]
