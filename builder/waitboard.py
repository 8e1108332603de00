"""Everything that waits, one line each, and the schedules: what will happen next, and when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from builder import access
from builder.editing.places import name_at
from runtime.clock import business_now
from runtime.models import Recipient, Run, Trigger, Wait
from runtime.states import WaitKind, WaitState

PER_PAGE = 50
SCHEDULES = 12
OVERDUE = timedelta(minutes=1)
"""A worker ends a wait within seconds: what is later than this is a sign that none does."""
WORDS = {
    WaitKind.APPROVAL: "Approval", WaitKind.TIMER: "Delay", WaitKind.RETRY: "Next attempt", WaitKind.CALLBACK: "Callback",
    WaitKind.PERSON: "A person's word", WaitKind.CHILD: "Another run",
}  # fmt: skip


def page(user: Any, kind: str, before: int | None) -> tuple[list[dict[str, Any]], int | None]:
    """Fifty open waits, newest first, and the key of the page after them."""
    waits = access.of_runs_for(user, Wait.objects.filter(state=WaitState.OPEN), access.OPERATOR)
    if kind:
        waits = waits.filter(kind=kind)
    if before is not None:
        waits = waits.filter(pk__lt=before)
    found = list(waits.order_by("-pk")[: PER_PAGE + 1])
    shown, now = found[:PER_PAGE], business_now()
    runs = Run.objects.select_related("workflow").prefetch_related("version").defer("input", "output")
    by_run = runs.in_bulk({wait.run_id for wait in shown})
    asked = _asked([wait.pk for wait in shown if wait.kind == WaitKind.APPROVAL])
    rows = [_row(wait, by_run[wait.run_id], asked.get(wait.pk, []), now) for wait in shown if wait.run_id in by_run]
    return rows, shown[-1].pk if len(found) > PER_PAGE else None


def _row(wait: Wait, run: Run, people: list[str], now: Any) -> dict[str, Any]:
    return {
        "wait": wait,
        "run": run,
        "step": name_at(run.version.definition, wait.path) or "The whole run",
        "word": WORDS.get(wait.kind, wait.kind),
        "whom": ", ".join(people[:2]) + (f" and {len(people) - 2} more" if len(people) > 2 else ""),
        "late": wait.due_at is not None and wait.due_at <= now,
        "overdue": wait.due_at is not None and wait.due_at <= now - OVERDUE,
        "timed": wait.due_at is not None and wait.kind in (WaitKind.TIMER, WaitKind.APPROVAL, WaitKind.CALLBACK),
    }


def _asked(approvals: list[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    people = Recipient.objects.filter(approval_id__in=approvals).order_by("pk")
    for approval, address in people.values_list("approval_id", "address"):
        found.setdefault(approval, []).append(address)
    return found


def schedules(user: Any) -> list[dict[str, Any]]:
    """The next starts by schedule; one whose time has come and that nobody fired is late."""
    now = business_now()
    mine = access.workflows_for(user, access.OPERATOR).filter(live_version__isnull=False)
    found = Trigger.objects.filter(enabled=True, next_at__isnull=False, workflow__in=mine)
    found = found.select_related("workflow").order_by("next_at")
    return [{"trigger": one, "late": one.next_at <= now, "paused": one.workflow.paused} for one in found[:SCHEDULES]]
