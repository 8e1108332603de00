"""`manage.py export --state failed --format csv > failed.csv`: all runs that a filter finds, with input and output as JSON."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from builder.commandline import FilterCommand
from runtime.jobs import ROWS_AT_ONCE, csv_lines, json_lines


class Command(FilterCommand):
    help = "Writes runs to the output, oldest first, however many: JSON Lines, or CSV."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--format", choices=["jsonl", "csv"], default="jsonl")

    def handle(self, *, format: str, **options: Any) -> None:
        runs = self.found(options).select_related("workflow").prefetch_related("version").order_by("pk")
        runs = runs if format == "jsonl" else runs.defer("input", "output")
        last, first = 0, True
        while rows := list(runs.filter(pk__gt=last)[: ROWS_AT_ONCE[format]]):
            self.stdout.write(json_lines(rows) if format == "jsonl" else csv_lines(rows, header=first), ending="")
            last, first = rows[-1].pk, False
