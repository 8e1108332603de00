"""What operators do to runs: each a POST of its own that redirects to where its effect shows."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any
from urllib.parse import unquote_plus

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from builder import access, many, reruns, runlist
from builder.runfilter import Filter
from runtime import acts, jobs, waits
from runtime.jsonvalues import BadJson, loads_strict, storable_text
from runtime.models import Wait
from runtime.states import WaitKind

LARGEST_OUTPUT = 1 << 20
AT_ONCE = 100


@require_POST
def cancel_run(request: HttpRequest, run_id: int) -> HttpResponse:
    run = access.get_run(request.user, run_id, access.OPERATOR)
    if acts.cancel(run.pk, user=request.user):
        messages.success(request, "Cancelled. No new call begins.")
    else:
        messages.warning(request, "The run had ended before; nothing was changed.")
    return redirect("run", run.pk)


@require_POST
def answer_wait(request: HttpRequest, run_id: int, wait_id: int) -> HttpResponse:
    """The person's word on an attempt that may have happened."""
    run = access.get_run(request.user, run_id, access.OPERATOR)
    wait = get_object_or_404(Wait, pk=wait_id, run_id=run.pk, kind=WaitKind.PERSON)
    answer = request.POST.get("answer", "")
    back = back_to(request) or reverse("run", args=[run.pk])
    if answer not in ("happened", "again", "fail"):
        messages.error(request, "Choose one of the three answers.")
        return redirect(back)
    output, wrong = posted_output(request.POST.get("output", "")) if answer == "happened" else (None, "")
    if wrong:
        messages.error(request, wrong)
        return redirect(back)
    if acts.answer(wait.pk, answer, output=output, user=request.user):
        messages.success(request, ANSWERED[answer])
    else:
        messages.warning(request, "Somebody answered before, or the run has ended; nothing was changed.")
    return redirect(back)


@require_POST
def act_on_wait(request: HttpRequest, run_id: int, wait_id: int) -> HttpResponse:
    """End a delay or a pause now, answer a callback by hand, or let a wait end later."""
    run = access.get_run(request.user, run_id, access.OPERATOR)
    wait = get_object_or_404(Wait, pk=wait_id, run_id=run.pk)
    back = back_to(request) or reverse("run", args=[run.pk])
    act = request.POST.get("act", "")
    if act == "fire":
        done, said = waits.fire(wait.pk, user=request.user), "Now it is. The run goes on."
    elif act == "extend":
        done, said = extended(wait, request), "It waits longer."
    elif act == "call":
        payload, wrong = posted_output(request.POST.get("output", ""))
        if wrong:
            messages.error(request, wrong)
            return redirect(back)
        done, said = acts.call_back(wait.pk, payload, user=request.user), "Answered by hand. The run goes on."
    else:
        raise BadRequest("That is nothing that can be done to a wait.")
    if done:
        messages.success(request, said)
    else:
        messages.warning(request, "It waits no longer, or cannot be moved; nothing was changed.")
    return redirect(back)


def extended(wait: Wait, request: HttpRequest) -> bool:
    hours = request.POST.get("hours", "")
    if hours not in LONGER or wait.due_at is None:
        return False
    return waits.extend(wait.pk, wait.due_at + timedelta(hours=int(hours)), user=request.user)


LONGER = {"1": "1 hour", "24": "1 day", "168": "1 week"}
ANSWERED = {
    "happened": "Noted that it happened. The run goes on.",
    "again": "The step runs again, as its next take.",
    "fail": "The step fails.",
}


def posted_output(text: str) -> tuple[Any, str]:
    """(value, what is wrong with the text)."""
    if not text.strip():
        return None, ""
    try:
        return loads_strict(text.encode(), LARGEST_OUTPUT), ""
    except BadJson as wrong:
        return None, f"This is no JSON: {wrong} Nothing was changed."


@require_POST
def act_on_runs(request: HttpRequest) -> HttpResponse:
    """Act on the chosen runs, or on all that a filter finds. A few are done at once; many, new runs and files in the
    background."""
    act = request.POST.get("act", "")
    if act not in ACTS:
        raise BadRequest("That is not something that can be done to many runs at once.")
    found = runlist.chosen(request.user, request.POST, jobs.MOST_RUNS + 1)
    if len(found) > jobs.MOST_RUNS:
        messages.error(request, f"These are more than {jobs.MOST_RUNS:,} runs. Narrow the filter; nothing was changed.")
        return redirect(back_to(request) or "runs")
    left = reruns.to_requeue(found) if act == "requeue" else found
    if act in ("requeue", "cancel") and len(left) <= AT_ONCE:
        return at_once(request, act, left, len(found) - len(left))
    action, _, form = act.partition("_")
    key = storable_text(request.POST.get("once", "")) or secrets.token_hex(16)
    job = jobs.ask(action, left, user=request.user, key=f"{request.user.pk}:{key}", format=form, about=about(request))
    return redirect("job", job.pk)


ACTS = ("requeue", "cancel", "rerun", f"rerun_{jobs.LIVE}", f"rerun_{jobs.KEEP}", "export_csv", "export_jsonl")


@require_POST
def told_of_runs(request: HttpRequest) -> HttpResponse:
    """What the same form would do: what the question shows before it is answered. Nothing is done."""
    act = request.POST.get("act", "")
    if act not in ("requeue", "cancel", "rerun"):
        raise BadRequest("That repeats nothing.")
    found = runlist.chosen(request.user, request.POST, jobs.MOST_RUNS + 1)
    if len(found) > jobs.MOST_RUNS:
        return HttpResponse(f"These are more than {jobs.MOST_RUNS:,} runs. Narrow the filter first.", content_type="text/plain")
    return render(request, "runs/_many.html", {"told": many.told(act, found)})


def at_once(request: HttpRequest, name: str, found: list[int], over: int) -> HttpResponse:
    """Do it, and say to how many, and of how many. `over` were left out before."""
    act, word = (acts.requeue, "Requeued") if name == "requeue" else (acts.cancel, "Cancelled")
    done = sum(acts.changes(act, pk, request.user) for pk in found)
    level = messages.SUCCESS if done else messages.WARNING
    if done == len(found):
        text = f"{word} {done:,} run{'' if done == 1 else 's'}."
    else:
        text = f"{word} {done:,} of {len(found):,}; the others were not in a state for it."
    if over:
        text += f" {over:,} {'was' if over == 1 else 'were'} left out, since {'it was' if over == 1 else 'they were'} started again."
    messages.add_message(request, level, text)
    return redirect(back_to(request) or "runs")


def about(request: HttpRequest) -> str:
    """What was chosen, in the words of the filter."""
    if request.POST.get("all") != "1":
        return "Runs chosen one by one"
    query = Filter.of(request.POST).query()
    return f"All runs of the filter {unquote_plus(query)}" if query else "All runs"


def back_to(request: HttpRequest) -> str:
    """The page that the form names, if it is one of ours."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    return target if url_has_allowed_host_and_scheme(target, allowed_hosts=None) and target.startswith("/") else ""
