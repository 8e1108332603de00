"""A context for one step, in memory: renders its config as the interpreter does and keeps what the step does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from runtime import net
from runtime.expressions import compile, compile_value
from runtime.masking import Masker
from runtime.steps import step_types
from runtime.steps.base import Attempt, Connection, Outcome, Part, Person, StepError

T = TypeVar("T")
RUN = {"id": 48213, "started_at": "2027-01-15T09:00:00Z", "test": False}


def on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own, and leave no connection behind."""

    async def with_pool() -> T:
        try:
            return await work
        finally:
            await net.close()

    return asyncio.run(with_pool())


@dataclass
class MemoryContext:
    """Implements `runtime.steps.base.Context`. `attempts` holds (operation, request) of each `begin`."""

    config: dict[str, Any]
    names: dict[str, Any]
    connections: dict[str, Connection] = field(default_factory=dict)
    timeout: float = 60.0
    path: str = "step"
    run_id: int = RUN["id"]
    take: int = 1
    step_id: str = "step"
    step_name: str = "Step"
    test: bool = False
    attempts: list[tuple[str, Any]] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    masker: Masker = field(default_factory=Masker)
    named: dict[str, list[Person]] = field(default_factory=dict)
    started_by: list[Person] = field(default_factory=list)
    admitted: list[tuple[str, int]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    kept: list[Part] = field(default_factory=list)
    at: datetime = datetime(2027, 1, 15, 9, 0, tzinfo=UTC)

    def evaluate(self, expression: str, **more: Any) -> Any:
        return compile(expression).evaluate({**self.names, **more})

    async def connection(self, name: str) -> Connection:
        if name not in self.connections:
            raise StepError(f"There is no connection “{name}”.", field="connection")
        self.masker.add(self.connections[name].secret.values())
        return self.connections[name]

    def now(self) -> datetime:
        return self.at

    def hide(self, secret: str) -> None:
        self.masker.add([secret])

    async def admit(self, key: str, per_minute: int) -> None:
        self.admitted.append((key, per_minute))

    def answered(self, response: Any, **spent: Any) -> None:
        self.answers.append((response, spent) if spent else response)

    async def keep(self, value: Any, onward: str, response: Any) -> None:
        self.kept.append(Part(value, onward))
        self.answers.append(response)

    async def check_budget(self) -> None:
        pass

    async def file(self, key: str) -> bytes:
        return self.files[key]

    async def people(self, name: str) -> list[Person]:
        return self.named[name]

    async def starters(self) -> list[Person]:
        return self.started_by

    async def start_run(self, flow: str, body: Any) -> int:
        self.attempts.append(("start", {"flow": flow, "body": body}))
        return len(self.attempts)

    async def begin(self, request: Any, operation: str = "call") -> Attempt:
        self.attempts.append((operation, request))
        return Attempt(len(self.attempts), self.idempotency_key(operation), self.timeout)

    def idempotency_key(self, operation: str) -> str:
        return f"hf-{self.run_id}-{operation}"

    def log(self, text: str, level: str = "info", data: Any = None) -> None:
        self.lines.append((level, text))


def context(step: str, config: dict[str, Any], *, trigger: Any = None, **more: Any) -> MemoryContext:
    """A context whose config was checked, filled with defaults and rendered, as the interpreter does it."""
    names = {
        "trigger": trigger or {},
        "steps": {},
        "run": RUN,
        "workflow": {"name": "Leads", "version": 1},
        "callbacks": {},
    }
    filled = step_types()[step].Config.model_validate(config).model_dump(by_alias=True, mode="json")
    return MemoryContext(compile_value(filled).render(names), names, **more)


def run_step(step: str, config: dict[str, Any], **more: Any) -> Outcome:
    """The outcome of one step. Raises StepError."""
    return run_in(step, context(step, config, **more))


def run_in(step: str, ctx: MemoryContext) -> Outcome:
    return on_loop(step_types()[step].run(ctx))
