"""The context that a step runs in: its rendered config, its names, and the door to the journal."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from . import failpoints, limits, people, slots
from .execution import Execution
from .expressions import ExpressionError, compile
from .journal import Row, StaleClaim
from .lanes import Group, Scope
from .memory import FILE, VALUES, PastAttempt, Place
from .paths import key_from, key_of
from .plan import Node
from .states import AttemptOutcome
from .steps.base import Attempt, Connection, Done, OverBudget, Part, Person, StepError
from .storing import Unstorable
from .timelimits import StandingStill, TimeLimit
from .tokens import without_signatures

MORE_CALLS_SLACK = 5.0
# What this run has cost, and all runs of its flow that began today: found by their numbers, for of the days before nothing is read.
SPENT = """
select coalesce((select sum(cost) from attempt where run_id = %(run)s), 0),
       coalesce((select sum(cost) from run where workflow_id = %(workflow)s and cost is not null and created_at >= day.began and id > coalesce(
           (select id from run where workflow_id = %(workflow)s and created_at < day.began order by id desc limit 1), 0)), 0)
from (select date_trunc('day', holdfast_now(), 'UTC') as began) day
"""
DEEPEST_CHAIN = 10
# The flow that a step names, and how deep its run lies.
FLOW = """
select w.id, w.live_version_id, w.paused, run.depth from run join version v on v.id = run.version_id
join workflow w on w.id = holdfast_flow(%(team)s, %(name)s, v.created_at) where run.id = %(run)s
"""


class StepContext:
    """Implements `runtime.steps.base.Context`."""

    def __init__(self, execution: Execution, node: Node, path: str, scope: Scope, group: Group, place: Place):
        self._execution, self.scope, self._group, self.place = execution, scope, group, place
        self.node, self.path, self.names = node, path, scope.names
        self.run_id, self.step_id, self.step_name = execution.run.id, node.id, node.name
        self.test = execution.run.test
        self.take = place.take
        self.config: dict[str, Any] = {}
        self.began_at: datetime = execution.services.now()
        self.lines: list[Row] = []
        self.open: tuple[str, int] | None = None
        self.attempt_began_at = self.began_at
        self.limit: TimeLimit | None = None
        self.answer: tuple[AttemptOutcome, Done, str | None] | None = None
        self.parts: dict[int, Part] = {}
        """What is kept of this take, by the number of the attempt that gave it."""
        self.cost = None

    @property
    def key(self) -> tuple[int, str, str, int]:
        """The leading columns of the rows about this step."""
        return self.run_id, self.scope.path, self.path, self.take

    def render(self) -> None:
        """Render the config with the names as they are now. Raises StepError that names what could not be evaluated."""
        try:
            self.config = self.node.config.render(self.names)
        except ExpressionError as wrong:
            raise StepError(str(wrong), field=".".join(("config", *map(str, wrong.path)))) from None

    def evaluate(self, expression: str, **more: Any) -> Any:
        try:
            return compile(expression).evaluate({**self.names, **more} if more else self.names)
        except ExpressionError as wrong:
            raise StepError(str(wrong)) from None

    async def connection(self, name: str) -> Connection:
        execution = self._execution
        with self._off_the_clock():
            connection = await execution.services.connection(execution.plan.team_id, name)
        execution.masker.add(value for value in connection.secret.values() if isinstance(value, str))
        return connection

    def now(self) -> datetime:
        return self._execution.services.now()

    def hide(self, secret: str) -> None:
        self._execution.masker.add([secret])

    async def admit(self, key: str, per_minute: int) -> None:
        if not per_minute:
            return
        execution = self._execution
        key = f"team:{execution.plan.team_id}:{key}"
        with self._off_the_clock():
            while later := (await execution.services.query(limits.ADMIT, [key, limits.each(per_minute)]))[0][0]:
                self._group.check()
                await asyncio.sleep(min(5.0, max(0.01, later)))

    def answered(
        self, response: Any, *, outcome: AttemptOutcome = AttemptOutcome.ANSWERED, error: str | None = None, **spent: Any
    ) -> None:
        self.answer = outcome, Done(response=response, **spent), error

    @property
    def kept(self) -> list[Part]:
        return list(self.parts.values())

    async def recall(self) -> None:
        """Learn what earlier owners of the run kept, and the takes before that a person said to go on from."""
        if self.take > 1 or any(past.outcome == AttemptOutcome.ANSWERED and past.error is None for past in self.place.attempts):
            rows = await self._execution.services.query(VALUES, [self.run_id, self.path, self.take])
            self.parts = {n: Part(**part) for n, part in rows}

    async def keep(self, value: Any, onward: str, response: Any) -> None:
        execution, (operation, n) = self._execution, self.open
        if execution.masker.mask(onward) != onward:  # what is stored of it would lead nowhere
            return self.answered(response)
        try:
            text = execution.dump_output({"value": value, "onward": onward}, "What one call gave")
        except Unstorable as wrong:
            raise StepError(str(wrong)) from None
        rows = [self.settled(AttemptOutcome.ANSWERED, Done(response=response)), *self.lines]
        self.lines = []
        with self._off_the_clock():
            await execution.commit(*rows, ("value", (self.run_id, self.path, self.take, n, text)))
        past = PastAttempt(n, operation, AttemptOutcome.ANSWERED, None, self.attempt_began_at, execution.claim.token)
        self.place.attempts.append(past)
        self.parts[n] = Part(value, onward)

    async def check_budget(self) -> None:
        plan, execution = self._execution.plan, self._execution
        if self.take > 1 or plan.budget_run is None and plan.budget_day is None:
            return
        with self._off_the_clock():
            await execution.commit()  # what earlier calls cost may still be on its way
            rows = await execution.services.query(SPENT, {"run": self.run_id, "workflow": execution.run.workflow_id})
        run, day = map(float, rows[0])
        day += float(execution.spent or 0)  # which the run's own row learns at its release
        for spent, budget, what in ((run, plan.budget_run, "run"), (day, plan.budget_day, "day")):
            if budget is not None and spent >= budget:
                raise OverBudget(f"The budget of a {what} is ${budget:,.2f}, and ${spent:,.4f} is spent.")

    async def file(self, key: str) -> bytes:
        with self._off_the_clock():
            await self._execution.commit()  # it may still be on its way
            rows = await self._execution.services.query(FILE, [self.run_id, key])
        if not rows:
            raise StepError("The file is not there: only files of an earlier step of the same run, or of its form, can be sent.")
        return bytes(rows[0][0])

    async def people(self, name: str) -> list[Person]:
        return await people.named(self._execution.services, name, self._execution.plan.team_id)

    async def starters(self) -> list[Person]:
        return await people.starters(self._execution.services, self.run_id)

    async def start_run(self, flow: str, body: Any) -> int:
        execution = self._execution
        rows = await execution.services.query(FLOW, {"run": self.run_id, "team": execution.plan.team_id, "name": flow})
        if not rows:
            raise StepError(f"There is no flow “{flow}” in this team. Was it deleted?", field="flow")
        workflow_id, version_id, paused, depth = rows[0]
        if version_id is None or paused:
            raise StepError(f"The flow “{flow}” is {'paused' if paused else 'not published'}.", field="flow")
        if depth >= DEEPEST_CHAIN:
            raise StepError(f"Flows start each other {DEEPEST_CHAIN} deep here; deeper than that they may not.", field="flow")
        try:
            given = execution.dump({"body": body}, "What the flow is given")
        except Unstorable as wrong:
            raise StepError(str(wrong), field="input") from None
        lines, self.lines = self.lines, []
        key = self.idempotency_key("start")
        test = execution.run.test
        limit = None if test else (await execution.services.query(slots.LIMIT, [workflow_id]) or [None])[0]
        terms = slots.terms(limit, workflow_id, json.loads(given))
        if terms.note:
            lines.append(execution.log(self.path, terms.note, "warning"))
        row = ("child", (self.run_id, self.path, workflow_id, version_id, key, given, test, depth + 1, terms.priority,
                         terms.slot_of, terms.slot_key, terms.drops, terms.yields, terms.max_age))
        returned = await execution.commit(*lines, row)
        return next(found[2] for found in returned if found[0] == "child" and found[1] == self.path)

    async def begin(self, request: Any, operation: str = "call") -> Attempt:
        self._group.check()
        failpoints.hit("attempt.before")
        n = max((past.n for past in self.place.attempts), default=0) + 1
        further = bool(self.open or self.parts)
        if self.open:
            n = self.open[1] + 1
            self.lines.append(self.settled_as_answered())
        if further and self.limit is not None:  # the time-out is each call's own
            self.limit.restart(self.node.timeout + MORE_CALLS_SLACK)
        token = self._execution.claim.token
        try:
            dumped = without_signatures(self._execution.dump(request, "What is recorded of the request"))
        except Unstorable as wrong:
            raise StepError(str(wrong), outcome=AttemptOutcome.NOT_SENT) from None
        rows, self.lines = self.lines, []
        handed_over = time.monotonic()
        with self._off_the_clock():
            await self._execution.commit(*rows, ("attempt", (*self.key, n, operation, token, dumped)))
        self.open = (operation, n)
        self.attempt_began_at = self._execution.services.now()
        if time.monotonic() - handed_over > self._execution.services.lease_seconds / 2:
            await self._hold_still()
        failpoints.hit("attempt.after")
        return Attempt(n, self.idempotency_key(operation), self.node.timeout)

    async def _hold_still(self) -> None:
        """Raise StaleClaim if the run went elsewhere since the attempt's row was handed over, as when this process was stopped
        meanwhile: whoever has it now found the row, and may have asked already what became of a call that was not made yet."""
        execution = self._execution
        try:
            with self._off_the_clock():
                await execution.commit()
        except StaleClaim:
            execution.add(self.settled(AttemptOutcome.NOT_SENT, error="The lease was lost before the call."))
            raise

    def _off_the_clock(self) -> StandingStill | nullcontext:
        """The step's time-out stands still while the database is waited for: its absence is no fault of the call."""
        return self.limit.standing_still() if self.limit else nullcontext()

    def idempotency_key(self, operation: str) -> str:
        """The same in every attempt of a take; and as it was where that goes on with a call of another run."""
        if self.place.seed:
            return key_from(self.place.seed, operation)
        return key_of(self.run_id, self._execution.run.created_at, self.path, self.take, operation)

    def settled_as_answered(self) -> Row:
        """The row that settles the open attempt with what the step told of its answer (`answered`)."""
        (outcome, answer, error), self.answer = self.answer or (AttemptOutcome.ANSWERED, None, None), None
        return self.settled(outcome, answer, error)

    def settled(self, outcome: AttemptOutcome, done: Done | StepError | None = None, error: str | None = None) -> Row:
        """The row that settles the open attempt."""
        response = None
        if done is not None and done.response is not None:
            try:
                response = without_signatures(self._execution.dump(done.response, "What is recorded of the answer"))
            except Unstorable as wrong:
                error = error or str(wrong)
        cost = getattr(done, "cost", None)
        if cost is not None:
            self.cost = cost + (self.cost or 0)
            self._execution.spent = cost + (self._execution.spent or 0)
        masked = None if error is None else self._execution.words(error)
        _, n = self.open
        self.open = None
        return "settle", (*self.key, n, outcome, response, masked, cost,
                          getattr(done, "tokens_in", None), getattr(done, "tokens_out", None))

    def log(self, text: str, level: str = "info", data: Any = None) -> None:
        self.lines.append(self._execution.log(self.path, text, level, data))
