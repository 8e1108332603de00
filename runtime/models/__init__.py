"""The tables of the runtime, one file per subject."""

from .act import Act
from .alert import Alert
from .audit import AuditEntry
from .credential import Credential
from .former import FormerName
from .job import Job, JobPart
from .outbox import OutboxMessage
from .ratelimit import RateLimit
from .pause import Pause
from .run import Dispatch, Frame, FrameChunk, FrameValue, Run, RunEnd, RunSearch
from .step import Attempt, Blob, LogLine, StepFile, StepResult
from .team import Membership, Role, Team
from .trigger import Trigger
from .wait import Approval, Decision, NamedSignal, Recipient, Signal, Wait
from .worker import JournalMark, Worker
from .workflow import FlowLimit, Version, Workflow

__all__ = [
    "Act", "Alert", "Approval", "Attempt", "AuditEntry", "Blob", "Credential", "Decision", "Dispatch", "FlowLimit", "FormerName", "Frame",
    "FrameChunk", "FrameValue", "Job", "JobPart", "JournalMark", "LogLine", "Membership", "NamedSignal",
    "OutboxMessage", "Pause", "RateLimit", "Recipient", "Role", "Run", "RunEnd", "RunSearch", "Signal",
    "StepFile", "StepResult", "Team", "Trigger", "Version", "Wait", "Worker", "Workflow",
]
