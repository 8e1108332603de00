"""`manage.py resolve 48213 deal happened --output '{"status": 201, "headers": {}, "body": {"id": 7}}'`: a person's word on a
call that may have happened."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from builder.commandline import OperatorCommand, person_of
from runtime import acts
from runtime.jsonvalues import BadJson, loads_strict
from runtime.models import Run, Wait
from runtime.states import WaitKind, WaitState


class Command(OperatorCommand):
    help = "Says of a call that may have happened: it happened, run it again, or let the step fail; or skips a step."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("run", type=int, metavar="RUN")
        parser.add_argument("path", metavar="PATH", help="the step's path, as `run` shows it")
        parser.add_argument("answer", choices=["happened", "again", "fail", "skip"])
        parser.add_argument("--output", help="JSON: the step's output, for happened and skip")
        parser.add_argument("--user", help="in whose name it is noted in the audit trail")

    def handle(self, *, run: int, path: str, answer: str, output: str | None, **options: Any) -> None:
        person = person_of(options["user"])
        try:
            value = loads_strict(output.encode(), root="output") if output else None
            if answer == "skip":
                changed = acts.skip(run, path, value, user=person)
            else:
                changed = self.answer(run, path, answer, value, person)
        except (BadJson, acts.NotPossible) as wrong:
            raise CommandError(str(wrong)) from None
        state = Run.objects.filter(pk=run).values_list("state", flat=True).first()
        self.show([{"run": run, "path": path, "changed": changed, "state": state}], options["form"])

    def answer(self, run: int, path: str, answer: Any, value: Any, person: Any) -> bool:
        asked = Wait.objects.filter(run_id=run, path=path, kind=WaitKind.PERSON, state=WaitState.OPEN).first()
        if asked is None:
            raise CommandError(f"Nothing is asked at “{path}” of run {run:,}.")
        return acts.answer(asked.pk, answer, output=value, user=person)
