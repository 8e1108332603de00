"""`manage.py rerun 48213 --live`, `rerun --state failed --flow Leads --live --yes`: start runs again from the top, or
with `--keep` from where they failed."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from builder.commandline import ActCommand
from runtime import acts
from runtime.jsonvalues import BadJson, loads_strict
from runtime.models import Run


class Command(ActCommand):
    help = "Starts a new run for each, with the same input, on its own version or on the live one, from the top or with results kept."
    word = "start again"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--live", action="store_true", help="on the flow's live version")
        parser.add_argument("--keep", action="store_true", help="with the results of the steps that ended, as far as they carry")
        parser.add_argument("--input", help="JSON: what expressions call trigger, instead of the same; for one run")

    def handle(self, **options: Any) -> None:
        if options["input"] and len(options["runs"]) != 1:
            raise CommandError("--input needs the number of one run.")
        options["given"] = read_input(options["input"]) if options["input"] else None
        super().handle(**options)

    def done(self, run: int, person: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        try:
            found = Run.objects.select_related("workflow__live_version").get(pk=run)
            version = found.workflow.live_version if options["live"] else None
            started, why = acts.rerun(found, user=person, version=version, input=options["given"], keep=options["keep"]), ""
        except (acts.NotPossible, Run.DoesNotExist) as wrong:
            started, why = None, str(wrong)
        return {"changed": started is not None, "new_run": started, "why": why}


def read_input(text: str) -> dict[str, Any]:
    try:
        value = loads_strict(text.encode(), root="input")
    except BadJson as wrong:
        raise CommandError(f"The input is no JSON: {wrong}") from None
    if not isinstance(value, dict):
        raise CommandError('The input has to be an object, such as {"body": {}}.')
    return value
