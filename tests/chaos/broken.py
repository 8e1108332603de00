"""Builds that are broken on purpose. The harness has to find out each of them, or it would not find out the real fault.

A worker is broken by importing this module: it is named to it as a module with step types, and patches what
CHAOS_BROKEN names. What is broken in the database is put there before the workers start. No product code knows of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from runtime.steps.set import STEP  # noqa: F401  the step type that this module has to have

GUARD = "select pg_get_functiondef('holdfast_guard'::regproc)"
SKEW_SECONDS = 3.0


@dataclass(frozen=True)
class Broken:
    """`caught`: the words of a breach, one of which must be among those that are found."""

    what: str
    caught: tuple[str, ...]
    worker: Callable[[], None] = lambda: None
    guard: tuple[str, str] | None = None
    """What is replaced by what in the journal's guard."""

    def in_the_database(self) -> None:
        from django.db import connection

        if self.guard:
            with connection.cursor() as cursor:
                cursor.execute(GUARD)
                (function,) = cursor.fetchone()
                cursor.execute(_replaced(function, *self.guard))


def _replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise LookupError(f"There is nothing to break any more: {old!r} is not in {text[:80]!r}…")
    return text.replace(old, new)


def _statement(kind: str, old: str, new: str) -> None:
    from runtime.journal_sql import ROWS

    ROWS[kind] = replace(ROWS[kind], body=_replaced(ROWS[kind].body, old, new))


def release_without_the_wakes_check() -> None:
    _statement("release", "and d.wakes = r.wakes", "")


def early_signals_are_dropped() -> None:
    _statement("early", "s.wait_id is null", "false")


def attempt_row_after_the_call() -> None:
    from runtime.states import AttemptOutcome
    from runtime.step_context import StepContext
    from runtime.steps.base import Attempt

    async def begin(self: StepContext, request: Any, operation: str = "call") -> Attempt:
        n = max((past.n for past in self.place.attempts), default=0) + 1
        if self.open:
            n = self.open[1] + 1
            self.lines.append(self.settled(AttemptOutcome.ANSWERED))
        dumped, token = self._execution.dump(request), self._execution.claim.token
        self.lines.append(("attempt", (*self.key, n, operation, token, dumped)))
        self.open = (operation, n)
        self.attempt_began_at = self._execution.services.now()
        return Attempt(n, self.idempotency_key(operation), self.node.timeout)

    StepContext.begin = begin


def key_that_changes() -> None:
    from runtime.step_context import StepContext

    stable = StepContext.idempotency_key
    StepContext.idempotency_key = lambda self, operation: f"{stable(self, operation)}-{len(self.place.attempts)}"


def runs_below_without_a_key() -> None:
    """And with a pause before it is noted which run that is, or hardly a kill would come between."""
    import asyncio

    from runtime.step_context import StepContext

    stable, start_run = StepContext.idempotency_key, StepContext.start_run

    async def slowly(self: StepContext, flow: str, body: Any) -> int:
        started = await start_run(self, flow, body)
        await asyncio.sleep(1)
        return started

    StepContext.start_run = slowly
    StepContext.idempotency_key = lambda self, operation: (
        f"{stable(self, operation)}-{self._execution.claim.token}" if operation == "start" else stable(self, operation)
    )


def timer_by_the_workers_clock() -> None:
    from datetime import timedelta

    from runtime.clock import WorkerClock

    right = WorkerClock.now
    WorkerClock.now = lambda self: right(self) + timedelta(seconds=SKEW_SECONDS)
    _statement("due", "and w.due_at <= (select holdfast_now())", "")


def live_leases_are_taken_back() -> None:
    from runtime import claims

    claims.TAKE_BACK = _replaced(
        claims.TAKE_BACK, "leased_until < (select at", "leased_until < (select at + interval '1 minute'"
    )


def unknown_is_repeated() -> None:
    from runtime import plan

    right = plan._Maker.node

    def node(self: Any, step: dict[str, Any]) -> Any:
        made = right(self, step)
        made.interrupted = "repeat"
        return made

    plan._Maker.node = node


BROKEN = {
    "no-token-guard": Broken(
        "the journal writes without looking whether the token still holds",
        ("written by one that did not hold the run",),
        guard=("if held <> cardinality(runs) then", "if false then"),
    ),
    "no-wakes-check": Broken(
        "a run is released without looking whether something happened to it meanwhile",
        ("has neither timer, nor wait, nor owner",),
        release_without_the_wakes_check,
    ),
    "no-lock": Broken(
        "a wait is registered without the run's lock",
        ("the answer was taken, and the callback still waits",),
        guard=(" for no key update of d", ""),
    ),
    "late-attempt": Broken(
        "the attempt's row is written after the call", ("and 0 attempts", "and 1 attempts"), attempt_row_after_the_call
    ),
    "changing-key": Broken(
        "the idempotency key changes between attempts", ("was called under", "was done"), key_that_changes
    ),
    "second-child": Broken(
        "whoever takes a run up starts what it runs below once more", ("started two runs",), runs_below_without_a_key
    ),
    "workers-clock": Broken(
        "timers go by the worker's clock, which is three seconds fast",
        ("woken before its time",),
        timer_by_the_workers_clock,
    ),
    "theft": Broken(
        "leases are taken back before they ran out",
        ("a lease was taken before it ran out",),
        live_leases_are_taken_back,
    ),
    "no-asking": Broken(
        "a call that may have happened is repeated whatever the step says", ("repeated although it may have happened",),
        unknown_is_repeated,
    ),
    "no-early-signals": Broken(
        "a signal that came before its wait is forgotten",
        ("the answer was taken, and the callback still waits",),
        early_signals_are_dropped,
    ),
}  # fmt: skip

if os.environ.get("CHAOS_BROKEN"):
    BROKEN[os.environ["CHAOS_BROKEN"]].worker()
