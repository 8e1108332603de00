"""How a call ended, when it did not end with an answer."""

from __future__ import annotations

import ssl

import httpcore2

from ..states import AttemptOutcome
from .addresses import Blocked
from .backend import NotFound


class CallFailed(Exception):
    """No usable answer. `outcome` says how far the call got, `retry` whether trying again may help, and `status` what
    the other side had said before its answer broke off, if it had; `timings` as those of an answer."""

    def __init__(self, message: str, outcome: AttemptOutcome, *, retry: bool, status: int | None = None):
        super().__init__(message)
        self.message, self.outcome, self.retry, self.status = message, outcome, retry, status
        self.timings: dict[str, float] = {}


class AnswerTooLarge(CallFailed):
    """There is an answer, of more bytes than were asked for at most."""


def from_exception(wrong: Exception, sent: bool) -> CallFailed:
    """Say what happened from where it happened. Before the first byte of the request nothing can have been done."""
    if isinstance(wrong, Blocked):
        return CallFailed(str(wrong), AttemptOutcome.NOT_SENT, retry=False)
    if isinstance(wrong, NotFound):
        return CallFailed(str(wrong), AttemptOutcome.NOT_SENT, retry=True)
    if isinstance(wrong, httpcore2.LocalProtocolError | UnicodeError):
        return CallFailed(f"The request cannot be sent: {wrong}", AttemptOutcome.NOT_SENT, retry=False)
    if not sent:
        return CallFailed(f"No connection: {words(wrong)}", AttemptOutcome.NOT_SENT, retry=True)
    return CallFailed(f"The connection broke: {words(wrong)}", AttemptOutcome.UNKNOWN, retry=True)


def words(wrong: BaseException) -> str:
    """The plainest cause in the chain."""
    chain: list[BaseException] = []
    step: BaseException | None = wrong
    while step is not None and step not in chain:
        chain.append(step)
        step = step.__cause__ or step.__context__
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate is not valid ({cause.verify_message})."
        if isinstance(cause, ssl.SSLError):
            return "TLS failed."
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused."
        if isinstance(cause, ConnectionResetError | BrokenPipeError):
            return "connection reset."
    if isinstance(wrong, httpcore2.TimeoutException):
        return "timed out."
    text = str(wrong) or str(chain[-1]) or type(wrong).__name__
    return text if text.endswith(".") else f"{text}."
