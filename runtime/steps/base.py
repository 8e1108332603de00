"""What a step type is: a config model, its words, and a coroutine that turns a context into an outcome.

A step type sees no ORM and no SQL. Everything it makes durable passes through its context.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from ..states import AttemptOutcome, RunState, WaitKind


class Config(BaseModel):
    """Base of every config model. Unknown keys are refused with their path."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Mail:
    """One message for the outbox. `payload` is `{"to": [...], "subject", "text", "html", ...}`, see `OutboxMessage`."""

    kind: str
    recipient: str
    payload: dict[str, Any]
    occurrence: int = 1


@dataclass(frozen=True, slots=True)
class File:
    """Bytes that are kept apart from the output, which names them by `key`; nobody can guess one."""

    key: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Done:
    """The step succeeded. `response` is stored with its last attempt; `cost` in US dollars, None where unknown or free."""

    output: Any = None
    response: Any = None
    cost: Decimal | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    mails: tuple[Mail, ...] = ()
    log: tuple[str, ...] = ()
    file: File | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody to ask: an address, and the account if there is one. `member_of` is the team for which they are asked, if they were
    named as a member of one: "@" for whoever is in the flow's own, else the number of the one whose operators were meant."""

    address: str
    user_id: int | None = None
    member_of: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """The approval behind a `Park(kind=approval)`. One recipient row and one mail is made per approver.

    `accounts` tells whose account an address is, `stages` when it is asked (1 where it is not named), `standby` who is
    asked when nobody answers. `rules` as in `models.Approval`.
    """

    subject: str
    approvers: tuple[str, ...]
    message: str = ""
    details: tuple[dict[str, Any], ...] = ()
    form: tuple[dict[str, Any], ...] = ()
    effects: dict[str, str] = field(default_factory=dict)
    policy: str = "any"
    on_expired: str = "reject"
    needed: int = 1
    accounts: dict[str, int] = field(default_factory=dict)
    stages: dict[str, int] = field(default_factory=dict)
    standby: tuple[str, ...] = ()
    rules: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Park:
    """The step waits. It ends by `after` (a length of business time) or `until` (an instant), or by somebody else."""

    kind: WaitKind
    after: timedelta | None = None
    until: datetime | None = None
    data: dict[str, Any] = field(default_factory=dict)
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The whole run ends here, in this state, with this message and output."""

    state: RunState
    message: str = ""
    output: Any = None


Outcome = Done | Park | Stop


class OverBudget(Exception):
    """What calls have cost is as much as they may: a person has to say whether to go on."""


class StepError(Exception):
    """The step failed, in words for the person who built it.

    `outcome` says how the attempt ended, if there was one; `retry` whether trying again may help; `retry_after` is the
    floor in seconds that the other side asked for. What stays None is decided by the interpreter from `outcome`.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        outcome: AttemptOutcome = AttemptOutcome.ANSWERED,
        retry: bool = False,
        retry_after: float | None = None,
        response: Any = None,
        cost: Decimal | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
    ):
        super().__init__(message)
        self.message, self.field = message, field
        self.outcome, self.retry, self.retry_after = outcome, retry, retry_after
        self.response, self.cost, self.tokens_in, self.tokens_out = response, cost, tokens_in, tokens_out


@dataclass(frozen=True, slots=True)
class Connection:
    """A credential, opened for one step. `config` may be shown (`base_url`, `model`), `secret` never."""

    name: str
    kind: str
    hosts: tuple[str, ...]
    config: Mapping[str, Any]
    secret: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One committed try. The key is the same in every attempt of a take; `timeout` is in seconds over the whole call."""

    n: int
    idempotency_key: str
    timeout: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what a step gives, and what leads to the next one, such as an address."""

    value: Any
    onward: str


class Context(Protocol):
    """What the interpreter hands to a step."""

    run_id: int
    path: str
    take: int
    step_id: str
    step_name: str
    test: bool
    config: dict[str, Any]
    """The config with its templates rendered and defaults filled. Expression fields keep their source text."""
    names: dict[str, Any]
    """What expressions may see: trigger, steps, loop, run, workflow."""
    kept: list[Part]
    """The parts that are there already, in order: the step goes on where the last one leads."""

    def evaluate(self, expression: str, **more: Any) -> Any:
        """Evaluate with the step's names and `more`. Raises StepError that names the step."""

    def idempotency_key(self, operation: str) -> str:
        """The key that `begin` gives for this operation, for those who store it with the request."""

    async def connection(self, name: str) -> Connection:
        """Open a credential of the workflow's team. Its secrets are masked in all that this run stores from now on."""

    async def begin(self, request: Any, operation: str = "call") -> Attempt:
        """Make the attempt's row durable, and with it everything before. Call the outside only after this returns."""

    def now(self) -> datetime:
        """Business time."""

    def hide(self, secret: str) -> None:
        """Mask a secret that was fetched in all that this run stores from now on."""

    async def admit(self, key: str, per_minute: int) -> None:
        """Wait until one more call of this kind is within the rate that all workers share. 0 admits at once."""

    def answered(self, response: Any, **spent: Any) -> None:
        """What the open attempt was answered and what it cost (`cost`, `tokens_in`, `tokens_out`), kept when the next one
        begins. `outcome` and `error` where it failed, and another attempt follows."""

    async def keep(self, value: Any, onward: str, response: Any) -> None:
        """The open attempt gave a part: durable, as an answered attempt, when this returns. What follows, be it after a
        failure or a death, finds it in `kept`, and its retries count anew."""

    async def check_budget(self) -> None:
        """Raise OverBudget when the run's or the day's budget is used up, unless a person said to go on."""

    async def file(self, key: str) -> bytes:
        """The content of a file that a step of this run gave. Raises StepError."""

    async def people(self, name: str) -> list[Person]:
        """Those whom `@account` or `team:name` means in a flow of this team. Raises StepError."""

    async def starters(self) -> list[Person]:
        """Who started the run, those that it goes back to as a sub-flow, and those that it was started after: who have accounts."""

    async def start_run(self, flow: str, body: Any) -> int:
        """Start a run of another flow of the team, once for each take of the step. Returns its id. Raises StepError."""

    def log(self, text: str, level: str = "info", data: Any = None) -> None:
        """Add a line to the run's log."""


class StepType(ABC):
    """One kind of step. Instances are stateless and shared; one module of `runtime/steps/` holds one of them."""

    type: ClassVar[str]
    label: ClassVar[str]
    icon: ClassVar[str]
    """The name of a drawing: one of the project's own, or of Lucide's."""
    category: ClassVar[str]
    summary: ClassVar[str]
    """One line for the picker: what it does."""
    also: ClassVar[str] = ""
    """What else it is looked for by, and what other products call it."""
    Config: ClassVar[type[Config]]
    example: ClassVar[dict[str, Any]] = {}
    """A config that works, for the palette and for a step just added."""
    children: ClassVar[str] = ""
    """`branches` for lanes, `steps` for a body, empty for a leaf."""
    outside: ClassVar[bool] = False
    """Whether it calls the outside: then it has attempts, retries, a time-out, and a rule for interruptions."""

    def line(self, config: Mapping[str, Any]) -> str:
        """What the card on the canvas says under the name, from the raw config, which may be incomplete."""
        return self.summary

    def interrupted(self, config: Mapping[str, Any]) -> str:
        """The default of `on_interrupted`: `repeat` or `ask`."""
        return "repeat"

    def doubts(self, step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """(field, words) of what can be saved and is going to fail, or does nothing. From the step as the definition has it; its
        config is sound."""
        yield from ()

    @abstractmethod
    async def run(self, ctx: Context) -> Outcome:
        """Do it. Raises StepError."""

    async def resume(self, ctx: Context, outcome: dict[str, Any], data: dict[str, Any]) -> Outcome:
        """Go on after the wait that `run` parked on. `outcome` as in `Wait.outcome`, `data` as it was parked with."""
        return Done(outcome)
