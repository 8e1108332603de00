"""The state machines as constants. The code checks its moves against them and the database refuses rows outside them.

`runtime/README.md` draws them; a test holds drawing, constants and CHECK constraints together.
"""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    OPEN = "open"
    ATTENTION = "attention"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class DispatchState(StrEnum):
    READY = "ready"
    CLAIMED = "claimed"
    WAITING = "waiting"


class StepState(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class AttemptOutcome(StrEnum):
    NOT_SENT = "not_sent"
    REFUSED = "refused"
    ANSWERED = "answered"
    UNKNOWN = "unknown"


class WaitKind(StrEnum):
    TIMER = "timer"
    RETRY = "retry"
    APPROVAL = "approval"
    CALLBACK = "callback"
    CHILD = "child"
    PERSON = "person"


class WaitState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"


class OutboxState(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


class JobState(StrEnum):
    QUEUED = "queued"
    WORKING = "working"
    DONE = "done"
    STOPPED = "stopped"


class AlertKind(StrEnum):
    OLDEST = "oldest"
    FAILED = "failed"
    RATE = "rate"
    STUCK = "stuck"
    OVERDUE = "overdue"
    SILENT = "silent"
    OUTBOX = "outbox"
    COST = "cost"


UNFINISHED = (RunState.OPEN, RunState.ATTENTION)
FINISHED = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)

RUN_MOVES = {
    RunState.OPEN: {RunState.ATTENTION, RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED},
    RunState.ATTENTION: {RunState.OPEN, RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED},
    RunState.FAILED: {RunState.OPEN},
    RunState.CANCELLED: set(),
    RunState.SUCCEEDED: set(),
}

DISPATCH_MOVES = {
    DispatchState.READY: {DispatchState.CLAIMED, DispatchState.WAITING},
    DispatchState.CLAIMED: {DispatchState.READY, DispatchState.WAITING},
    DispatchState.WAITING: {DispatchState.READY, DispatchState.CLAIMED},
}

WAIT_MOVES = {
    WaitState.OPEN: {WaitState.RESOLVED, WaitState.CANCELLED, WaitState.SUSPENDED},
    WaitState.SUSPENDED: {WaitState.OPEN, WaitState.CANCELLED},
    WaitState.RESOLVED: set(),
    WaitState.CANCELLED: set(),
}

OUTBOX_MOVES = {
    OutboxState.QUEUED: {OutboxState.SENDING},
    OutboxState.SENDING: {OutboxState.SENT, OutboxState.QUEUED, OutboxState.FAILED},
    OutboxState.FAILED: {OutboxState.QUEUED},
    OutboxState.SENT: {OutboxState.QUEUED},
}


def values(states: type[StrEnum]) -> list[str]:
    return [state.value for state in states]
