"""Approvals: the page behind a mail link, which needs no login and no script, and the inbox of those who are signed in.

GET and HEAD only show: mail scanners open links. Only POST decides.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.decorators import decorator_from_middleware
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from builder import access, questions
from builder.replies import missed
from builder.teams import who_asks
from builder.templatetags.formats import display_name
from builder.views.runs.acts import back_to
from runtime import acts, approvals
from runtime.clock import BusinessNow, business_now
from runtime.models import Approval, LogLine, OutboxMessage, Recipient, Run
from runtime.states import OutboxState, WaitState

INBOX = 50


class CsrfWithoutOrigin(CsrfViewMiddleware):
    """A page that must send no referrer posts with `Origin: null`: the browser withholds both. The token in cookie and
    form is asked for as everywhere."""

    def _origin_verified(self, request: HttpRequest) -> bool:
        return request.META["HTTP_ORIGIN"] == "null" or super()._origin_verified(request)


@csrf_exempt
@decorator_from_middleware(CsrfWithoutOrigin)
@require_http_methods(["GET", "HEAD", "POST"])
def approve(request: HttpRequest, token: str) -> HttpResponse:
    """The page of one approver of one approval. The token is the permission; unknown ones get a page that tells nothing."""
    recipient = approvals.find(token)
    if recipient is None:
        return private(missed(request, render(request, "approvals/unknown.html", status=404)))
    approval = recipient.approval
    wrong: dict[str, str] = {}
    if request.method == "POST":
        outcome = answered(request, approval, recipient=recipient)
        if outcome.state != "invalid":
            return private(redirect("approve", token))
        wrong = outcome.wrong
    elif request.method == "GET":
        note_opening(recipient)
    approval.wait.refresh_from_db()
    page = question(request, approval, recipient, wrong) | {"public": True, "action": request.path}
    template = "approvals/link.html" if page["status"].name == "open" else "approvals/closed.html"
    return private(render(request, template, page, status=422 if wrong else 200))


@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """What waits for this person; for operators, on request, all that waits in their teams."""
    operator = access.teams_for(request.user, access.OPERATOR).exists()
    everything = operator and request.GET.get("all") == "1"
    found = questions.open_in_teams(request.user) if everything else questions.waiting_for(request.user)
    shown = list(found.prefetch_related("recipients", "decisions")[: INBOX + 1])
    runs = Run.objects.select_related("workflow").in_bulk({approval.run_id for approval in shown})
    context = {
        "rows": [{"approval": one, "run": runs.get(one.run_id), "answered": len(one.decisions.all())} for one in shown[:INBOX]],
        "more": len(shown) > INBOX,
        "everything": everything,
        "choices": [
            {"label": "Waiting for you", "url": reverse("approvals"), "on": not everything},
            {"label": "All of your teams", "url": f"{reverse('approvals')}?all=1", "on": everything},
        ]
        if operator
        else [],
    }
    return render(request, "approvals/inbox.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def decide(request: HttpRequest, wait_id: int) -> HttpResponse:
    """The same question for somebody who is signed in: one of those asked, or an operator of the team."""
    approval, recipient = get_approval(request.user, wait_id)
    wrong: dict[str, str] = {}
    if request.method == "POST":
        outcome = answered(request, approval, user=request.user)
        if outcome.state != "invalid":
            tell(request, outcome)
            return redirect(back_to(request) or "approvals")
        wrong = outcome.wrong
    approval.wait.refresh_from_db()
    page = question(request, approval, recipient, wrong) | {"action": request.get_full_path(), "next": back_to(request)}
    return render(request, "approvals/decide.html", page, status=422 if wrong else 200)


@require_POST
def remind(request: HttpRequest, wait_id: int) -> HttpResponse:
    """Send the mail again to those who have not answered."""
    approval, _ = get_approval(request.user, wait_id, access.OPERATOR)
    wait = approval.wait
    if wait.state != WaitState.OPEN:
        messages.warning(request, "Nobody is asked any more; nothing was sent.")
        return redirect("run", approval.run_id)
    answered_by = approval.decisions.filter(recipient__isnull=False).values("recipient_id")
    silent = approval.recipients.exclude(pk__in=answered_by).values("address")
    mails = OutboxMessage.objects.filter(run_id=wait.run_id, path=wait.path, take=wait.take, kind="approval")
    mails = mails.filter(recipient__in=silent).exclude(state=OutboxState.SENDING)
    sent = sum(acts.resend(mail.pk, user=request.user) for mail in mails)
    messages.success(request, f"Reminded {sent} {'person' if sent == 1 else 'people'}.")
    return redirect(back_to(request) or reverse("run", args=[approval.run_id]))


def answered(request: HttpRequest, approval: Approval, **who: Any) -> approvals.DecisionOutcome:
    return approvals.decide(
        approval,
        request.POST.get("answer", ""),
        comment=request.POST.get("comment", ""),
        form=questions.posted_form(approval, request.POST),
        address=request.META.get("REMOTE_ADDR") or None,
        **who,
    )


def question(request: HttpRequest, approval: Approval, recipient: Recipient | None, wrong: dict[str, str]) -> dict[str, Any]:
    """What both pages show of an approval."""
    run = Run.objects.select_related("workflow__team", "workflow__created_by", "version").get(pk=approval.run_id)
    status = questions.status_of(approval, recipient, business_now())
    owner = run.workflow.created_by
    return {
        "approval": approval,
        "wait": approval.wait,
        "run": run,
        "recipient": recipient,
        "organisation": who_asks(run.workflow.team),
        "status": status,
        "others": questions.others(approval, recipient),
        "fields": questions.form_fields(approval, request.POST, wrong),
        "comment": request.POST.get("comment", ""),
        "wrong": wrong,
        "since": questions.since(approval, run, status.at) if status.name == "decided" else [],
        "owner": display_name(owner) if owner else "",
    }


def get_approval(user: Any, wait_id: int, role: str = "") -> tuple[Approval, Recipient | None]:
    """The approval, and the person's place among those questions. Http404 for those it is no business of."""
    approval = Approval.objects.select_related("wait").filter(pk=wait_id).first()
    if approval is None:
        raise Http404("There is no such approval.")
    recipient = questions.recipient_for(user, approval)
    if recipient is not None and not role:
        return approval, recipient
    run = access.get_run(user, approval.run_id)
    if not access.can(user, access.OPERATOR, run.workflow.team_id):
        raise PermissionDenied("Only those who are asked, and operators of the team, may decide this.")
    return approval, recipient


def note_opening(recipient: Recipient) -> None:
    """The first look is remembered and logged."""
    if Recipient.objects.filter(pk=recipient.pk, viewed_at=None).update(viewed_at=BusinessNow()):
        wait = recipient.approval.wait
        LogLine.objects.create(run_id=wait.run_id, path=wait.path, text=f"{recipient.address} opened the page.")


def tell(request: HttpRequest, outcome: approvals.DecisionOutcome) -> None:
    match outcome.state:
        case "decided":
            messages.success(request, f"{approvals.WORDS[outcome.answer].capitalize()}. The run goes on.")
        case "recorded":
            messages.success(request, "Your answer counts. Others have to answer too.")
        case "already" | "closed":
            messages.warning(request, f"{outcome.by} had {approvals.WORDS[outcome.answer]} before; nothing was changed.")
        case "expired":
            messages.warning(request, "The time to answer was over; nothing was changed.")
        case _:
            messages.warning(request, "The run does not wait for this any more; nothing was changed.")


def private(response: HttpResponse) -> HttpResponse:
    """Nothing of these pages stays in caches, and their address goes nowhere."""
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store, private"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


urlpatterns = [
    path("a/<str:token>/", approve, name="approve"),
    path("approvals/", inbox, name="approvals"),
    path("approvals/<int:wait_id>/", decide, name="approval"),
    path("approvals/<int:wait_id>/remind/", remind, name="approval_remind"),
]
