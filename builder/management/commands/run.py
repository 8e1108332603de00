"""`manage.py run 48213`: one run with its steps and waits."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from builder.commandline import OperatorCommand
from runtime.jobs import told
from runtime.models import Attempt, Run, StepResult, Wait
from runtime.states import WaitState

MOST_STEPS = 1_000


class Command(OperatorCommand):
    help = "Shows one run: its steps in the order of their ends, what it waits for, its error."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("run", type=int, metavar="RUN")

    def handle(self, *, run: int, form: str | None, **options: Any) -> None:
        found = Run.objects.select_related("workflow").prefetch_related("version").filter(pk=run).first()
        if found is None:
            raise CommandError(f"There is no run {run:,}.")
        steps, waits = steps_of(found), waits_of(found)
        if (form or ("table" if self.stdout.isatty() else "json")) == "json":
            self.show([told(found) | {"input": found.input, "output": found.output, "steps": steps, "waits": waits}], "json")
            return
        self.show([told(found)], "table")
        for title, rows in (("Steps", steps), ("Waits", waits)):
            if rows:
                self.stdout.write(f"\n{title}")
                self.show(rows, "table")


def steps_of(run: Run) -> list[dict[str, Any]]:
    """Results that stand. What calls nothing is tried once."""
    tries: dict[tuple[str, int], int] = {}
    for path, take in Attempt.objects.filter(run_id=run.pk).values_list("path", "take")[: 10 * MOST_STEPS]:
        tries[path, take] = tries.get((path, take), 0) + 1
    found = StepResult.objects.filter(run_id=run.pk, superseded=False).defer("input", "output").order_by("finished_at")
    return [
        {
            "path": row.path,
            "state": row.state,
            "take": row.take,
            "attempts": tries.get((row.path, row.take), 0 if row.state == "skipped" else 1),
            "finished": row.finished_at,
            "error": (row.error or {}).get("message", ""),
        }
        for row in found[:MOST_STEPS]
    ]


def waits_of(run: Run) -> list[dict[str, Any]]:
    found = Wait.objects.filter(run_id=run.pk, state__in=[WaitState.OPEN, WaitState.SUSPENDED]).order_by("pk")[:MOST_STEPS]
    return [{"wait": wait.pk, "path": wait.path, "kind": wait.kind, "state": wait.state, "due": wait.due_at} for wait in found]
