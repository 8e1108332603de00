"""Approvals: what waits for an answer, and answering."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest
from ninja import Query, Router

from builder.access import OPERATOR, can, refusal, runs_for
from runtime.approvals import WORDS, DecisionOutcome, decide
from runtime.models import Approval, Recipient, Run
from runtime.tokens import without_signatures

from .auth import guarded
from .errors import Refused
from .paging import Cursor, Limit, page
from .schemas import ApprovalPage, DecidedOut, DecisionIn, ErrorOut

router = Router()
State = Literal["open", "resolved", "cancelled", "suspended"]


@router.get("/approvals", response=ApprovalPage, summary="List approvals", **guarded("list_approvals"))
def list_approvals(
    request: HttpRequest,
    cursor: Cursor = None,
    limit: Limit = 50,
    state: Annotated[State | None, Query(None)] = "open",
    run: Annotated[int | None, Query(None, description="Only approvals of this run.")] = None,
    mine: Annotated[bool, Query(False, description="Only those that ask you.")] = False,
) -> dict[str, Any]:
    """Those of your teams' runs, and those that ask you."""
    rows = approvals_for(request.user, only_mine=mine).filter(wait__state=state or "open")
    if run is not None:
        rows = rows.filter(run_id=run)
    found, following = page(rows.select_related("wait").prefetch_related("recipients", "decisions"), cursor, limit)
    return {"items": [_shown(approval) for approval in found], "next": following}


@router.post(
    "/approvals/{int:approval_id}/decision",
    response={200: DecidedOut, 409: ErrorOut, 422: ErrorOut},
    summary="Answer an approval",
    **guarded("decide_approval"),
)
def decide_approval(request: HttpRequest, approval_id: int, data: DecisionIn) -> dict[str, Any]:
    """As the approver that you are, or as an operator in place of all approvers. 409 when it is settled already."""
    approval = approvals_for(request.user).select_related("wait").filter(pk=approval_id).first()
    if approval is None:
        raise Http404(f"There is no approval {approval_id} that you may see.")
    _require_say(request.user, approval)
    outcome = decide(
        approval, data.answer, user=request.user, comment=data.comment, form=data.form,
        address=request.META.get("REMOTE_ADDR") or None,
    )  # fmt: skip
    if not outcome.accepted:
        raise _too_late(outcome)
    return {"state": outcome.state, "by": outcome.by, "answer": outcome.answer, "at": outcome.at}


def approvals_for(user: Any, *, only_mine: bool = False) -> QuerySet[Approval]:
    """Approvals that ask this person, and (unless `only_mine`) all of their teams' runs."""
    asked = Exists(_asking(user).filter(approval=OuterRef("pk")))
    if only_mine:
        return Approval.objects.filter(asked)
    return Approval.objects.filter(Q(asked) | Q(run_id__in=runs_for(user).order_by().values("pk")))


def _asking(user: Any) -> QuerySet[Recipient]:
    by_address = Q(address__iexact=user.email) if user.email else Q()
    return Recipient.objects.filter(Q(user=user) | by_address)


def _require_say(user: Any, approval: Approval) -> None:
    """Approvers may answer whatever their role; in place of them only operators of the owning team."""
    if _asking(user).filter(approval=approval).exists():
        return
    team = Run.objects.select_related("workflow__team").get(pk=approval.run_id).workflow.team
    if not can(user, OPERATOR, team):
        raise PermissionDenied(f"This approval does not ask you. {refusal(OPERATOR, team)}")


LATE = {
    "expired": "This approval has expired.",
    "early": "It is not your turn yet: others answer before you.",
    "handed": "Somebody else was asked in your place.",
    "left": "You are in the team no more that was asked.",
    "own": "You started this run, so somebody else has to approve it.",
}


def _too_late(outcome: DecisionOutcome) -> Refused:
    if outcome.state == "invalid":
        problems = [{"step": "", "field": f"body.form.{name}", "message": text} for name, text in outcome.wrong.items()]
        return Refused(422, "The answer is not complete. See problems.", problems)
    if outcome.state in ("already", "closed"):
        return Refused(409, f"Already {WORDS[outcome.answer]} by {outcome.by} at {outcome.at:%Y-%m-%d %H:%M:%S %Z}.")
    return Refused(409, LATE.get(outcome.state, "The run has ended, or the question was withdrawn."))


def _shown(approval: Approval) -> dict[str, Any]:
    wait = approval.wait
    return {
        "id": approval.pk,
        "run": approval.run_id,
        "path": wait.path,
        "state": wait.state,
        "subject": approval.subject,
        "message": without_signatures(approval.message),
        "details": without_signatures(approval.details),
        "form": approval.form,
        "approvers": [recipient.address for recipient in approval.recipients.all()],
        "policy": approval.policy,
        "expires_at": wait.due_at,
        "created_at": wait.created_at,
        "decisions": [_decision(decision) for decision in approval.decisions.all()],
    }


def _decision(decision: Any) -> dict[str, Any]:
    return {
        "by": decision.decided_by,
        "answer": decision.answer,
        "comment": decision.comment,
        "at": decision.decided_at,
    }
