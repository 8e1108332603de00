"""`manage.py runs --state failed`: the latest runs that a filter finds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from builder import runlist
from builder.commandline import FilterCommand


class Command(FilterCommand):
    help = "Lists runs, newest first: a table on a terminal, JSON Lines in a pipe."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--limit", type=int, default=50, help="how many, 50 if not given")

    def handle(self, *, form: str | None, limit: int, **options: Any) -> None:
        found = self.found(options).select_related("workflow", "dispatch").prefetch_related("version").defer("input", "output")
        runs = list(found.order_by("-pk")[: max(1, limit)])
        places = runlist.standings(runs)
        self.show(
            (
                {
                    "run": run.pk,
                    "state": run.state if run.state != "open" else getattr(getattr(run, "dispatch", None), "state", "open"),
                    "flow": run.workflow.name,
                    "version": run.version.number,
                    "title": run.title,
                    "step": places[run.pk].step,
                    "started": run.created_at,
                    "ended": run.ended_at,
                    "cost": run.cost,
                    "where": "" if run.error else places[run.pk].words,
                    "error": (run.error or {}).get("message", ""),
                    "error_kind": (run.error or {}).get("kind", ""),
                }
                for run in runs
            ),
            form,
        )
