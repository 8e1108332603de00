"""`manage.py rerun_step 48213 each[2]/deal --against draft`: one step again, with the input that it had."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from builder import comparing, rerunning
from builder.commandline import OperatorCommand, person_of
from runtime.audit import record
from runtime.definition import DefinitionError
from runtime.expressions import ExpressionError
from runtime.models import Run, StepResult
from runtime.replay import NotRemembered
from runtime.states import UNFINISHED


class Command(OperatorCommand):
    help = (
        "Runs one step of a run again, alone, with exactly the input that it had, and compares what it gives with what "
        "the run has stored. Nothing is sent, unless --really says so. The exit code is 1 when something differs, but for a "
        "step that failed in the run and does not now."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("run", type=int, metavar="RUN")
        parser.add_argument("path", metavar="PATH", help="the step's path, as `run` shows it")
        parser.add_argument(
            "--against", default=rerunning.PINNED, help="pinned (the run's own, the default), live, draft or a number"
        )
        parser.add_argument("--really", action="store_true", help="with its effects: as a test run of the step alone")
        parser.add_argument("--wait", type=float, default=60, help="with --really: seconds until it has to have ended")
        parser.add_argument("--user", help="with --really: in whose name it is noted in the audit trail")

    def handle(
        self, *, run: int, path: str, against: str, really: bool, wait: float, user: str | None, form: str | None,
        **_: Any,
    ) -> None:  # fmt: skip
        found = Run.objects.select_related("workflow__team", "workflow__live_version", "version").filter(pk=run).first()
        if found is None:
            raise CommandError(f"There is no run {run:,}.", returncode=2)
        side = rerunning.side_of(found, against)
        if side is None:
            raise CommandError(f"The flow of run {run:,} has no version “{against}”.", returncode=2)
        try:
            told = self.really(found, path, side, wait, person_of(user)) if really else self.dry(found, path, side)
        except (NotRemembered, ExpressionError, ValueError, DefinitionError) as wrong:
            raise CommandError(str(wrong), returncode=2) from None
        self.show([{"run": run, "path": path, "code": side.title} | told], form)
        if told["same"] is False and told["repairs"]:
            self.stderr.write("It failed in the run, and does not any more.")
        elif told["same"] is False:
            raise CommandError("Not what the run has stored.")

    def dry(self, run: Run, path: str, side: comparing.Side) -> dict[str, Any]:
        rerun = rerunning.rerun(run, path, side)
        changes = [*(rerun.changes or []), *(rerun.config or [])]
        return {
            "same": rerun.same,
            "repairs": rerun.repairs,
            "does": rerun.shown.kind,
            "differences": [f"{one.field}: {one.before!r} -> {one.after!r}" for one in changes],
            "now": rerun.shown.value if rerun.shown.value is not None else rerun.shown.text,
            "stored": rerun.stored.value,
        }

    def really(self, run: Run, path: str, side: comparing.Side, wait: float, person: Any) -> dict[str, Any]:
        test = rerunning.start(run, path, side, user=person)
        detail = {"path": path, "code": side.title, "test": test}
        record("rerun_step", f"run:{run.pk}", actor=person, team_id=run.workflow.team_id, detail=detail)
        ends = time.monotonic() + wait
        state = "open"
        while state in UNFINISHED and time.monotonic() < ends:
            time.sleep(0.2)
            state = Run.objects.values_list("state", flat=True).get(pk=test)
        changes = rerunning.against(run, path, test)
        return {
            "same": None if changes is None else not changes,
            "repairs": state == "succeeded" and failed_there(run, path),
            "test_run": test,
            "state": state,
            "differences": [f"{one.field}: {one.before!r} -> {one.after!r}" for one in changes or []],
        }


def failed_there(run: Run, path: str) -> bool:
    return StepResult.objects.filter(run_id=run.pk, path=path, superseded=False, state="failed").exists()
