"""Approvals: the rows that ask, and the decision.

A decision takes the run's lock first, so that of two answers at the same instant one wins and the other is told who
won. The database keeps every answer; the wait is resolved by the one that settles the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.db import transaction

from . import audit, tokens, waits
from .clock import business_now
from .failpoints import hit
from .models import Approval, Decision, LogLine, Recipient, Run, Wait
from .states import WaitState
from .steps.base import Mail, Question
from .triggers.manual import read_form

LONGEST_COMMENT = 5_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
WORDS = {"approve": "approved", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class DecisionOutcome:
    """What became of an answer.

    `decided`: it settled the question. `recorded`: it counts, and others have to answer too. `already`: this person had
    answered before. `closed`: somebody else had settled it. `expired`, `ended`: too late. `invalid`: see `wrong`.
    `by`, `answer`, `at` and `comment` tell of the decision that stands.
    """

    state: Literal["decided", "recorded", "already", "closed", "expired", "ended", "invalid"]
    by: str = ""
    answer: str = ""
    at: datetime | None = None
    comment: str = ""
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        return self.state in ("decided", "recorded")


def rows_for(question: Question, run_id: int, path: str, take: int) -> list[tuple[str, str, str, str]]:
    """(address, nonce, key id, token hash) for each approver, each with a link of their own."""
    return [(address, *tokens.mint(run_id, path, take, address)) for address in question.approvers]


def mails_for(question: Question) -> tuple[Mail, ...]:
    """One message per approver. Link, expiry and the flow's name are put in at sending."""
    return tuple(_mail(question, address) for address in question.approvers)


def needed(question: Question) -> int:
    """How many have to approve."""
    return len(question.approvers) if question.policy == "all" else 1


def _mail(question: Question, address: str) -> Mail:
    payload = {
        "to": [address],
        "subject": question.subject,
        "text": question.message,
        "details": list(question.details),
        "others": [other for other in question.approvers if other != address],
        "policy": question.policy,
        "on_expired": question.on_expired,
    }
    return Mail("approval", address, payload)


def find(token: str) -> Recipient | None:
    """The recipient that a link belongs to. Unknown, malformed and forged tokens look the same."""
    return Recipient.objects.select_related("approval__wait").filter(token_hash=tokens.token_hash(token)).first()


@transaction.atomic
def decide(
    approval: Approval,
    answer: Literal["approve", "reject"],
    *,
    recipient: Recipient | None = None,
    user: Any = None,
    comment: str = "",
    form: Mapping[str, Any] | None = None,
    address: str | None = None,
) -> DecisionOutcome:
    """Record an answer, and wake the run when it settles the question.

    By link the `recipient` is known. A logged-in `user` answers as the approver of that address; one who is none of
    them (an operator: the caller has checked) settles the question in their place. `address` is the caller's network
    address, for the log. `form` holds what was posted, field id -> text.
    """
    values, wrong = _read(approval, answer, comment, form or {})
    if wrong:
        return DecisionOutcome("invalid", wrong=wrong)
    waits.lock(approval.run_id)
    wait = Wait.objects.get(pk=approval.pk)
    recipient = recipient or _approver(approval, user)
    if standing := _standing(approval, wait, recipient):
        return standing
    decision = Decision.objects.create(
        approval=approval, recipient=recipient, user=user, answer=answer, comment=comment, form=values, address=address,
        decided_by=recipient.address if recipient else _name(user), decided_at=business_now(),
    )  # fmt: skip
    _note(wait, decision)
    hit("decision.inside")
    if not _settles(approval, decision):
        return _told("recorded", decision)
    waits.resolve_locked(wait.pk, _outcome(approval, decision))
    return _told("decided", decision)


def _read(
    approval: Approval, answer: str, comment: str, form: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    if answer not in WORDS:
        return {}, {"answer": "Choose approve or reject."}
    if len(comment) > LONGEST_COMMENT or _UNSTORABLE.search(comment):
        return {}, {"comment": f"At most {LONGEST_COMMENT:,} characters of plain text."}
    if answer == "reject":
        return {}, {}
    return read_form(approval.form, {name: _posted(value) for name, value in form.items()})


def _posted(value: Any) -> str:
    """JSON clients send true, false and numbers where forms send text."""
    if value is True:
        return "on"
    return "" if value is False or value is None else str(value)


def _approver(approval: Approval, user: Any) -> Recipient | None:
    if user is None or not user.email:
        return None
    return approval.recipients.filter(address__iexact=user.email).first()


def _standing(approval: Approval, wait: Wait, recipient: Recipient | None) -> DecisionOutcome | None:
    """Why this answer comes too late, or None when the question is open and this person has not answered it."""
    last = approval.decisions.order_by("-pk").first()
    if wait.state != WaitState.OPEN:
        if wait.state == WaitState.RESOLVED and wait.outcome["by"] == "due":
            return DecisionOutcome("expired", at=wait.resolved_at)
        if wait.state == WaitState.RESOLVED and last is not None:
            return _told("already" if recipient and last.recipient_id == recipient.pk else "closed", last)
        return DecisionOutcome("ended", at=wait.resolved_at)
    earlier = approval.decisions.filter(recipient=recipient).first() if recipient else None
    if earlier is not None:
        return _told("already", earlier)
    if wait.due_at is not None and wait.due_at <= business_now():
        return DecisionOutcome("expired", at=wait.due_at)
    return None


def _settles(approval: Approval, decision: Decision) -> bool:
    if decision.answer == "reject" or decision.recipient_id is None:
        return True
    return approval.decisions.filter(answer="approve", recipient__isnull=False).count() >= approval.needed


def _outcome(approval: Approval, decision: Decision) -> dict[str, Any]:
    """What the step resumes with."""
    return {
        "by": "decision",
        "decision": WORDS[decision.answer],
        "who": decision.decided_by,
        "comment": decision.comment,
        "form": decision.form,
        "at": decision.decided_at.isoformat(),
        "decisions": [_listed(one) for one in approval.decisions.order_by("pk")],
    }


def _listed(decision: Decision) -> dict[str, Any]:
    return {
        "by": decision.decided_by,
        "decision": WORDS[decision.answer],
        "comment": decision.comment,
        "form": decision.form,
        "at": decision.decided_at.isoformat(),
    }


def _note(wait: Wait, decision: Decision) -> None:
    word = WORDS[decision.answer].capitalize()
    detail = {"decision": decision.pk, "comment": decision.comment, "by": decision.decided_by, "form": decision.form}
    LogLine.objects.create(
        run_id=wait.run_id, path=wait.path, at=decision.decided_at, text=f"{word} by {decision.decided_by}.",
        data={**detail, "address": decision.address},
    )  # fmt: skip
    team = Run.objects.filter(pk=wait.run_id).values_list("workflow__team_id", flat=True).first()
    audit.record(
        decision.answer,
        f"run:{wait.run_id}",
        actor=decision.user,
        team_id=team,
        detail=detail,
        address=decision.address,
    )


def _told(state: str, decision: Decision) -> DecisionOutcome:
    return DecisionOutcome(state, decision.decided_by, decision.answer, decision.decided_at, decision.comment)


def _name(user: Any) -> str:
    return user.email or user.get_username()
