"""What was asked for many runs at once: how far it is, and the file that it made. And filters that people keep."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from builder.live import digest
from builder.models import SavedFilter
from builder.runfilter import Filter
from runtime import jobs
from runtime.models import Job, JobPart
from runtime.states import JobState

LISTED = 50
MOST_FILTERS = 50
WORDS = {"requeue": "Requeue", "cancel": "Cancel", "rerun": "Start again", "export": "Export"}
FILES = {"csv": ("text/csv; charset=utf-8", "csv"), "jsonl": ("application/x-ndjson", "jsonl")}
SHOWN = {JobState.QUEUED: "queued", JobState.WORKING: "running", JobState.DONE: "succeeded", JobState.STOPPED: "cancelled"}


@require_safe
def job_list(request: HttpRequest) -> HttpResponse:
    """The person's own, latest first."""
    found = Job.objects.filter(user=request.user).select_related("user").defer("runs").order_by("-pk")[:LISTED]
    return render(request, "runs/jobs.html", {"jobs": [shown(job) for job in found if jobs.permitted(job)], "section": "runs"})


@require_safe
def job_page(request: HttpRequest, job_id: int) -> HttpResponse:
    """With `HX-Request` only what changes; it stops asking at the end."""
    context = shown(own(request, job_id))
    part = bool(request.headers.get("HX-Request"))
    response = render(request, "runs/_job.html" if part else "runs/job.html", context)
    response["ETag"] = f'"{digest(response.content.decode())}"'
    if part and context["ended"]:
        response["Hf-Live"] = "stop"
    return response


@require_POST
def job_stop(request: HttpRequest, job_id: int) -> HttpResponse:
    if jobs.stop(own(request, job_id).pk):
        messages.success(request, "Stopped. Runs that had their turn stay as they are.")
    else:
        messages.warning(request, "It had ended before.")
    return redirect("job", job_id)


@require_safe
def job_file(request: HttpRequest, job_id: int) -> StreamingHttpResponse:
    job = own(request, job_id)
    if job.action != "export" or job.state != JobState.DONE:
        raise Http404("There is no file yet.")
    kind, ending = FILES[job.format]
    response = StreamingHttpResponse(parts(job), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="runs-{job.pk}.{ending}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def parts(job: Job) -> Iterator[str]:
    """One piece at a time, so that a long file is never held as a whole."""
    for pk in JobPart.objects.filter(job=job).order_by("n").values_list("pk", flat=True):
        yield JobPart.objects.values_list("text", flat=True).get(pk=pk)


def own(request: HttpRequest, job_id: int) -> Job:
    """Of runs of teams in which the person is still operator."""
    job = Job.objects.filter(pk=job_id, user=request.user).select_related("user").defer("runs").first()
    if job is None or not jobs.permitted(job):
        raise Http404("You have asked for no such thing.")
    return job


def shown(job: Job) -> dict[str, object]:
    word = {"csv": "Export as CSV", "jsonl": "Export as JSON Lines", jobs.LIVE: "Start again on the live version",
            jobs.KEEP: "Continue on the live version"}.get(job.format) or WORDS[job.action]
    ended = job.state in (JobState.DONE, JobState.STOPPED)
    left = job.done - job.changed
    return {"job": job, "word": word, "ended": ended, "state": SHOWN[job.state], "left": left, "file": job.action == "export"}


# Saved filters


@require_POST
def filter_save(request: HttpRequest) -> HttpResponse:
    """Keep a filter by a name; the same name again is another filter from then on."""
    chosen = Filter.of(dict(pair for pair in request.POST.items() if isinstance(pair[1], str)))
    name = " ".join(request.POST.get("name", "").replace("\x00", "").split())[:60]
    address = f"{reverse('runs')}?{chosen.query()}"
    mine = SavedFilter.objects.filter(user=request.user)
    if not name:
        messages.error(request, "Give the filter a name.")
    elif not chosen.narrowed:
        messages.error(request, "Choose something first: this shows all runs.")
    elif mine.exclude(name=name).count() >= MOST_FILTERS:
        messages.error(request, f"You keep {MOST_FILTERS} filters already. Remove one first.")
    else:
        mine.update_or_create(name=name, defaults={"user": request.user, "query": chosen.query()})
        messages.success(request, f"Saved as “{name}”.")
    return redirect(address)


@require_POST
def filter_delete(request: HttpRequest, filter_id: int) -> HttpResponse:
    SavedFilter.objects.filter(pk=filter_id, user=request.user).delete()
    return redirect("runs")
