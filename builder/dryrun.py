"""Running one step on sample data without an effect: what it gives, what it would wait for, or what it would send.

It is the step's own code that runs. A step tells the journal of a call before it makes it, and there a dry run ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from runtime.definition import check, find
from runtime.expressions import ExpressionError, compile
from runtime.models import Credential, Run
from runtime.paths import key_of
from runtime.plan import PlanError, make_plan
from runtime.states import RunState
from runtime.steps import step_types
from runtime.steps.base import Attempt, Connection, Done, Outcome, Park, Part, Person, StepError, Stop

from .changewords import field_title

HIDDEN = "hidden"
SECONDS = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """`kind` is output, request, wait, end or failure; `value` is what it gives or would send, `text` says it in
    words."""

    kind: str
    text: str
    value: Any = None
    mails: tuple[dict[str, Any], ...] = ()
    field: str = ""


class Unsound(ValueError):
    """A config with which a step cannot run. `field` is the one that is wrong, dotted from the step, where it is one."""

    def __init__(self, message: str, field: str = ""):
        super().__init__(message)
        self.field = field


class WouldCall(Exception):
    """The step is about to call the outside."""

    def __init__(self, request: Any):
        super().__init__("would call")
        self.request = request


class Secret(dict):
    """Has every secret, and none of them."""

    def __missing__(self, key: str) -> str:
        return HIDDEN

    def get(self, key: str, default: Any = None) -> str:
        return HIDDEN

    def __contains__(self, key: object) -> bool:
        return True


@dataclass
class DryContext:
    """A `runtime.steps.base.Context` in which nothing is kept and nothing is sent."""

    step_id: str
    step_name: str
    config: dict[str, Any]
    names: dict[str, Any]
    connections: Mapping[str, Connection]
    run_id: int = 0
    path: str = ""
    take: int = 1
    test: bool = True
    kept: list[Part] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    created_at: datetime | None = None
    """Of a step of a run that was: then it has that run's key."""

    def evaluate(self, expression: str, **more: Any) -> Any:
        try:
            return compile(expression).evaluate({**self.names, **more})
        except ExpressionError as wrong:
            raise StepError(str(wrong)) from None

    async def connection(self, name: str) -> Connection:
        if name not in self.connections:
            raise StepError(f"There is no connection “{name}” in this team.", field="connection")
        return self.connections[name]

    def now(self) -> datetime:
        return datetime.now(UTC)

    def hide(self, secret: str) -> None:
        """Nothing is stored."""

    async def admit(self, key: str, per_minute: int) -> None:
        """Nothing is called."""

    def answered(self, response: Any, **spent: Any) -> None:
        """Nothing is called."""

    async def keep(self, value: Any, onward: str, response: Any) -> None:
        """Nothing is called."""

    async def check_budget(self) -> None:
        """Nothing is spent."""

    async def file(self, key: str) -> bytes:
        return b""

    async def people(self, name: str) -> list[Person]:
        return [Person(name)]

    async def starters(self) -> list[Person]:
        return []

    async def start_run(self, flow: str, body: Any) -> int:
        raise WouldCall({"flow": flow, "trigger": {"body": body}})

    async def begin(self, request: Any, operation: str = "call") -> Attempt:
        raise WouldCall(request)

    def idempotency_key(self, operation: str) -> str:
        if self.created_at is None:
            return "the same in every attempt"
        return key_of(self.run_id, self.created_at, self.path, self.take, operation)

    def log(self, text: str, level: str = "info", data: Any = None) -> None:
        self.lines.append(text)


def dry_run(
    definition: dict[str, Any], step_id: str, names: Mapping[str, Any], team_id: int, *,
    run: Run | None = None, path: str = "", take: int = 1,
) -> Shown:  # fmt: skip
    """What the step would do with these names; with a `run`, at a path and take of it."""
    step = find(definition, step_id)
    kind = step_types().get(step["type"]) if step else None
    if step is None or kind is None or kind.children:
        return Shown("failure", "This step cannot be tried alone.")
    try:
        config = rendered_config(step, names)
    except (ExpressionError, Unsound) as wrong:
        return not_filled_in(wrong)
    context = DryContext(step_id, step.get("name") or kind.label, config, dict(names), _connections(team_id))
    if run is not None:
        context.run_id, context.path, context.take = run.pk, path, take
        context.created_at, context.test = run.created_at, run.test
    return asyncio.run(_run(kind, context))


def _connections(team_id: int) -> dict[str, Connection]:
    """What may be known of the team's connections. The secrets are not even read."""
    rows = Credential.objects.filter(team_id=team_id).values_list("name", "kind", "hosts", "config")
    return {name: Connection(name, kind, tuple(hosts), config, Secret()) for name, kind, hosts, config in rows}


def rendered_config(step: dict[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The step's config with its templates filled in. Raises ExpressionError, and Unsound for a config that is not."""
    alone = {"format": 1, "name": "x", "steps": [{"id": step["id"], "type": step["type"], "config": step.get("config") or {}}]}
    try:
        plan = make_plan(alone)
    except PlanError as wrong:
        problem = next((problem for problem in check(alone) if not problem.warning), None)
        if problem is None:
            raise Unsound(str(wrong)) from None
        title = field_title(step["type"], problem.field.removeprefix("config."))
        raise Unsound(f"{title}: {problem.message}", problem.field) from None
    return plan.nodes[0].config.render(names)


def not_filled_in(wrong: ExpressionError | ValueError) -> Shown:
    if isinstance(wrong, ExpressionError):
        return Shown("failure", f"The sample data does not reach: {wrong}", field=".".join(("config", *map(str, wrong.path))))
    return Shown("failure", str(wrong), field=wrong.field if isinstance(wrong, Unsound) else "")


async def _run(kind: Any, context: DryContext) -> Shown:
    try:
        async with asyncio.timeout(SECONDS):
            return _told(await kind.run(context))
    except WouldCall as call:
        return Shown("request", "This is what it would send. Nothing was sent.", call.request)
    except StepError as wrong:
        return Shown("failure", wrong.message, field=wrong.field)
    except TimeoutError:
        return Shown("failure", f"It took longer than {SECONDS} seconds.")
    except Exception as bug:  # as in a run, where its author's fault fails the step and nothing else
        return Shown("failure", f"The step broke: {type(bug).__name__}: {bug}")


def _told(outcome: Outcome) -> Shown:
    match outcome:
        case Done():
            mails = tuple({"to": mail.recipient, **mail.payload} for mail in outcome.mails)
            return Shown("output", "It gives this." if not mails else "It would send this.", outcome.output, mails)
        case Park(question=question) if question is not None:
            value = {"question": question.subject, "approvers": list(question.approvers), "message": question.message}
            return Shown("wait", "It would ask this, and wait for the answer.", value)
        case Park():
            until = f"until {outcome.until.isoformat()}" if outcome.until else f"for {outcome.after}"
            return Shown("wait", f"It would wait {until}.")
        case Stop():
            word = "a success" if outcome.state == RunState.SUCCEEDED else "a failure"
            return Shown("end", f"It would end the run here, as {word}. {outcome.message}".strip(), outcome.output)
    return Shown("output", "It has run.", None)
