"""A large output of a step: the next part for the page, or all of it as a file; and the file that a step gave."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from builder import access
from builder.largevalues import LargeOutput, given_file, large_output


@require_safe
def run_output(request: HttpRequest, run_id: int) -> HttpResponse:
    return render(request, "runs/_output_part.html", {"part": _asked(request, run_id).part(_number(request, "start", 0))})


@require_safe
def run_output_file(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    large = _asked(request, run_id)
    response = StreamingHttpResponse(large.pieces(), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="run-{run_id}-output.json"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_safe
def run_file(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    found = given_file(access.get_run(request.user, run_id), request.GET.get("step", ""), _number(request, "take", 1))
    if found is None:
        raise Http404("This step gave no file.")
    return found.response()


def _asked(request: HttpRequest, run_id: int) -> LargeOutput:
    return large_output(access.get_run(request.user, run_id), request.GET.get("step", ""), _number(request, "take", 1))


def _number(request: HttpRequest, name: str, usual: int) -> int:
    text = request.GET.get(name, str(usual))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Http404("There is no such part.")
    return int(text)
