"""Approvals: the rows that ask, and the decision.

A decision takes the run's lock first, so that of two answers at the same instant one wins and the other is told who
won. The database keeps every answer; the wait is resolved by the one that settles the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import Q

from . import asking, audit, tokens, waits
from .clock import business_now
from .failpoints import hit
from .models import Approval, Decision, LogLine, OutboxMessage, Recipient, Run, Wait
from .mail_addresses import BadAddress, check_address
from .people import still_asked
from .states import WaitState
from .steps.base import Mail
from .triggers.manual import read_form

LONGEST_COMMENT = 5_000
REMINDED_EVERY = timedelta(minutes=10)
"""Nobody is written to more often by people who press the button."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
WORDS = {"approve": "approved", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class DecisionOutcome:
    """What became of an answer.

    `decided`: it settled the question. `recorded`: it counts, and others have to answer too. `already`: this person had
    answered before. `closed`: somebody else had settled it. `expired`, `ended`: too late. `early`: it is not their turn.
    `handed`: somebody else was asked in their place. `left`: they were asked as a member, which they are no more. `own`: they started the run, and may not approve it. `sign_in`: a
    link is not enough. `invalid`: see `wrong`.
    `by`, `answer`, `at` and `comment` tell of the decision that stands.
    """

    state: Literal["decided", "recorded", "already", "closed", "expired", "ended", "early", "handed", "left", "own", "sign_in", "invalid"]
    by: str = ""
    answer: str = ""
    at: datetime | None = None
    comment: str = ""
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        return self.state in ("decided", "recorded")


def find(token: str) -> Recipient | None:
    """The recipient that a link belongs to. Unknown, malformed and forged tokens look the same, and so do those of people
    whose accounts were switched off since: their mailboxes may be read by others, and by them."""
    found = Recipient.objects.select_related("approval__wait").filter(token_hash=tokens.token_hash(token)).first()
    return None if found is None or _switched_off(found) else found


def _switched_off(recipient: Recipient) -> bool:
    """Whether there is an account for the person, and none that is active. Most approvers have none, and need none."""
    whose = {"pk": recipient.user_id} if recipient.user_id else {"email__iexact": recipient.address}
    states = set(get_user_model().objects.filter(**whose).values_list("is_active", flat=True))
    return states == {False}


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
    if approval.rules.get("sign_in") and user is None:
        return DecisionOutcome("sign_in")
    if answer == "approve" and (started_by(approval, user) or recipient and started_by(approval, recipient.user)):
        return DecisionOutcome("own")
    hit("decision.before")
    waits.lock(approval.run_id)
    wait = Wait.objects.filter(pk=approval.pk).first()
    if wait is None:
        return DecisionOutcome("ended")  # and kept no longer
    approval.refresh_from_db(fields=["stage"])
    recipient = recipient or approver(approval, user)
    if standing := _standing(approval, wait, recipient):
        if recipient is not None and standing.answer not in ("", answer):
            _note_contradiction(wait, recipient, answer, standing, address)
        return standing
    decision = Decision.objects.create(
        approval=approval, recipient=recipient, user=user, answer=answer, comment=comment, form=values, address=address,
        decided_by=recipient.address if recipient else _name(user), decided_at=business_now(),
    )  # fmt: skip
    _note(wait, decision)
    hit("decision.inside")
    transaction.on_commit(lambda: hit("decision.after"))
    if not _settles(approval, decision):
        if approval.policy == "ordered" and answer == "approve":
            _next_turn(approval, wait)
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
        missing = approval.rules.get("comment") and not comment.strip()
        return {}, {"comment": "Say why you reject it."} if missing else {}
    return read_form(approval.form, {name: _posted(value) for name, value in form.items()})


def _posted(value: Any) -> str:
    """JSON clients send true, false and numbers where forms send text."""
    if value is True:
        return "on"
    return "" if value is False or value is None else str(value)


def started_by(approval: Approval, user: Any) -> bool:
    """Whether this person started the run, and may therefore not approve it."""
    return user is not None and user.pk in (*approval.rules.get("starters", ()), approval.rules.get("starter"))


def has_left(approval: Approval, recipient: Recipient) -> bool:
    """Whether they were asked as a member of a team, and are none any more. Their link may still be in their mailbox."""
    member_of = (approval.rules.get("members") or {}).get(recipient.address)
    if not member_of:
        return False
    team = Run.objects.values_list("workflow__team_id", flat=True).get(pk=approval.run_id)
    with connection.cursor() as cursor:
        cursor.execute(*still_asked(recipient.user_id, member_of, team))
        return cursor.fetchone() is None


def approver(approval: Approval, user: Any) -> Recipient | None:
    """The person's place among those asked: by the account, else by its address."""
    if user is None:
        return None
    mine = Q(user=user) | Q(address__iexact=user.email) if user.email else Q(user=user)
    return approval.recipients.filter(mine).order_by("handed_to", "pk").first()


def _standing(approval: Approval, wait: Wait, recipient: Recipient | None) -> DecisionOutcome | None:
    """Why this answer comes too late, or None when the question is open and this person has not answered it."""
    last = approval.decisions.order_by("-pk").first()
    if wait.state != WaitState.OPEN:
        if wait.state == WaitState.RESOLVED and wait.outcome["by"] == "due":
            return DecisionOutcome("expired", at=wait.resolved_at)
        if wait.state == WaitState.RESOLVED and last is not None and wait.outcome["decision"] != "withdrawn":
            return _told("already" if recipient and last.recipient_id == recipient.pk else "closed", last)
        return DecisionOutcome("ended", at=wait.resolved_at)
    earlier = approval.decisions.filter(recipient=recipient).first() if recipient else None
    if earlier is not None:
        return _told("already", earlier)
    if wait.due_at is not None and wait.due_at <= business_now():
        return DecisionOutcome("expired", at=wait.due_at)
    return _turn(approval, recipient) if recipient else None


def _turn(approval: Approval, recipient: Recipient) -> DecisionOutcome | None:
    """Why it is not this person's to answer, though the question is open."""
    if recipient.handed_to:
        return DecisionOutcome("handed", by=recipient.handed_to)
    if has_left(approval, recipient):
        return DecisionOutcome("left")
    if recipient.asked_at is None:
        return DecisionOutcome("early")
    if not recipient.standby and recipient.stage < approval.stage:
        said = approval.decisions.filter(recipient__stage=recipient.stage, recipient__standby=False).last()
        return _told("closed", said) if said else None
    return None


def _settles(approval: Approval, decision: Decision) -> bool:
    if decision.recipient_id is None or decision.recipient.standby:
        return True
    if decision.answer == "reject":
        return not approval.rules.get("outvoted") or _outvoted(approval)
    if approval.policy == "ordered":
        return approval.stage >= approval.needed
    return approved(approval) >= approval.needed


def approved(approval: Approval) -> int:
    """How many of those who were asked have approved."""
    return approval.decisions.filter(answer="approve", recipient__isnull=False).count()


def _outvoted(approval: Approval) -> bool:
    """Whether too few are left who could approve: of those whose turn it is, as nobody of a later one is enough."""
    left = sum(not one.standby for one in _awaited(approval))
    return left == 0 if approval.policy == "ordered" else approved(approval) + left < approval.needed


def _next_turn(approval: Approval, wait: Wait) -> None:
    """Ask the next ones of those that are asked one after the other."""
    approval.stage += 1
    approval.save(update_fields=["stage"])
    turn = approval.recipients.filter(stage=approval.stage, standby=False, handed_to="")
    asked = [recipient for recipient in turn if not has_left(approval, recipient)]
    for recipient in asked:
        recipient.asked_at = business_now()
        recipient.save(update_fields=["asked_at"])
    _write(approval, wait, [recipient.address for recipient in asked])
    names = ", ".join(recipient.address for recipient in asked)
    text = f"Asked {names}, who come next." if asked else "Those who come next have left their team; nobody is asked."
    LogLine.objects.create(run_id=wait.run_id, path=wait.path, text=text)


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
    audit.record_of_run(decision.answer, wait.run_id, actor=decision.user, detail=detail, address=decision.address)


def _note_contradiction(wait: Wait, recipient: Recipient, answer: str, standing: DecisionOutcome, address: str | None) -> None:
    """Somebody says the contrary of what was decided: it may be a link that was passed on. Once for each of those asked."""
    text = f"{recipient.address} {WORDS[answer]} after {standing.by} had {WORDS[standing.answer]}; nothing was changed."
    if not LogLine.objects.filter(run_id=wait.run_id, path=wait.path, text=text).exists():
        LogLine.objects.create(run_id=wait.run_id, path=wait.path, level="warning", text=text, data={"address": address})


def _told(state: str, decision: Decision) -> DecisionOutcome:
    return DecisionOutcome(state, decision.decided_by, decision.answer, decision.decided_at, decision.comment)


@transaction.atomic
def remind(approval: Approval, *, user: Any = None) -> int:
    """Write again to those whose answer is awaited and who were not reminded just now. Returns to how many."""
    wait = _open(approval)
    if wait is None:
        return 0
    reminded = OutboxMessage.objects.filter(
        run_id=wait.run_id, path=wait.path, take=wait.take, kind="approval", occurrence__gt=1,
        created_at__gt=business_now() - REMINDED_EVERY,
    )  # fmt: skip
    just_now = set(reminded.values_list("recipient", flat=True))
    silent = [one.address for one in _awaited(approval) if one.address not in just_now and not has_left(approval, one)]
    if silent:
        _write(approval, wait, silent, "A reminder: this still waits for your answer.")
        _record("remind", wait, user, f"Reminded {', '.join(silent)}", {"to": silent})
    return len(silent)


@transaction.atomic
def reassign(approval: Approval, recipient: Recipient, address: str, *, user: Any = None) -> Recipient | None:
    """Ask somebody else in this person's place. None: it is not their turn any more, or that address is asked already.
    Raises BadAddress, also for who started the run, where they may not approve it."""
    address = check_address(address)
    account = _account(address)
    if started_by(approval, account) or started_by(approval, user):
        raise BadAddress("Who started the run may neither approve it nor choose who does.")
    wait = _open(approval)
    recipient = approval.recipients.filter(pk=recipient.pk, handed_to="").exclude(pk__in=_answered(approval)).first()
    if wait is None or recipient is None or approval.recipients.filter(address__iexact=address).exists():
        return None
    nonce, key_id, token_hash = tokens.mint(wait.run_id, wait.path, wait.take, address)
    made = Recipient.objects.create(
        approval=approval, address=address, user=account, nonce=nonce, key_id=key_id, token_hash=token_hash,
        stage=recipient.stage, standby=recipient.standby, asked_at=recipient.asked_at and business_now(),
    )  # fmt: skip
    recipient.handed_to = address
    recipient.save(update_fields=["handed_to"])
    if made.asked_at is not None:
        _write(approval, wait, [address], f"{recipient.address} was asked before; now it is for you to answer.")
    _record("reassign", wait, user, f"{address} is asked in place of {recipient.address}", {"from": recipient.address, "to": address})
    return made


@transaction.atomic
def withdraw(approval: Approval, *, user: Any = None, why: str = "") -> bool:
    """Take the question back: nobody has to answer it any more. What follows is what follows a rejection."""
    wait = _open(approval)
    if wait is None:
        return False
    outcome = {
        "by": "decision", "decision": "withdrawn", "who": _name(user) if user else "", "comment": why, "form": {},
        "at": business_now().isoformat(), "decisions": [_listed(one) for one in approval.decisions.order_by("pk")],
    }  # fmt: skip
    if not waits.resolve_locked(wait.pk, outcome):
        return False
    _record("withdraw", wait, user, "The question was withdrawn", {"why": why})
    return True


def _open(approval: Approval) -> Wait | None:
    """The wait of an open question, under the run's lock."""
    if waits.lock(approval.run_id) is None:
        return None
    approval.refresh_from_db(fields=["stage"])
    return Wait.objects.filter(pk=approval.pk, state=WaitState.OPEN).first()


def _awaited(approval: Approval) -> list[Recipient]:
    """Those who are asked and have not answered."""
    asked = approval.recipients.filter(handed_to="", asked_at__isnull=False).filter(Q(stage=approval.stage) | Q(standby=True))
    return list(asked.exclude(pk__in=_answered(approval)).order_by("pk"))


def _answered(approval: Approval) -> Any:
    return approval.decisions.filter(recipient__isnull=False).values("recipient_id")


def _write(approval: Approval, wait: Wait, addresses: list[str], why: str = "") -> None:
    """A mail of its own to each, beside those that were sent before."""
    created_at = Run.objects.values_list("created_at", flat=True).get(pk=wait.run_id)
    with connection.cursor() as cursor:
        cursor.execute(asking.OCCURRENCES, [wait.run_id, wait.path, wait.take])
        before = dict(cursor.fetchall())
        for address in addresses:
            mail = Mail("approval", address, asking.payload(approval, address, addresses, why), before.get(address, 0) + 1)
            cursor.execute(asking.ADD_MAIL, asking.mail_parameters(wait.run_id, created_at, wait.path, wait.take, mail))


def _record(action: str, wait: Wait, user: Any, words: str, detail: dict[str, Any]) -> None:
    by = f", by {_name(user)}." if user else "."
    LogLine.objects.create(run_id=wait.run_id, path=wait.path, text=words + by, data=detail)
    audit.record_of_run(action, wait.run_id, actor=user, detail={**detail, "path": wait.path})


def _account(address: str) -> Any:
    """Whose address it is, if it is one account's."""
    found = list(get_user_model().objects.filter(email__iexact=address, is_active=True)[:2])
    return found[0] if len(found) == 1 else None


def _name(user: Any) -> str:
    return user.email or user.get_username()
