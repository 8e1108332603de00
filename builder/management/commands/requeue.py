"""`manage.py requeue 48213`, `requeue --state failed --flow Leads --yes`, `requeue 48213 --from each[2]/deal`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError
from django.db.models import QuerySet

from builder.commandline import ActCommand
from builder.reruns import taken_over
from runtime import acts
from runtime.models import Run


class Command(ActCommand):
    help = "Lets failed runs go on at what failed, or one run run again from a step or iteration."
    word = "requeue"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        told = "the step's path, such as each[2]/deal; also of a run under way"
        parser.add_argument("--from", dest="path", metavar="PATH", help=told)

    def handle(self, **options: Any) -> None:
        if options["path"] and len(options["runs"]) != 1:
            raise CommandError("--from needs the number of one run.")
        super().handle(**options)

    def found(self, options: Mapping[str, Any]) -> QuerySet[Run]:
        """What later runs have taken over is left out: both would do the same thing."""
        return super().found(options).exclude(taken_over())

    def act_on(self, run: int, person: Any, options: Mapping[str, Any]) -> bool:
        if options["path"]:
            return acts.retry(run, options["path"], user=person)
        return acts.requeue(run, user=person)
