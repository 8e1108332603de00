"""One step of a run again, against new code or a new definition, with exactly the input that it had, and compared with
what the run has stored. A dry run, unless a test run of the step alone is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from runtime.definition import find
from runtime.expressions import ExpressionError, compile
from runtime.models import Attempt, Run, StepResult
from runtime.paths import step_of
from runtime.plan import PlanError
from runtime.plans import reason
from runtime.replay import NotRemembered, names_at
from runtime.tokens import without_signatures

from . import comparing
from .diff import FieldChange, differences
from .dryrun import Shown, dry_run, rendered_config
from .testruns import start_step_test

PINNED = "pinned"
"""The run's own version, by the code that runs now."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the run keeps of the step: `kind` as in `Shown`, output, request or failure; empty when it keeps nothing."""

    kind: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Rerun:
    """`stored` is what is compared with `shown`; `changes` is None where the two are of different kinds. `config` are
    changes of the filled-in settings, None where those are not stored."""

    side: comparing.Side
    shown: Shown
    stored: Stored
    changes: list[FieldChange] | None
    config: list[FieldChange] | None
    alone: bool
    """Whether it could be run for real, too."""
    failed: bool = False
    """Whether it failed in the run."""

    @property
    def repairs(self) -> bool:
        """Whether the step failed in the run, and would not now: it has to differ."""
        return self.failed and self.shown.kind != "failure"

    @property
    def same(self) -> bool | None:
        """None: the run keeps nothing that could be compared."""
        if self.changes is not None:
            return not self.changes and not self.config
        if self.stored.kind and "failure" in (self.stored.kind, self.shown.kind):
            return False
        return None if self.config is None else not self.config


def side_of(run: Run, key: str) -> comparing.Side | None:
    """The definition to take: pinned, live, draft, or a version's number."""
    version = run.version
    if key == PINNED:
        about = "as this run, by the code of now"
        return comparing.Side(PINNED, str(version), about, version.definition, version.created_by, version.created_at)
    if key == "live":
        key = str(run.workflow.live_version.number) if run.workflow.live_version else ""
    return comparing.side(run.workflow, key)


def rerun(run: Run, path: str, side: comparing.Side) -> Rerun:
    """Without an effect. Raises NotRemembered with the reason why it cannot be."""
    names = _names(run, path)
    step = find(side.definition, step_of(path))
    if step is None:
        raise NotRemembered(f"{side.title} has no step “{step_of(path)}”.")
    calls = Attempt.objects.filter(run_id=run.pk, path=path).exclude(operation="check")
    call = calls.order_by("-take", "n").first()
    if step["type"] == "condition":
        shown = _lane(step, names)
    else:
        take = call.take if call else 1
        shown = dry_run(side.definition, step["id"], names, run.workflow.team_id, run=run, path=path, take=take)
    result = StepResult.objects.filter(run_id=run.pk, path=path, superseded=False).first()
    stored = Stored("request", call.request) if call and shown.kind == "request" else _stored(result)
    shown, stored = (replace(one, value=without_signatures(one.value)) for one in (shown, stored))
    comparable = stored.kind == shown.kind and stored.kind in ("output", "request", "failure")
    changes = list(differences(*_told(stored, shown), "")) if comparable else None
    alone = shown.kind != "failure" and step["type"] != "condition" and not run.workflow.deleted_at
    return Rerun(side, shown, stored, changes, _config(step, names, result), alone, failed=result is not None and result.state == "failed")


def start(run: Run, path: str, side: comparing.Side, *, user: Any) -> int:
    """The step for real, as a test run of it alone. Returns the test run's number. Raises NotRemembered, ValueError,
    ExpressionError, DefinitionError."""
    names = _names(run, path)
    return start_step_test(run.workflow, side.definition, step_of(path), names, user=user).run_id


def against(run: Run, path: str, test_run: int) -> list[FieldChange] | None:
    """How what a test run gave differs from what the run has stored; None while there is nothing to compare."""
    rows = [
        StepResult.objects.filter(run_id=number, superseded=False, **where).first()
        for number, where in ((run.pk, {"path": path}), (test_run, {"step": step_of(path)}))
    ]
    if None in rows:
        return None
    told = [{"output": row.value, "error": (row.error or {}).get("message")} for row in rows]
    return list(differences(*without_signatures(told), ""))


def _names(run: Run, path: str) -> dict[str, Any]:
    """Without addresses of callbacks: who builds may have any expression take one to pieces, and may not answer by it. In their
    place stands what an address may be made of."""
    try:
        return without_signatures(names_at(run, path), "hidden")
    except PlanError as wrong:
        why = reason(run.version.definition, wrong)
        raise NotRemembered(f"This version of Holdfast cannot read {run.version}: {why}") from None


def _lane(step: dict[str, Any], names: dict[str, Any]) -> Shown:
    """Which lane a condition takes."""
    branches = step["branches"]
    for number, branch in enumerate(branches[:-1]):
        try:
            value = compile(branch["when"]).evaluate(names)
        except ExpressionError as wrong:
            return Shown("failure", str(wrong), field=f"branches.{number}.when")
        if type(value) is not bool:
            words = "The condition of a lane is neither true nor false."
            return Shown("failure", words, field=f"branches.{number}.when")
        if value:
            return Shown("output", "It takes this lane.", {"branch": branch["id"]})
    return Shown("output", "It takes this lane.", {"branch": branches[-1]["id"]})


def _stored(result: StepResult | None) -> Stored:
    if result is None:
        return Stored()
    if result.state == "failed":
        return Stored("failure", (result.error or {}).get("message", ""))
    return Stored("output", result.value)


def _told(stored: Stored, shown: Shown) -> tuple[Any, Any]:
    if shown.kind == "failure":
        return {"error": stored.value}, {"error": shown.text}
    return stored.value, shown.value


def _config(step: dict[str, Any], names: dict[str, Any], result: StepResult | None) -> list[FieldChange] | None:
    """Steps that call nothing keep their settings as they were filled in; of calls the request is kept instead."""
    if result is None or result.input is None:
        return None
    try:
        return list(differences(result.input, without_signatures(rendered_config(step, names)), ""))
    except (ExpressionError, ValueError):
        return None  # the dry run says so
