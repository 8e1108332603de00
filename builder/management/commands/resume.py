"""`manage.py resume`: workers take up runs again, after `manage.py pause`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from builder.commandline import OperatorCommand, person_of
from runtime import pausing


class Command(OperatorCommand):
    help = "Resumes work after a pause."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--user", help="in whose name it is noted in the audit trail")

    def handle(self, *, user: str | None, form: str | None, **options: Any) -> None:
        done = pausing.resume(user=person_of(user))
        words = "Work goes on." if done else "It was not paused; nothing was changed."
        self.show([{"paused": False, "changed": done, "result": words}], form)
