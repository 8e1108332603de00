"""`manage.py cancel 48213`: end runs now; with --as-failed so that a requeue can take them up again."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from builder.commandline import ActCommand
from runtime import acts


class Command(ActCommand):
    help = "Ends unfinished runs now. Needs nothing but their numbers."
    word = "cancel"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--why", default="", help="noted on the run")
        parser.add_argument("--as-failed", action="store_true", help="end as failed: a requeue takes them up where they stood")

    def act_on(self, run: int, person: Any, options: Mapping[str, Any]) -> bool:
        act = acts.force_fail if options["as_failed"] else acts.cancel
        return act(run, user=person, why=options["why"])
