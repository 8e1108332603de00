"""`manage.py replay Leads --against draft`: finished runs on another version, without any effect."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from builder import comparing
from builder.commandline import OperatorCommand, flow_of
from builder.replaying import Tally, compared, finished
from runtime.definition import DefinitionError, require
from runtime.models import Run, Workflow
from runtime.plan import PlanError
from runtime.plans import reason

AT_ONCE = 50


class Command(OperatorCommand):
    help = (
        "Runs finished runs of a version again on another one, without any effect: what called, waited or asked gives "
        "what it gave, the rest is evaluated anew. Lists every difference; the exit code is 1 when there is one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("flow", help="name or number of the flow")
        parser.add_argument("--of", default="", help="the version whose runs are taken; the live one if not given")
        parser.add_argument("--against", default=comparing.DRAFT, help="a version's number, or draft, the default")
        parser.add_argument("--run", type=int, action="append", dest="runs", help="only this run; several times")
        parser.add_argument("--limit", type=int, default=100, help="how many runs, the newest; 100 if not given")

    def handle(
        self, *, flow: str, of: str, against: str, runs: list[int] | None, limit: int, form: str | None, **_: Any
    ) -> None:
        workflow = flow_of(flow)
        of = of or (str(workflow.live_version.number) if workflow.live_version else "")
        taken, other = self.side(workflow, of, "--of"), self.side(workflow, against, "--against")
        try:
            require(other.definition)
        except DefinitionError as wrong:
            raise CommandError(f"{other.title} cannot be run: {wrong}", returncode=2) from None
        meant = finished(workflow, int(taken.key), max(1, limit), only=runs)
        if not meant:
            raise CommandError(f"There is no finished run of {taken.title} to replay.", returncode=2)
        self.differing, self.tally = 0, Tally(taken.definition, other.definition)
        self.show(self.told(meant, other.definition), form)
        words = f"{len(meant):,} run{'' if len(meant) == 1 else 's'} of {taken.title} on {other.title}"
        if self.differing:
            raise CommandError(f"{words}: {self.differing:,} would go another way.{self.where()}")
        self.stderr.write(f"{words}: no difference.")

    def side(self, workflow: Workflow, key: str, name: str) -> comparing.Side:
        side = comparing.side(workflow, key)
        if side is None or name == "--of" and not key.isdecimal():
            which = key or "that is live"
            raise CommandError(f"“{workflow}” has no version {which}: name another with {name}.", returncode=2)
        return side

    def where(self) -> str:
        """By step, in the order of the flow."""
        rows = ((row["name"], row["words"], row["runs"]) for row in self.tally.rows)
        return "".join(f"\n  {name} {words}: {runs:,} run{'' if runs == 1 else 's'}" for name, words, runs in rows)

    def told(self, meant: list[int], definition: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for first in range(0, len(meant), AT_ONCE):
            chosen = Run.objects.filter(pk__in=meant[first : first + AT_ONCE]).select_related("workflow", "version")
            for run in chosen.order_by("-pk"):
                try:
                    differences = compared(run, definition)
                except PlanError as wrong:
                    why = reason(run.version.definition, wrong)
                    words = f"This version of Holdfast cannot read {run.version}: {why}"
                    raise CommandError(words, returncode=2) from None
                self.differing += bool(differences)
                self.tally.add(differences)
                yield from map(asdict, differences)
