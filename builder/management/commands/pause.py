"""`manage.py pause`: no worker takes up a run any more, until `manage.py resume`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from builder.commandline import OperatorCommand, person_of
from runtime import pausing


class Command(OperatorCommand):
    help = "Pauses all work, of all teams: workers finish what they hold, and take up nothing more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--why", default="", help="shown to everybody while it lasts")
        parser.add_argument("--user", help="in whose name it is noted in the audit trail")

    def handle(self, *, why: str, user: str | None, form: str | None, **options: Any) -> None:
        done = pausing.pause(user=person_of(user), why=why)
        words = "All work is paused." if done else "It was paused already; nothing was changed."
        self.show([{"paused": True, "changed": done, "result": words}], form)
