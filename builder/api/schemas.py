"""What goes in and comes out of the API. OpenAPI is made from these."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, PlainSerializer

from runtime.jsonvalues import written_decimal

Definition = dict[str, Any]
Money = Annotated[Decimal, PlainSerializer(written_decimal)]


class In(Schema):
    """Unknown keys are refused: a misspelt one must not pass for a missing one."""

    model_config = ConfigDict(extra="forbid")


class ProblemOut(Schema):
    step: str = Field(description="The step's or trigger's id; empty for the workflow itself.")
    field: str
    message: str
    warning: bool = False


class ErrorText(Schema):
    message: str
    problems: list[ProblemOut]


class ErrorOut(Schema):
    error: ErrorText


class WhoOut(Schema):
    user: str
    teams: dict[str, str] = Field(description="Team name -> your role there.")


class WorkflowOut(Schema):
    id: int
    name: str
    team: str
    live_version: int | None = Field(description="The number of the version that new runs start on.")
    paused: bool
    created_at: datetime
    url: str


class WorkflowPage(Schema):
    items: list[WorkflowOut]
    next: str | None


class WorkflowIn(In):
    name: str = Field(min_length=1, max_length=200)
    team: str | None = Field(None, description="The owning team's name. Needed if you build in several teams.")


class ImportIn(In):
    definition: Definition
    team: str | None = None


class DraftOut(Schema):
    revision: int
    definition: Definition
    problems: list[ProblemOut] = Field(description="What stands in the way of publishing; warnings do not.")


class DraftIn(In):
    definition: Definition
    revision: int | None = Field(None, description="The revision that you changed. Without it the newest is replaced.")


class PublishIn(In):
    note: str = Field("", max_length=2000)
    revision: int | None = Field(None, description="Publish only if the draft is still at this revision.")


class VersionOut(Schema):
    number: int
    hash: str
    note: str
    created_at: datetime


class StartIn(In):
    input: Any = Field(None, description="What expressions see as trigger.body.")
    idempotency_key: str | None = Field(None, min_length=1, max_length=255, description="The same key starts one run.")
    trigger: str | None = Field(None, description="The id of the API or manual trigger to start.")


class StartedOut(Schema):
    run: int
    url: str
    created: bool = Field(description="False when this idempotency key had started the run before.")


class DroppedOut(Schema):
    run: int
    url: str
    created: bool
    dropped: bool
    error: ErrorText


class QueuedOut(Schema):
    before: int = Field(description="How many runs stand before it; counted up to 100.")
    why: str


class RunOut(Schema):
    id: int
    workflow: int
    version: int | None
    state: Literal["open", "attention", "succeeded", "failed", "cancelled"]
    title: str
    test: bool
    trigger: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cost: Money | None = Field(description="US dollars, where known.")
    url: str


class WaitOut(Schema):
    id: int
    path: str
    kind: str
    due_at: datetime | None
    created_at: datetime


class RunDetail(RunOut):
    input: Any
    output: Any
    error: Any
    waits: list[WaitOut] = Field(description="What it waits for now.")
    queued: QueuedOut | None = Field(None, description="Where it stands, while it waits for a slot of its flow.")


class RunPage(Schema):
    items: list[RunOut]
    next: str | None


class AttemptOut(Schema):
    n: int
    outcome: str | None = Field(description="Null while the call is in flight.")
    error: str | None
    request: Any
    response: Any
    cost: Money | None
    tokens_in: int | None
    tokens_out: int | None
    started_at: datetime
    ended_at: datetime | None


class StepOut(Schema):
    path: str
    step: str
    take: int
    state: str = Field(description="succeeded, failed, skipped; running while only attempts are known, cancelled when the run ended before the step.")
    input: Any
    output: Any
    output_size: int | None = Field(
        None, description="Bytes of a large output, of which `output` has only the numbers: read it by read_output."
    )
    error: Any
    cost: Money | None
    started_at: datetime
    finished_at: datetime | None
    superseded: bool
    kept_from: int | None = Field(None, description="The run that gave the result, where this one began with it.")
    attempts: list[AttemptOut]


class StepPage(Schema):
    items: list[StepOut]
    next: str | None


class CancelIn(In):
    why: str = Field("", max_length=2000)


class ChangedOut(Schema):
    changed: bool = Field(description="False when there was nothing to do; asking twice is no error.")
    state: str


class RerunIn(In):
    version: Literal["pinned", "live"] = Field("pinned", description="The version of the run, or the one that is live.")
    keep: bool = Field(
        False, description="Begin with the results of the steps that ended, up to the first that failed or was changed: not called again."
    )
    idempotency_key: str | None = Field(None, min_length=1, max_length=255, description="The same key starts one run.")


class ApprovalOut(Schema):
    id: int
    run: int
    path: str
    state: Literal["open", "resolved", "cancelled", "suspended"]
    subject: str
    message: str
    details: list[Any]
    form: list[Any]
    approvers: list[str]
    policy: str
    expires_at: datetime | None
    created_at: datetime
    decisions: list[dict[str, Any]]


class ApprovalPage(Schema):
    items: list[ApprovalOut]
    next: str | None


class DecisionIn(In):
    answer: Literal["approve", "reject"]
    comment: str = Field("", max_length=5000)
    form: dict[str, Any] = Field(default_factory=dict, description="Field id -> value, for the approval's form.")


class DecidedOut(Schema):
    state: Literal["decided", "recorded"] = Field(description="recorded: it counts, and others have to answer too.")
    by: str
    answer: str
    at: datetime


class SignalIn(In):
    name: str = Field(min_length=1, max_length=100, description="As the callback step names it.")
    key: str = Field(min_length=1, max_length=255, description="Which one is meant, such as an order's number.")
    payload: Any = Field(None, description="What the step gives as its output.")
    team: str = Field("", description="The team's name; needed when you are in several.")
    idempotency_key: str = Field("", max_length=255, description="The same key is the same signal; without one, the same payload.")
    test: bool = Field(False, description="For test runs, which take no other signals; without it, for all but these.")


class SignalOut(Schema):
    state: Literal["taken", "kept", "before"] = Field(
        description="taken: a run goes on with it. kept: for the run that will wait for it, 30 days. before: it came before."
    )
