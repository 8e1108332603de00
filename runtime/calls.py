"""Calls to the outside: attempt after attempt until the step has an outcome, with at most one unsettled at any time.

A call that may have happened is repeated only where the step says so (`on_interrupted`), be it unknown after a time-out, a
reset, or the death of the worker that made it. Else a person is asked, and the run shows as needing attention.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from django.conf import settings
from pydantic import ValidationError

from . import failpoints
from .durations import parse_duration
from .execution import CLOCK_SLACK, Execution
from .expressions import ExpressionError, compile_value
from .journal import Refused, Row, StaleClaim
from .lanes import Group, LaneStopped, is_told_to_end
from .memory import PastAttempt, PastWait
from .states import AttemptOutcome, WaitKind, WaitState
from .step_context import StepContext
from .steps import step_types
from .steps.base import Done, Outcome, OverBudget, Part, StepError
from .storing import Unstorable
from .timelimits import TimeLimit

log = logging.getLogger(__name__)

INTERRUPTED = "The worker was lost during the call."
STOPPED = "The worker was stopped during the call, which did not end within its grace period."
MAY_HAVE_HAPPENED = (AttemptOutcome.UNKNOWN, AttemptOutcome.ANSWERED)
BUDGET = 0
"""The number of the wait for a person's word on the budget; uncertain attempts have their own numbers, from 1."""
SLACK = 5.0
"""Seconds that a step may take beyond its own time-out before it is ended from outside."""


class TakeAgain(Exception):
    """A person said: run it again. The step begins its next take."""


async def call(execution: Execution, ctx: StepContext, group: Group) -> Outcome:
    """Run an outside step from where its attempts stand. Raises StepError when it failed for good."""
    history = ctx.place.attempts
    if person := ctx.place.wait(WaitKind.PERSON, n=BUDGET):
        return _answered(await awaited(execution, person, group))
    _settle_open_checks(execution, ctx)
    await ctx.recall()
    while True:
        last = _last_call(history)
        if last is not None:
            done = await _after(execution, ctx, group, last)
            if done is not None:
                return done
        group.check()
        try:
            return await _try(execution, ctx)
        except StepError as error:
            await _settle(execution, ctx, error)
        except OverBudget as over:
            person = await _ask_for_money(execution, ctx, str(over))
            return _answered(await awaited(execution, person, group))


async def _try(execution: Execution, ctx: StepContext) -> Outcome:
    ctx.render()
    try:
        with TimeLimit(ctx.node.timeout + SLACK) as ctx.limit:
            outcome = await ctx.node.step.run(ctx)
    except TimeoutError:
        raise StepError(f"No answer within {ctx.node.timeout:g} s.", outcome=AttemptOutcome.UNKNOWN, retry=True) from None
    except (OverBudget, StaleClaim, LaneStopped):
        if ctx.open:  # between two calls: the last one has its answer, and no other follows
            execution.add(ctx.settled_as_answered())
        raise
    except (StepError, Refused, Unstorable):
        raise
    except (Exception, asyncio.CancelledError) as bug:
        if ctx.open is None or is_told_to_end(bug):
            if ctx.open and execution.claim.lost:  # the run may have ended: then nobody else settles it
                execution.add(ctx.settled(AttemptOutcome.UNKNOWN, error=STOPPED))
            raise
        about = {"run": execution.run.id, "step": ctx.path}
        log.exception("run %s: step %s broke after its call began", execution.run.id, ctx.path, extra=about)
        raise StepError(f"The step broke: {type(bug).__name__}: {bug}", outcome=AttemptOutcome.UNKNOWN) from bug
    finally:
        ctx.limit = None
    failpoints.hit("call.after")
    return outcome


async def _settle(execution: Execution, ctx: StepContext, error: StepError) -> None:
    """Write how the attempt ended; raise the error if nothing may follow."""
    if ctx.open is None:
        raise error
    n = ctx.open[1]
    failed = PastAttempt(n, ctx.open[0], error.outcome, error.message, ctx.attempt_began_at, execution.claim.token)
    rows: list[Row] = [ctx.settled(error.outcome, error, error.message), *ctx.lines]
    ctx.lines = []
    ctx.place.attempts.append(failed)
    if error.outcome == AttemptOutcome.UNKNOWN and ctx.node.interrupted != "repeat":
        rows.append(execution.log(ctx.path, f"Attempt {n} may have happened: {error.message}", "warning"))
        ctx.place.waits.append(await _ask_or_check(execution, ctx, failed, rows))
        return
    pause = _pause(execution, ctx, error)
    if pause is None:
        execution.add(*rows)
        raise error
    rows.append(execution.log(ctx.path, f"Attempt {n} failed: {error.message} Next try in {pause:.1f} s.", "warning"))
    ctx.place.waits.append(await register(execution, ctx, WaitKind.RETRY, n, rows, after=pause, data={"error": error.message}))


def _pause(execution: Execution, ctx: StepContext, error: StepError) -> float | None:
    if not error.retry and error.outcome != AttemptOutcome.UNKNOWN:
        return None
    return _next_pause(execution, ctx, error.retry_after)


def _next_pause(execution: Execution, ctx: StepContext, retry_after: float | None = None) -> float | None:
    """Seconds until the next attempt of this take, or None when the policy allows none. Each part has its own retries."""
    tries = [past for past in ctx.place.attempts if past.operation != "check" and past.n > max(ctx.parts, default=0)]
    failures = sum(past.error not in (None, INTERRUPTED, STOPPED) for past in tries)
    elapsed = (execution.services.now() - tries[0].started_at).total_seconds()
    return ctx.node.retry.pause(failures, elapsed, retry_after, settings.HOLDFAST_RETRY_AFTER_CAP)


async def _after(execution: Execution, ctx: StepContext, group: Group, last: PastAttempt) -> Outcome | None:
    """What follows an earlier attempt: None for another one, or the outcome without one."""
    if last.n in ctx.parts:
        return None
    if last.outcome is None:
        await _interrupted(execution, ctx, last)
    if retry := ctx.place.wait(WaitKind.RETRY, n=last.n):
        await awaited(execution, retry, group)
        return await _check(execution, ctx, last, group) if retry.data.get("check") else None
    if person := ctx.place.wait(WaitKind.PERSON, n=last.n):
        return _answered(await awaited(execution, person, group))
    if last.outcome in MAY_HAVE_HAPPENED and ctx.node.interrupted != "repeat":
        # Settled by an owner that had lost the run, and could not write what follows.
        ctx.place.waits.append(await _ask_or_check(execution, ctx, last, []))
        return await _after(execution, ctx, group, last)
    return None


async def _interrupted(execution: Execution, ctx: StepContext, last: PastAttempt) -> None:
    """An attempt found open under an old token: nobody knows whether it happened."""
    ctx.open, why = (last.operation, last.n), STOPPED if execution.claim.handed_back else INTERRUPTED
    rows: list[Row] = [
        ctx.settled(AttemptOutcome.UNKNOWN, error=why),
        execution.log(ctx.path, f"Attempt {last.n} was interrupted: {why}", "warning"),
    ]
    last.outcome, last.error = AttemptOutcome.UNKNOWN, why
    if ctx.node.interrupted == "repeat":
        execution.add(*rows)
    else:
        ctx.place.waits.append(await _ask_or_check(execution, ctx, last, rows))


def _settle_open_checks(execution: Execution, ctx: StepContext) -> None:
    """A question that was interrupted is asked again; only its row must not stay open."""
    for past in ctx.place.attempts:
        if past.operation == "check" and past.outcome is None:
            ctx.open = (past.operation, past.n)
            execution.add(ctx.settled(AttemptOutcome.UNKNOWN, error=INTERRUPTED))
            past.outcome, past.error = AttemptOutcome.UNKNOWN, INTERRUPTED


async def _ask_or_check(execution: Execution, ctx: StepContext, last: PastAttempt, rows: list[Row]) -> PastWait:
    if ctx.node.interrupted == "ask":
        return await _ask(execution, ctx, last, rows)
    check = ctx.node.interrupted["check"]
    elapsed = (execution.services.now() - last.started_at - CLOCK_SLACK).total_seconds()
    pause = max(
        parse_duration(check.get("after", "30s")).total_seconds(),
        ctx.node.timeout + execution.services.lease_seconds - elapsed,
    )
    return await register(execution, ctx, WaitKind.RETRY, last.n, rows, after=pause, data={"check": True})


async def _ask(execution: Execution, ctx: StepContext, last: PastAttempt, rows: list[Row]) -> PastWait:
    rows += [("attention", (execution.run.id,)), *await execution.title_rows()]
    data = {"reason": "uncertain", "attempt": last.n, "error": last.error or INTERRUPTED}
    return await register(execution, ctx, WaitKind.PERSON, last.n, rows, data=data)


async def _ask_for_money(execution: Execution, ctx: StepContext, words: str) -> PastWait:
    """A person has to say whether to go on: running it again is going on whatever it costs."""
    rows = [*ctx.lines, ("attention", (execution.run.id,)), *await execution.title_rows(), execution.log(ctx.path, words, "warning")]
    ctx.lines = []
    data = {"reason": "budget", "error": words}
    return await register(execution, ctx, WaitKind.PERSON, BUDGET, rows, data=data)


def _answered(outcome: dict[str, Any]) -> Outcome:
    match outcome.get("answer"):
        case "happened":
            return Done(outcome.get("output"), log=(f"{outcome.get('who') or 'A person'} said that it happened.",))
        case "again":
            raise TakeAgain
    raise StepError(f"{outcome.get('who') or 'A person'} said that this step failed.")


async def _check(execution: Execution, ctx: StepContext, last: PastAttempt, group: Group) -> Outcome | None:
    """Ask the other system whether the call happened. Whatever goes wrong there means: ask a person."""
    if person := ctx.place.wait(WaitKind.PERSON, n=last.n):
        return _answered(await awaited(execution, person, group))
    check = ctx.node.interrupted["check"]
    try:
        response = await _ask_the_other_system(execution, ctx, check["request"])
        happened = ctx.evaluate(check["happened"], response=response)
        if happened is True:
            output = ctx.evaluate(check["output"], response=response) if check.get("output") else response
            return Done(output, log=("The other system says that the call happened.",))
        if happened is not False:
            raise StepError("The check's expression is neither true nor false.", field="on_interrupted.check.happened")
    except StepError as wrong:
        rows: list[Row] = [execution.log(ctx.path, f"The check failed: {wrong.message}", "warning")]
        if ctx.open:
            n = ctx.open[1]
            rows.append(ctx.settled(wrong.outcome, wrong, wrong.message))
            ctx.place.attempts.append(PastAttempt(n, "check", wrong.outcome, wrong.message, ctx.attempt_began_at, 0))
        person = await _ask(execution, ctx, last, rows)
    else:
        ctx.log("The other system says that the call did not happen.")
        if _next_pause(execution, ctx) is None:
            raise StepError(f"{last.error or INTERRUPTED} The other system says that the call did not happen.")
        return None
    ctx.place.waits.append(person)
    return _answered(await awaited(execution, person, group))


async def _ask_the_other_system(execution: Execution, ctx: StepContext, request: dict[str, Any]) -> Any:
    """Make the check's request as an API call step would, as attempts of operation `check`."""
    http = step_types()["http"]
    try:
        asking = _CheckContext(ctx, request)
        with TimeLimit(ctx.node.timeout + SLACK) as ctx.limit:
            done = await http.run(asking)
    except (TimeoutError, ExpressionError, ValidationError) as wrong:
        raise StepError(str(wrong) or "No answer.", outcome=AttemptOutcome.UNKNOWN) from None
    finally:
        ctx.limit = None
    n = ctx.open[1]
    execution.add(ctx.settled(AttemptOutcome.ANSWERED, done))
    ctx.place.attempts.append(PastAttempt(n, "check", AttemptOutcome.ANSWERED, None, ctx.attempt_began_at, 0))
    return done.output


class _CheckContext:
    """The step's own context, but for the config, the name of the operation, and what is kept."""

    kept: list[Part] = []

    def __init__(self, ctx: StepContext, request: dict[str, Any]):
        http = step_types()["http"]
        self._ctx = ctx
        raw = http.Config.model_validate(request).model_dump(by_alias=True, mode="json")
        self.config = compile_value(raw).render(ctx.names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    async def begin(self, request: Any, operation: str = "call"):
        return await self._ctx.begin(request, "check")

    async def keep(self, value: Any, onward: str, response: Any) -> None:
        self._ctx.answered(response)

    def idempotency_key(self, operation: str) -> str:
        return self._ctx.idempotency_key("check")


def _last_call(history: list[PastAttempt]) -> PastAttempt | None:
    calls = [past for past in history if past.operation != "check"]
    return max(calls, key=lambda past: past.n, default=None)


async def awaited(execution: Execution, wait: PastWait, group: Group) -> dict[str, Any]:
    """The outcome of a wait, parked for if it is still open."""
    if wait.state == WaitState.RESOLVED:
        return wait.outcome
    return await execution.park(wait.id, wait.due_at, group)


async def register(
    execution: Execution, ctx: StepContext, kind: WaitKind, n: int, rows: list[Row], *, after: float | None = None,
    until: Any = None, data: dict[str, Any] | None = None, more: list[Row] | None = None,
) -> PastWait:
    """Make a wait durable, with what belongs to it. It may come back resolved, by a signal that came early."""
    execution.has_waits = True
    data = data or {}
    wait_row: Row = ("wait", (*ctx.key, kind, n, after, until, execution.dump(data, "What the wait keeps")))
    execution.registering += 1
    try:
        returned = await execution.commit(*rows, wait_row, *(more or []))
    finally:
        execution.registering -= 1  # the caller parks before anybody else gets a turn
    place = (ctx.path, ctx.take, kind, n)
    wait_id, *_, state, outcome, due_at = next(
        row for name, *row in returned if name == "wait" and tuple(row[1:5]) == place
    )
    for name, *row in returned:
        if name == "early" and row[0] == wait_id:
            state, outcome = WaitState.RESOLVED, row[1]
    return PastWait(wait_id, kind, n, state, outcome, data, due_at)
