"""The search over everything: the pages, flows and runs that a person may see, by what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import F
from django.urls import reverse

from runtime.models import Run

from .access import workflows_for
from .context import RAIL
from .gate import admitted, rule_for
from .runfilter import Filter, matching
from .templatetags.formats import count

MOST = 6
"""Flows, and runs, that are shown; the lists have the rest."""
PAGES = (
    *RAIL,
    ("waits", "Waits", "clock"),
    ("sent_mail", "Sent mail", "mail"),
    ("alerts", "Alerts", "bell"),
    ("audit", "Audit trail", "history"),
    ("examples", "Example flows", "flows"),
    ("palette", "Steps and triggers", "help"),
    ("api_docs", "The API", "plug"),
    ("settings", "Teams and members", "settings"),
    ("account", "Your account", "user"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """`kind` is page, flow or run; of a run `state` is how it stands, of the others `icon` is set."""

    kind: str
    name: str
    about: str
    url: str
    icon: str = ""
    state: str = ""
    dispatch: str = ""


def found(user: Any, query: str) -> list[Hit]:
    """Flows first, then runs, then pages. Without a query: the flows that were changed last, and every page."""
    words = " ".join(query.replace("\x00", "").split())[:200]
    return [*_flows(user, words), *(_runs(user, words) if words else ()), *_pages(user, words)]


def _flows(user: Any, words: str) -> list[Hit]:
    flows = workflows_for(user).filter(name__icontains=words).select_related("team")
    return [
        Hit("flow", flow.name, f"Flow of {flow.team}", reverse("flow", args=[flow.pk]), icon="flows")
        for flow in flows.order_by(F("draft__updated_at").desc(nulls_last=True), "-pk")[:MOST]
    ]


def _runs(user: Any, words: str) -> list[Hit]:
    runs = matching(user, Filter(search=words, tests=True)).select_related("workflow", "dispatch").order_by("-pk")
    return [_run(run) for run in runs.defer("input", "output")[:MOST]]


def _run(run: Run) -> Hit:
    dispatch = getattr(run, "dispatch", None)
    number = f"Run {count(run.pk)}"
    return Hit(
        "run",
        run.title or number,
        f"{number} of {run.workflow.name}" if run.title else run.workflow.name,
        reverse("run", args=[run.pk]),
        state=run.state,
        dispatch=dispatch.state if dispatch else "",
    )


def _pages(user: Any, words: str) -> list[Hit]:
    return [
        Hit("page", label, "Page", reverse(name), icon=icon)
        for name, label, icon in PAGES
        if words.lower() in label.lower() and (rule := rule_for(name)) is not None and admitted(user, rule)
    ]
