"""Works off jobs: requeue, cancel or start again many runs, or write them into a file.

A worker claims a job and takes a handful of its runs per transaction, in which the acts and the progress are committed
together: a worker that dies leaves no run half done and none done twice. Whoever comes next goes on where it stood.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import close_old_connections, connection, connections, transaction

from . import acts
from .jsonvalues import written_decimal
from .models import Job, JobPart, Membership, Role, Run
from .states import JobState

MOST_RUNS = 100_000
ACTS_AT_ONCE = 25
ROWS_AT_ONCE = {"csv": 500, "jsonl": 25}
"""Of JSON Lines fewer: each has an input and an output, which may have 1 MiB."""
KEPT_DAYS = 7
LIVE, KEEP = "live", "keep"
"""The forms of a new start on the live versions of the flows instead of on those of the runs; the second keeps what ended."""

# Nobody works it off. What is leased for longer than anybody leases is so by a clock that leapt back since.
FREE = """
state in ('queued', 'working')
and (leased_until is null or leased_until not between clock_timestamp() and clock_timestamp() + interval '2 minutes')
"""
JOBS_LEFT = f"select exists (select from job where {FREE})"
CLAIM = f"""
with next as (select id from job where {FREE} order by id limit 1 for update skip locked)
update job set state = 'working', token = nextval('claim_token'), leased_until = clock_timestamp() + interval '60 seconds'
from next where job.id = next.id returning job.id, job.token
"""
# The next runs of a job, its row locked. No row: another worker has it, or it was stopped.
TURN = """
select runs[done + 1 : done + %s], done, total from job where id = %s and token = %s and state = 'working' for update
"""
DONE = """
update job set done = %(done)s, changed = changed + %(changed)s, leased_until = clock_timestamp() + interval '60 seconds',
    state = case when %(done)s >= total then 'done' else state end,
    ended_at = case when %(done)s >= total then clock_timestamp() end
where id = %(job)s
"""
LET_GO = "update job set leased_until = null where id = %s and token = %s and state = 'working'"
FORGET = """
with old as (delete from act where at < clock_timestamp() - make_interval(days => %(days)s)), gone as materialized (
    select id from job where ended_at < clock_timestamp() - make_interval(days => %(days)s) limit 100
), parts as (
    delete from job_part using gone where job_id = gone.id
)
select id from gone
"""

COLUMNS = ("run", "flow", "version", "state", "title", "key", "trigger", "test", "created_at", "started_at", "ended_at",
           "duration_seconds", "cost", "error_step", "error")  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def ask(action: str, runs: list[int], *, user: Any, key: str, format: str = "", about: str = "") -> Job:
    """A job for these runs; with the key of an earlier one, that one."""
    given = {"action": action, "format": format, "about": about[:500], "user": user, "runs": runs, "total": len(runs)}
    given["teams"] = list(Run.objects.filter(pk__in=runs).order_by().values_list("workflow__team_id", flat=True).distinct())
    return Job.objects.get_or_create(key=key[:64], defaults=given)[0]


@transaction.atomic
def stop(job_id: int) -> bool:
    """No more runs have their turn; those that had it stay as they are."""
    job = Job.objects.select_for_update().filter(pk=job_id, state__in=[JobState.QUEUED, JobState.WORKING]).first()
    if job is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute("update job set state = 'stopped', ended_at = clock_timestamp() where id = %s", [job_id])
    return True


def work_off(stopping: Callable[[], bool]) -> bool:
    """Take one job to its end, or as far as there is time. Whether there was one."""
    close_old_connections()
    try:
        with connection.cursor() as cursor:
            cursor.execute(CLAIM)
            claimed = cursor.fetchone()
        if claimed is None:
            return False
        while turn(*claimed):
            if stopping():
                with connection.cursor() as cursor:
                    cursor.execute(LET_GO, claimed)
                break
        return True
    finally:
        connections.close_all()


@transaction.atomic
def turn(job_id: int, token: int) -> bool:
    """The next runs of a job. Whether more are left."""
    job = Job.objects.select_related("user").defer("runs").get(pk=job_id)
    if not permitted(job):
        stop(job_id)
        return False
    size = ROWS_AT_ONCE[job.format] if job.action == "export" else ACTS_AT_ONCE
    with connection.cursor() as cursor:
        cursor.execute(TURN, [size, job_id, token])
        row = cursor.fetchone()
        if row is None:
            return False
        runs, done, total = row
        changed = _export(job, done, runs) if job.action == "export" else sum(_act(job, run) for run in sorted(runs))  # as the journal locks them
        cursor.execute(DONE, {"done": done + len(runs), "changed": changed, "job": job_id})
    return bool(runs) and done + len(runs) < total


def permitted(job: Job) -> bool:
    """Whether its person may still do this: roles are taken away while jobs wait, and files are kept for days."""
    if not job.user.is_active or job.user.is_superuser:
        return job.user.is_active
    roles = Membership.objects.filter(user=job.user, team_id__in=job.teams, role__in=[Role.OPERATOR, Role.ADMIN])
    return roles.count() == len(job.teams)


def forget() -> None:
    """Files and keys of a week ago."""
    close_old_connections()
    try:
        with connection.cursor() as cursor:
            cursor.execute(FORGET, {"days": KEPT_DAYS})
            gone = [job for (job,) in cursor.fetchall()]
            cursor.execute("delete from job where id = any(%s)", [gone])
    finally:
        connections.close_all()


def _act(job: Job, run_id: int) -> bool:
    """One run's turn. What cannot be done to it is no reason to leave out the others."""
    try:
        with transaction.atomic():
            match job.action:
                case "requeue":
                    return acts.requeue(run_id, user=job.user)
                case "cancel":
                    return acts.cancel(run_id, user=job.user)
                case "rerun":
                    run = Run.objects.select_related("workflow__live_version").get(pk=run_id)
                    version = run.workflow.live_version if job.format in (LIVE, KEEP) else None
                    return bool(acts.rerun(run, user=job.user, version=version, keep=job.format == KEEP))
    except (acts.NotPossible, Run.DoesNotExist):
        return False
    raise ValueError(f"There is no act {job.action!r}.")


def _export(job: Job, done: int, runs: list[int]) -> int:
    found = Run.objects.filter(pk__in=runs).select_related("workflow").prefetch_related("version").order_by("pk")
    rows = list(found if job.format == "jsonl" else found.defer("input", "output"))
    text = json_lines(rows) if job.format == "jsonl" else csv_lines(rows, header=done == 0)
    JobPart.objects.create(job=job, n=done, text=text)
    return len(rows)


def json_lines(runs: Iterable[Run]) -> str:
    lines = [{**told(run), "input": run.input, "output": run.output} for run in runs]
    return "".join(json.dumps(line, ensure_ascii=False, default=_plain) + "\n" for line in lines)


def csv_lines(runs: Iterable[Run], header: bool) -> str:
    """A text that a spreadsheet would take for a formula is put into words by an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    if header:
        writer.writerow(COLUMNS)
    for run in runs:
        writer.writerow([cell(value) for value in told(run).values()])
    return out.getvalue()


def told(run: Run) -> dict[str, Any]:
    """A run as exports and the command line tell it, by the names of `COLUMNS`."""
    error = run.error or {}
    took = (run.ended_at - run.created_at).total_seconds() if run.ended_at else None
    return dict(zip(COLUMNS, (
        run.pk, run.workflow.name, run.version.number, run.state, run.title, run.idempotency_key or "", run.trigger_key,
        run.test, run.created_at, run.started_at, run.ended_at, took, run.cost, error.get("step") or "",
        error.get("message") or "",
    ), strict=True))  # fmt: skip


def cell(value: Any) -> Any:
    """A value as a cell of CSV."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return written_decimal(value)
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no JSON.")
