"""Approvals as people see them: what is asked, of whom, and how it stands. Shared by the link's page, inbox and run page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Lower

from builder import access
from builder.editing.places import name_at
from builder.templatetags.formats import display_name
from runtime.approvals import approver, has_left
from runtime.models import Approval, Decision, Recipient, Run, StepResult
from runtime.states import WaitKind, WaitState

SINCE = 5
DECIDED = {"approve": "approved", "reject": "rejected"}


@dataclass(frozen=True, slots=True)
class Status:
    """How an approval stands for somebody: `open`, `answered` (by them, others have to answer too), `decided`, `expired`,
    `held` (the run failed and may be requeued), `withdrawn` (the run ended, or the question was taken back), `early` (not
    their turn), `handed` (somebody else was asked instead), `left` (asked as a member, which they are no more). Who, what and when tell of the decision."""

    name: str
    who: str = ""
    answer: str = ""
    at: datetime | None = None
    comment: str = ""
    mine: bool = False
    missing: int = 0

    @property
    def word(self) -> str:
        return DECIDED.get(self.answer, "")


def waiting_for(user: Any) -> QuerySet[Approval]:
    """Open approvals that ask this person and that they have not answered, newest first."""
    answered = Decision.objects.filter(recipient=OuterRef("pk"))
    mine = Recipient.objects.filter(_is(user), ~Exists(answered), awaited())
    return _open().filter(pk__in=mine.values("approval_id"))


def awaited() -> Q:
    """Recipients whose turn it is: asked, not replaced, and not of a stage that was answered by others."""
    return Q(handed_to="", asked_at__isnull=False) & (Q(standby=True) | Q(stage=F("approval__stage")))


def open_in_teams(user: Any) -> QuerySet[Approval]:
    """All open approvals of the teams in which this person is operator."""
    return access.of_runs_for(user, _open(), access.OPERATOR)


def recipient_for(user: Any, approval: Approval) -> Recipient | None:
    return approver(approval, user)


def status_of(approval: Approval, recipient: Recipient | None, now: datetime) -> Status:
    wait = approval.wait
    decisions = list(approval.decisions.order_by("pk").select_related("recipient__user", "user"))
    mine = next((decision for decision in decisions if recipient and decision.recipient_id == recipient.pk), None)
    if wait.state == WaitState.RESOLVED and wait.outcome.get("by") == "due":
        return Status("expired", at=wait.resolved_at)
    if wait.state == WaitState.RESOLVED and wait.outcome.get("decision") == "withdrawn":
        return Status("withdrawn", wait.outcome.get("who") or "", at=wait.resolved_at, comment=wait.outcome.get("comment") or "")
    if wait.state == WaitState.RESOLVED and decisions:
        return _told("decided", decisions[-1], mine)
    if wait.state == WaitState.SUSPENDED:
        return Status("held")
    if wait.state != WaitState.OPEN:
        return Status("withdrawn", at=wait.resolved_at)
    if mine is not None:
        return _told("answered", mine, mine, missing(approval, sum(one.answer == "approve" for one in decisions)))
    if wait.due_at is not None and wait.due_at <= now:
        return Status("expired", at=wait.due_at)
    return _turn(approval, recipient, decisions) if recipient else Status("open")


def _turn(approval: Approval, recipient: Recipient, decisions: list[Decision]) -> Status:
    """Whether an open question is this person's to answer."""
    if recipient.handed_to:
        return Status("handed", recipient.handed_to)
    if has_left(approval, recipient):
        return Status("left")
    if recipient.asked_at is None:
        return Status("early")
    if not recipient.standby and recipient.stage < approval.stage:
        said = [one for one in decisions if one.recipient and one.recipient.stage == recipient.stage]
        return _told("decided", said[-1], None) if said else Status("open")
    return Status("open")


def missing(approval: Approval, approved: int) -> int:
    """How many approvals are needed yet."""
    return max(0, approval.needed - (approval.stage - 1 if approval.policy == "ordered" else approved))


def rule_of(approval: Approval) -> str:
    """Whose answers count, in a sentence or two."""
    if approval.rules.get("outvoted"):
        rule = "One of them has to approve." if approval.policy == "any" else _policy(approval)
        return rule if approval.policy == "all" else f"{rule} A rejection counts when too few are left who could."
    return _policy(approval)


def _policy(approval: Approval) -> str:
    match approval.policy:
        case "all":
            return "Everybody has to approve."
        case "count":
            return f"{approval.needed} of {approval.recipients.filter(handed_to='', standby=False).count()} have to approve."
        case "ordered":
            return f"One after the other has to approve; this is turn {approval.stage} of {approval.needed}."
    return "The first answer counts."


def others(approval: Approval, recipient: Recipient | None) -> str:
    """Who was asked beside this approver, or beside nobody, and whose answer counts."""
    asked = approval.recipients.filter(handed_to="", asked_at__isnull=False).select_related("user").order_by("pk")
    names = [name_of(one) for one in asked if one != recipient]
    if not names:
        return "" if approval.policy in ("any", "all") else rule_of(approval)
    shown = names[0] if len(names) == 1 else f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
    return f"{shown} {'was' if len(names) == 1 else 'were'} asked{' too' if recipient else ''}. {rule_of(approval)}"


def since(approval: Approval, run: Run, after: datetime | None) -> list[dict[str, Any]]:
    """What the run did in the same lane after the decision, in order."""
    if after is None:
        return []
    lane = approval.wait.path.rpartition("/")[0]
    found = StepResult.objects.filter(run_id=run.pk, scope=approval.wait.scope, started_at__gte=after, superseded=False)
    found = found.exclude(path=approval.wait.path).defer("output")
    if lane:
        found = found.filter(path__startswith=f"{lane}/")
    return [
        {"name": name_at(run.version.definition, row.path), "state": row.state, "at": row.finished_at}
        for row in found.order_by("finished_at")[:SINCE]
    ]


def form_fields(approval: Approval, posted: Mapping[str, str], wrong: Mapping[str, str]) -> list[dict[str, Any]]:
    """The step's form as the page draws it, with what was typed and what is wrong with it."""
    return [
        {
            **field,
            "label": field.get("label") or field["id"],
            "input": {"number": "text", "date": "date"}.get(field.get("type", "text"), "text"),
            "value": posted.get(f"form.{field['id']}", ""),
            "wrong": wrong.get(field["id"], ""),
        }
        for field in approval.form
    ]


def posted_form(approval: Approval, posted: Mapping[str, str]) -> dict[str, str]:
    return {field["id"]: posted.get(f"form.{field['id']}", "") for field in approval.form}


def name_of(recipient: Recipient) -> str:
    """The person's name where the address belongs to somebody with an account, else the address."""
    if recipient.user is not None:
        return display_name(recipient.user)
    found = get_user_model().objects.filter(email__iexact=recipient.address, is_active=True).first()
    return found.get_full_name() if found and found.get_full_name() else recipient.address


def left(addresses: Iterable[str]) -> set[str]:
    """Those of these addresses, in lower case, that have accounts of which none is active any more."""
    given = {address.lower() for address in addresses}
    accounts = get_user_model().objects.annotate(of=Lower("email")).filter(of__in=given).values_list("of", "is_active")
    return {of for of, _ in accounts} - {of for of, active in accounts if active}


def _open() -> QuerySet[Approval]:
    return Approval.objects.filter(wait__kind=WaitKind.APPROVAL, wait__state=WaitState.OPEN).select_related("wait").order_by("-pk")


def _is(user: Any) -> Q:
    return Q(user=user) | Q(address__iexact=user.email) if user.email else Q(user=user)


def _told(name: str, decision: Decision, mine: Decision | None, missing: int = 0) -> Status:
    who = name_of(decision.recipient) if decision.recipient else display_name(decision.user) or decision.decided_by
    return Status(name, who, decision.answer, decision.decided_at, decision.comment, mine == decision, missing)
