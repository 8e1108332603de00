"""Every component on one page, to be held against the design. `builder/gate.py` opens it to superusers."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe


@require_safe
def gallery(request: HttpRequest) -> HttpResponse:
    return render(request, "shell/components.html", _samples())


def _samples() -> dict[str, Any]:
    """What the components are shown with; the names are those of the pictures."""
    now = timezone.now()
    return {
        "states": ["running", "waiting", "attention", "failed", "succeeded", "cancelled", "queued", "skipped"],
        "kinds": KINDS,
        "times": [now - timedelta(minutes=14), now - timedelta(days=2, hours=6), now + timedelta(days=2, hours=4)],
        "spans": [0.04, 4.7, timedelta(minutes=3, seconds=2), timedelta(days=1, hours=4)],
        "costs": [Decimal("0.0041"), Decimal("3.67"), None],
        "lasts": ["succeeded"] * 8 + ["waiting", "succeeded", "succeeded", "failed", "failed", "succeeded", "running"],
        "hours": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 6],
        "output": OUTPUT,
        "filters": [
            {"label": "All", "url": "?", "count": 1541, "on": True},
            {"label": "Running", "url": "?state=running", "count": 14, "state": "running"},
            {"label": "Failed", "url": "?state=failed", "count": 12, "state": "failed"},
        ],
        "runs": [SimpleNamespace(**run) for run in RUNS],
        "tabs": [
            {"id": "input", "label": "Input", "selected": True},
            {"id": "attempts", "label": "Attempts", "count": 1},
            {"id": "setup", "label": "Setup", "count": 1, "bad": True},
        ],
        "board": {"blocking": True},
        "problems": [
            {"name": "Score above 70?", "words": "Rule 2 has no value to compare with"},
            {"name": "Create deal in CRM", "words": "Qualify lead returns no tier. Did you mean score?"},
        ],
        "choices": [{"label": "JSON", "url": "?json", "on": True}, {"label": "Table", "url": "?table"}],
    }


KINDS = [
    {"kind": "webhook", "name": "Webhook", "sub": "Trigger", "css": "step--trigger"},
    {"kind": "schedule", "name": "Schedule", "sub": "Trigger", "css": "step--trigger"},
    {"kind": "ai", "name": "AI step", "sub": "Classify, extract, write", "css": ""},
    {"kind": "http", "name": "API call", "sub": "Any HTTP endpoint", "css": ""},
    {"kind": "email", "name": "Email", "sub": "Connected mailbox", "css": ""},
    {"kind": "approval", "name": "Approval", "sub": "Ask people, wait", "css": ""},
    {"kind": "delay", "name": "Delay", "sub": "For a time, until a date", "css": ""},
    {"kind": "condition", "name": "Condition", "sub": "Lanes by rules", "css": "step--logic"},
    {"kind": "loop", "name": "Loop", "sub": "For each item", "css": "step--logic"},
    {"kind": "parallel", "name": "Parallel", "sub": "Lanes at the same time", "css": "step--logic"},
    {"kind": "workflow", "name": "Sub-flow", "sub": "Run another flow", "css": "step--logic"},
    {"kind": "set", "name": "Set", "sub": "Keep a value", "css": ""},
]

RUNS = [
    {
        "state": "running",
        "title": "Bramble Foods",
        "number": 49731,
        "place": "Qualify lead",
        "cost": None,
        "picked": False,
    },
    {
        "state": "failed",
        "title": "Tallis & Co",
        "number": 49725,
        "place": "Create deal",
        "cost": "0.0039",
        "picked": True,
    },
    {
        "state": "waiting",
        "title": "Halden Robotics",
        "number": 48213,
        "place": "Approve",
        "cost": "0.0041",
        "picked": False,
    },
]

OUTPUT = {
    "subject": "VIP outreach to Halden Robotics",
    "lead": {"name": "Priya Raman", "email": "priya.raman@halden.example", "employees": 480},
    "score": 82,
    "reason": "Series B, 480 staff, asked for pricing on the fleet plan, and they want to decide before the summer break, "
    "at the latest before June.",
    "hot": True,
    "markup": "<b>is shown, not run</b>",
    "needed": None,
}
