"""What the operators' commands share: the runs that a command line means, and answers as a table for people or as JSON Lines
for pipes."""

from __future__ import annotations

import json
import re
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet

from builder import runfilter
from builder.runfilter import Filter
from runtime import acts
from runtime.jobs import MOST_RUNS
from runtime.jsonvalues import written_decimal
from runtime.models import Run, Workflow

# What JSON may hold as it is, and a terminal obeys.
CONTROL = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Whoever may use the command line sees all teams.
EVERYBODY = SimpleNamespace(is_authenticated=True, is_active=True, is_superuser=True, pk=0)


class OperatorCommand(BaseCommand):
    """A command that answers with rows."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_const", const="json", dest="form", help="JSON Lines, as in a pipe")
        form.add_argument("--table", action="store_const", const="table", dest="form", help="a table, as on a terminal")

    def show(self, rows: Iterable[Mapping[str, Any]], form: str | None) -> None:
        """A table on a terminal, JSON Lines elsewhere, unless one was asked for."""
        if (form or ("table" if self.stdout.isatty() else "json")) == "json":
            for row in rows:
                self.stdout.write(CONTROL.sub(_escaped, json.dumps(row, ensure_ascii=False, default=plain)))
        else:
            for line in table(list(rows), shutil.get_terminal_size((160, 24)).columns):
                self.stdout.write(line)


class FilterCommand(OperatorCommand):
    """A command about the runs that a filter finds."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--state", choices=runfilter.STATES)
        parser.add_argument("--flow", help="name or number of the flow")
        parser.add_argument("--version-number", dest="version_number", help="number of the flow's version")
        parser.add_argument("--search", help="title, key, number, or what the flow lets its runs be found by")
        parser.add_argument("--error", help="kind of error: the error_kind of `runs`")
        parser.add_argument("--trigger", help="id of the trigger")
        parser.add_argument("--key", help="idempotency key")
        since = f"{', '.join(runfilter.SINCE)}, or a time such as 2026-05-11T17:48 or 2026-05-11"
        parser.add_argument("--since", help=since)
        parser.add_argument("--until", help="began before that time")
        parser.add_argument("--longer", help="seconds that it took at least")
        parser.add_argument("--dearer", help="US dollars that it cost at least")
        parser.add_argument("--tests", action="store_true", help="test runs too")

    def chosen(self, options: Mapping[str, Any]) -> Filter:
        """The filter of the run list. What makes no sense is refused here, not passed over."""
        names = {"state": "state", "search": "q", "error": "error", "trigger": "trigger", "key": "key", "since": "since",
                 "until": "until", "longer": "longer", "dearer": "dearer", "version_number": "version"}  # fmt: skip
        query = {short: options[name] for name, short in names.items() if options.get(name)}
        if "since" in query and query["since"] not in runfilter.SINCE:
            query["from"] = query.pop("since")
        if options.get("flow"):
            query["flow"] = str(flow_of(options["flow"]).pk)
        found = Filter.of(query | ({"tests": "1"} if options.get("tests") else {}))
        for short in query:
            if getattr(found, {"q": "search", **runfilter.NAMES}.get(short, short)) in ("", None):
                raise CommandError(f"“{query[short]}” is no {short} to look for.")
        return found

    def found(self, options: Mapping[str, Any]) -> QuerySet[Run]:
        return runfilter.matching(EVERYBODY, self.chosen(options))


class ActCommand(FilterCommand):
    """A command that does something to runs: those named, or all that a filter finds, which is confirmed."""

    act: Callable[..., bool]
    word = ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("runs", nargs="*", type=int, metavar="RUN", help="numbers; none: all that the filter finds")
        parser.add_argument("--user", help="in whose name it is noted in the audit trail")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *, runs: list[int], user: str | None, yes: bool, form: str | None, **options: Any) -> None:
        person = person_of(user)
        chosen = self.chosen(options)
        if not runs and not chosen.narrowed:
            raise CommandError("Name runs, or a filter such as --state failed.")
        meant = runs or self.meant(options)
        if not runs and not yes:
            self.confirm(len(meant))
        self.show(({"run": run, **self.done(run, person, options)} for run in meant), form)

    def meant(self, options: Mapping[str, Any]) -> list[int]:
        found = list(self.found(options).order_by("pk").values_list("pk", flat=True)[: MOST_RUNS + 1])
        if len(found) > MOST_RUNS:
            raise CommandError(f"These are more than {MOST_RUNS:,} runs. Narrow the filter.")
        return found

    def confirm(self, number: int) -> None:
        if not sys.stdin.isatty():
            raise CommandError(f"This would {self.word} {number:,} runs. Say --yes to do it.")
        if input(f"{self.word.capitalize()} {number:,} runs? [y/N] ").strip().lower() not in ("y", "yes"):
            raise CommandError("Nothing was changed.")

    def done(self, run: int, person: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """What became of one run."""
        try:
            changed, why = self.act_on(run, person, options), ""
        except (acts.NotPossible, Run.DoesNotExist) as wrong:
            changed, why = False, str(wrong)
        state = Run.objects.filter(pk=run).values_list("state", flat=True).first()
        return {"changed": changed, "state": state or "no such run", "why": why}

    def act_on(self, run: int, person: Any, options: Mapping[str, Any]) -> bool:
        raise NotImplementedError


def flow_of(text: str) -> Workflow:
    wanted = {"pk": int(text)} if text.isdecimal() else {"name": text}
    found = Workflow.objects.filter(deleted_at=None, **wanted)[:2]
    if len(found) != 1:
        raise CommandError(f"There {'is no flow' if not found else 'are several flows'} “{text}”. Give its number.")
    return found[0]


def person_of(name: str | None) -> Any:
    if name is None:
        return None
    person = get_user_model().objects.filter(username=name).first()
    if person is None:
        raise CommandError(f"There is no user “{name}”.")
    return person


def table(rows: list[Mapping[str, Any]], width: int) -> list[str]:
    """Columns as wide as their longest cell; the last is cut where the terminal ends."""
    if not rows:
        return ["Nothing found."]
    names = list(rows[0])
    cells = [[name.replace("_", " ") for name in names]] + [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[n]) for line in cells) for n in range(len(names))]
    return ["  ".join(text.ljust(size) for text, size in zip(line, widths, strict=True)).rstrip()[:width] for line in cells]


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return written_decimal(value)
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=plain)
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(str(value).split())[:60])


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else str(value)
