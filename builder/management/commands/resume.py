"""`manage.py resume`: workers take up runs again, after `manage.py pause`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from builder.commandline import person_of
from runtime import pausing


class Command(BaseCommand):
    help = "Resumes work after a pause."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", help="in whose name it is noted in the audit trail")

    def handle(self, *, user: str | None, **options: Any) -> None:
        done = pausing.resume(user=person_of(user))
        self.stdout.write("Work goes on." if done else "It was not paused; nothing was changed.")
