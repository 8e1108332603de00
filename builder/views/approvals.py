"""Approvals: the page behind a mail link, which needs no login and no script, and the same for those who are signed in.

GET and HEAD only show: mail scanners open links. Only POST decides.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.decorators import decorator_from_middleware
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from builder import access, questions
from builder.replies import missed
from builder.teams import who_asks
from builder.templatetags.formats import display_name
from builder.views import inbox
from builder.views.runs.acts import back_to
from runtime import approvals
from runtime.clock import BusinessNow, business_now
from runtime.mail_addresses import BadAddress
from runtime.models import Approval, LogLine, Recipient, Run


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
    if approval.rules.get("sign_in"):
        return _sign_in_first(request, recipient)
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
    page |= inbox.context_of(approval, request.user)
    return render(request, "approvals/decide.html", page, status=422 if wrong else 200)


@require_POST
def remind(request: HttpRequest, wait_id: int) -> HttpResponse:
    """Write once more to those who have not answered, unless they were reminded minutes ago."""
    approval, _ = get_approval(request.user, wait_id, access.OPERATOR)
    sent = approvals.remind(approval, user=request.user)
    if sent:
        messages.success(request, f"Reminded {sent} {'person' if sent == 1 else 'people'}.")
    else:
        messages.warning(request, "Nobody is asked any more, or they were reminded within ten minutes; nothing was sent.")
    return redirect(back_to(request) or reverse("run", args=[approval.run_id]))


@require_POST
def reassign(request: HttpRequest, wait_id: int) -> HttpResponse:
    """Ask somebody else in the place of one who is asked: by an operator, or by that person."""
    approval, own = get_approval(request.user, wait_id)
    choice = request.POST.get("recipient", "")
    found = [one for one in inbox.context_of(approval, request.user)["replaceable"] if str(one.pk) == choice or one == own and not choice]
    try:
        made = approvals.reassign(approval, found[0], request.POST.get("address", ""), user=request.user) if found else None
    except BadAddress as wrong:
        messages.error(request, f"{wrong} Nothing was changed.")
        return redirect("approval", wait_id)
    if made is None:
        messages.warning(request, "They have answered, or that address is asked already; nothing was changed.")
    else:
        messages.success(request, f"{made.address} is asked now.")
    return redirect(back_to(request) or "approvals")


@require_POST
def withdraw(request: HttpRequest, wait_id: int) -> HttpResponse:
    """Take the question back. What follows is what the step does when it is rejected."""
    approval, _ = get_approval(request.user, wait_id, access.OPERATOR)
    why = request.POST.get("why", "").replace("\x00", "")[: approvals.LONGEST_COMMENT]
    if approvals.withdraw(approval, user=request.user, why=why):
        messages.success(request, "Withdrawn. Nobody has to answer it any more.")
    else:
        messages.warning(request, "It was settled before; nothing was changed.")
    return redirect(back_to(request) or reverse("run", args=[approval.run_id]))


def _sign_in_first(request: HttpRequest, recipient: Recipient) -> HttpResponse:
    """The link only leads to the question; who may answer it, the account says."""
    page = reverse("approval", args=[recipient.approval_id])
    if request.user.is_authenticated:
        return private(redirect(page))
    context = {"approval": recipient.approval, "recipient": recipient, "sign_in": f"{reverse('login')}?{urlencode({'next': page})}"}
    return private(render(request, "approvals/sign_in.html", context, status=403 if request.method == "POST" else 200))


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
        case "own":
            messages.warning(request, "You started this run, so somebody else has to approve it; nothing was changed.")
        case "early" | "handed" | "left":
            messages.warning(request, "It is not your turn to answer this; nothing was changed.")
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
    path("approvals/<int:wait_id>/", decide, name="approval"),
    path("approvals/<int:wait_id>/remind/", remind, name="approval_remind"),
    path("approvals/<int:wait_id>/reassign/", reassign, name="approval_reassign"),
    path("approvals/<int:wait_id>/withdraw/", withdraw, name="approval_withdraw"),
]
