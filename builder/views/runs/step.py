"""One step of a run alone, with the input that it had, against other code: what it would do, or a test run of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from builder import access, comparing, rerunning
from builder.numbers import number_of
from runtime.audit import record
from runtime.definition import DefinitionError
from runtime.expressions import ExpressionError
from runtime.models import Run
from runtime.replay import NotRemembered
from runtime.states import UNFINISHED

from .again import at_step, name_of, path_of


@require_http_methods(["GET", "HEAD", "POST"])
def run_step(request: HttpRequest, run_id: int) -> HttpResponse:
    """GET: `step` is its path, `code` the definition: pinned, a version's number or draft. POST with `really` starts a
    test run of the step alone, which `test` then names."""
    run = access.get_run(request.user, run_id, access.BUILDER)
    path, code = path_of(request), (request.POST.get("code") or request.GET.get("code") or rerunning.PINNED)[:20]
    side = rerunning.side_of(run, code)
    if side is None or run.workflow.deleted_at and code != rerunning.PINNED:
        raise Http404("There is no such version.")
    address = f"{reverse('run_step', args=[run.pk])}?{urlencode({'step': path, 'code': code})}"
    if request.method == "POST":
        test = _started(request, run, path, side)
        return redirect(f"{address}&{urlencode({'test': test})}" if test else address)
    context: dict[str, Any] = {"run": run, "path": path, "name": name_of(run, path), "code": code, "side": side}
    try:
        context |= {"rerun": rerunning.rerun(run, path, side)}
    except NotRemembered as wrong:
        context |= {"refused": str(wrong)}
    context |= {"codes": _codes(run, path, code), "test": _test(request, run, path)}
    context |= {"back": at_step(run, path), "address": request.get_full_path()}
    return render(request, "runs/step.html", context)


def _started(request: HttpRequest, run: Run, path: str, side: comparing.Side) -> int | None:
    if not request.POST.get("really") or run.workflow.deleted_at:
        return None
    try:
        test = rerunning.start(run, path, side, user=request.user)
    except (NotRemembered, ExpressionError, ValueError, DefinitionError) as wrong:
        messages.error(request, f"{wrong} Nothing was started.")
        return None
    detail = {"path": path, "code": side.title, "test": test}
    record("rerun_step", f"run:{run.pk}", actor=request.user, team_id=run.workflow.team_id, detail=detail)
    return test


def _codes(run: Run, path: str, chosen: str) -> list[dict[str, Any]]:
    """What the step can be run against: its own version, the live one when that is another, the draft."""
    live = run.workflow.live_version
    found = [(rerunning.PINNED, f"{run.version}, as this run")]
    if not run.workflow.deleted_at:
        if live and live.pk != run.version_id:
            found.append((str(live.number), f"{live}, live"))
        found.append((comparing.DRAFT, "Draft"))
    address = reverse("run_step", args=[run.pk])
    return [
        {"label": words, "url": f"{address}?{urlencode({'step': path, 'code': code})}", "on": code == chosen}
        for code, words in found
    ]


def _test(request: HttpRequest, run: Run, path: str) -> dict[str, Any] | None:
    """Where the test run stands that was started here."""
    number = number_of(request.GET.get("test", ""))
    if number is None:
        return None
    test = Run.objects.filter(pk=number, workflow=run.workflow, test=True).first()
    if test is None:
        raise Http404("There is no such test run.")
    changes = None if test.state in UNFINISHED else rerunning.against(run, path, test.pk)
    return {"run": test, "under_way": test.state in UNFINISHED, "changes": changes}
