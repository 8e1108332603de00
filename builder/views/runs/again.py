"""Acts that repeat work. Each shows first what it will repeat (GET: a dialog, or a page without script) and then does it
(POST, once per form)."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from builder import access, again, reruns
from builder.editing.places import name_at
from builder.numbers import number_of
from builder.uncertain import output_sketch
from runtime import acts
from runtime.definition import find
from runtime.jsonvalues import BadJson, loads_strict, storable_text
from runtime.models import Run, Version
from runtime.paths import step_of

LARGEST_INPUT = 1 << 20
LONGEST_EDITED = 100_000
MOST_PATH = 1000
DONE_ALREADY = "That was done already; nothing more happened."


@require_http_methods(["GET", "HEAD", "POST"])
def requeue_run(request: HttpRequest, run_id: int) -> HttpResponse:
    run = access.get_run(request.user, run_id, access.OPERATOR)
    return asked_and_done(
        request, run, "requeue", lambda key: acts.requeue(run.pk, user=request.user, key=key),
        told=lambda: again.for_requeue(run), title=f"Requeue run {run.pk:,}?", yes="Requeue",
        done="Requeued. It goes on where it failed.", nothing="Only a failed run can be requeued; nothing was changed.",
        **others_of(run),
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
def retry_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """From a step or an iteration, named by its path."""
    run, path = access.get_run(request.user, run_id, access.OPERATOR), path_of(request)
    return asked_and_done(
        request, run, "retry", lambda key: acts.retry(run.pk, path, user=request.user, key=key),
        told=lambda: again.for_retry(run, path), title=f"Retry from “{name_of(run, path)}”?", yes="Retry from here",
        done="It runs again from here.", nothing=DONE_ALREADY, path=path,
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
def skip_step(request: HttpRequest, run_id: int) -> HttpResponse:
    """Give the step an output by hand, and go on after it."""
    run, path = access.get_run(request.user, run_id, access.OPERATOR), path_of(request)
    text = request.POST.get("output", "")

    def skip(key: str) -> bool:
        output = loads_strict(text.encode(), LARGEST_INPUT) if text.strip() else None
        return acts.skip(run.pk, path, output, user=request.user, key=key)

    return asked_and_done(
        request, run, "skip", skip, told=lambda: None, title=f"Skip “{name_of(run, path)}”?", yes="Skip this step",
        done="Skipped. The run goes on with this output.", nothing=DONE_ALREADY, path=path, output=text,
        sketch=output_sketch(find(run.version.definition, step_of(path)) or {}),
    )  # fmt: skip


def others_of(run: Run) -> dict[str, int | None]:
    """The later runs of its origin that a dialog warns of: what is called here, they have called, or will."""
    family = reruns.family(run)
    return {"made_good_by": reruns.made_good_by(run, family), "going_on": reruns.going_on(run, family)}


def asked_and_done(
    request: HttpRequest, run: Run, act: str, do: Callable[[str], bool], *,
    told: Callable[[], again.Told | None], title: str, yes: str, done: str, nothing: str, path: str = "", **fields: Any,
) -> HttpResponse:  # fmt: skip
    """GET asks, with what the act would repeat (`told`); POST does it, once for the form's key, and says what became of
    it: `done`, `nothing` when it changed nothing, or why it is not possible."""
    context = {"title": title, "yes": yes, "path": path, **fields}
    if request.method != "POST":
        return ask(request, run, act, told(), **context)
    try:
        changed = do(key_of(request))
    except BadJson as wrong:
        return ask(request, run, act, told(), **context, wrong=f"The output is no JSON: {wrong}")
    except acts.NotPossible as wrong:
        messages.error(request, f"{wrong} Nothing was changed.")
    else:
        (messages.success if changed else messages.warning)(request, done if changed else nothing)
    return redirect(at_step(run, path))


@require_http_methods(["GET", "HEAD", "POST"])
def rerun_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """A new run, with the same or an edited input, on the version that this one is pinned to or on the live one, which is
    proposed when it is newer. A test run of a draft has no number to be newer than."""
    run = access.get_run(request.user, run_id, access.OPERATOR)
    live = run.workflow.live_version if not run.workflow.deleted_at else None
    other = live if live and live.pk != run.version_id else None
    newer = bool(other and run.version.number) and other.number > run.version.number
    context = {"title": f"Start run {run.pk:,} again?", "yes": "Start a new run", "live": other, "on_live": newer, **others_of(run)}
    if request.method != "POST":
        return ask(request, run, "rerun", again.for_rerun(run), **context, input=pretty(run.input))
    text, chosen = request.POST.get("input", ""), request.POST.get("version", "")
    try:
        given = read_input(text) if text.strip() else None
    except BadJson as wrong:
        context |= {"input": text, "on_live": chosen == "live", "wrong": f"The input is no JSON: {wrong}"}
        return ask(request, run, "rerun", again.for_rerun(run), **context)
    version = live if chosen == "live" and live else None
    try:
        started = acts.rerun(run, user=request.user, version=version, input=given, key=key_of(request))
    except Run.DoesNotExist:
        raise Http404("The run is kept no longer.") from None
    messages.success(request, f"Started again, after run {run.pk:,}.")
    return redirect("run", started)


@require_http_methods(["GET", "HEAD", "POST"])
def continue_run(request: HttpRequest, run_id: int) -> HttpResponse:
    """A new run on the live version that begins with the results of what ended in this one. The form names the version that was
    shown: another one may be live by now."""
    run = access.get_run(request.user, run_id, access.OPERATOR)
    version = again.continued_on(run)
    if request.method != "POST":
        context = {"title": f"Continue run {run.pk:,} on {version}?", "yes": f"Continue on {version}", "version": version}
        return ask(request, run, "continue", again.for_continue(run, version), **context)
    if (shown := number_of(request.POST.get("version", ""))) is not None:
        version = Version.objects.filter(pk=shown, workflow_id=run.workflow_id).first() or version
    try:
        started = acts.rerun(run, user=request.user, version=version, keep=True, key=key_of(request))
    except Run.DoesNotExist:
        raise Http404("The run is kept no longer.") from None
    except acts.NotPossible as wrong:
        messages.error(request, f"{wrong} Nothing was changed.")
        return redirect("run", run.pk)
    messages.success(request, f"It goes on with what run {run.pk:,} has done.")
    return redirect("run", started)


@require_POST
def fail_run(request: HttpRequest, run_id: int) -> HttpResponse:
    run = access.get_run(request.user, run_id, access.OPERATOR)
    if acts.force_fail(run.pk, user=request.user, why=storable_text(request.POST.get("why", ""))[:300]):
        messages.success(request, "Failed by hand. Requeue takes it up again where it stood.")
    else:
        messages.warning(request, "The run had ended before; nothing was changed.")
    return redirect("run", run.pk)


def ask(request: HttpRequest, run: Run, act: str, told: again.Told | None, **context: Any) -> HttpResponse:
    """The question, as a dialog for htmx, else as a page. A form that was wrong is shown again on a page."""
    dialog = bool(request.headers.get("HX-Request"))
    back = at_step(run, context.get("path", ""))
    given = {"run": run, "act": act, "told": told, "key": secrets.token_hex(16), "back": back, "dialog": dialog} | context
    status = 422 if context.get("wrong") else 200
    return render(request, "runs/again_dialog.html" if dialog else "runs/again.html", given, status=status)


def read_input(text: str) -> dict[str, Any]:
    """What expressions call `trigger`. Raises BadJson."""
    value = loads_strict(text.encode(), LARGEST_INPUT)
    if not isinstance(value, dict):
        raise BadJson("", "It has to be an object, such as {\"body\": {}}.")
    return value


def pretty(value: Any) -> str:
    """Empty for what is too long to be edited in a field: then the new run gets it as it is."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= LONGEST_EDITED else ""


def key_of(request: HttpRequest) -> str:
    """The form's, as this person's and of this address: no act counts as done because another had the key that it comes with."""
    sent = request.POST.get("key", "")
    return hashlib.sha256(f"form|{request.user.pk}|{request.path}|{sent}".encode("utf-8", "replace")).hexdigest() if sent else ""


def path_of(request: HttpRequest) -> str:
    return (request.POST.get("step") or request.GET.get("step") or "")[:MOST_PATH].replace("\x00", "")


def name_of(run: Run, path: str) -> str:
    name = name_at(run.version.definition, path)
    place = again.where(path)
    return f"{name}, {place}" if place else name


def at_step(run: Run, path: str) -> str:
    address = reverse("run", args=[run.pk])
    return f"{address}?{urlencode({'step': path})}" if path else address
