"""Sent mail: what the outbox holds and what became of it. Without a mail server this is where mails are read."""

from __future__ import annotations

from typing import Any

from csp.constants import SELF
from csp.decorators import csp_update
from django.conf import settings
from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_POST, require_safe

from builder import access
from builder.numbers import number_of
from runtime import acts, outbox
from runtime.approvals import started_by
from runtime.mailer import Rendered
from runtime.models import Approval, OutboxMessage, Run
from runtime.tokens import KeyGone

PER_PAGE = 50
STATES = (("", "All"), ("queued", "On its way"), ("sent", "Sent"), ("failed", "Failed"))
# The mail is shown without scripts, forms or anything fetched; its links open beside it.
BODY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox"
)
HIDDEN_LINK = "https://approval-link.invalid/"


@require_safe
def sent_mail(request: HttpRequest) -> HttpResponse:
    state, before = request.GET.get("state", ""), request.GET.get("before", "")
    found = visible(request.user)
    if state in dict(STATES) and state:
        found = found.filter(state__in=["queued", "sending"] if state == "queued" else [state])
    if (last := number_of(before)) is not None:
        found = found.filter(pk__lt=last)
    rows = list(found.order_by("-pk")[: PER_PAGE + 1])
    runs = Run.objects.select_related("workflow").defer("input", "output").in_bulk({row.run_id for row in rows if row.run_id})
    address = reverse("sent_mail")
    context = {
        "rows": [{"mail": row, "run": runs.get(row.run_id)} for row in rows[:PER_PAGE]],
        "filters": [
            {"label": label, "url": f"{address}?state={name}" if name else address, "on": name == state}
            for name, label in STATES
        ],
        "older": f"{address}?state={state}&before={rows[PER_PAGE - 1].pk}" if len(rows) > PER_PAGE else "",
        "newest": f"{address}?state={state}" if before else "",
        "server": bool(settings.HOLDFAST_EMAIL),
    }
    return render(request, "mailbox/list.html", context)


@require_safe
@csp_update({"frame-src": [SELF]})
def message(request: HttpRequest, message_id: int) -> HttpResponse:
    found = get_message(request.user, message_id)
    rendered, gone = shown(found, request.user)
    run = Run.objects.select_related("workflow").filter(pk=found.run_id).first() if found.run_id else None
    context = {
        "mail": found,
        "run": run,
        "rendered": rendered,
        "gone": gone,
        "link": rendered.link if rendered else "",
        "server": bool(settings.HOLDFAST_EMAIL),
    }
    return render(request, "mailbox/message.html", context)


@require_safe
@xframe_options_sameorigin
def message_body(request: HttpRequest, message_id: int) -> HttpResponse:
    """The HTML part alone, for the frame: under a policy that lets it do nothing."""
    rendered, _ = shown(get_message(request.user, message_id), request.user)
    if rendered is None:
        raise Http404("This mail cannot be shown.")
    html = f'<base target="_blank">{rendered.html}'
    headers = {"Content-Security-Policy": BODY_POLICY, "Referrer-Policy": "no-referrer"}
    return HttpResponse(html, headers=headers)


@require_POST
def resend(request: HttpRequest, message_id: int) -> HttpResponse:
    found = get_message(request.user, message_id)
    if acts.resend(found.pk, user=request.user):
        messages.success(request, f"On its way to {found.recipient} again, under the same Message-ID.")
    else:
        messages.warning(request, "It is being sent, or went out within ten minutes; nothing was changed.")
    return redirect("mail", found.pk)


def visible(user: Any) -> QuerySet[OutboxMessage]:
    """Mails of the runs of teams in which the person is operator; those of no run are for superusers."""
    if user.is_superuser:
        return OutboxMessage.objects.all()
    return OutboxMessage.objects.filter(Q(run_id__in=access.runs_for(user, access.OPERATOR).values("pk")))


def get_message(user: Any, pk: int) -> OutboxMessage:
    found = visible(user).filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such mail that you may see.")
    return found


def shown(found: OutboxMessage, user: Any) -> tuple[Rendered | None, str]:
    """The mail as its reader sees it, or why it cannot be shown. Where mails are really sent, the link in it belongs to
    its reader alone, and is left out; and always for who started the run, where they may not approve it."""
    try:
        rendered = outbox.preview(found.pk)
    except KeyGone as gone:
        return None, str(gone)
    if rendered is None:
        return None, "The mail is gone."
    if rendered.link and (settings.HOLDFAST_EMAIL or asks_others(found, user)):
        text, html = (part.replace(rendered.link, HIDDEN_LINK) for part in (rendered.text, rendered.html))
        rendered = Rendered(rendered.subject, text, html, "")
    return rendered, ""


def asks_others(found: OutboxMessage, user: Any) -> bool:
    """Whether it brings a question that this person has to leave to others."""
    asked = Approval.objects.filter(wait__run_id=found.run_id, wait__path=found.path, wait__take=found.take)
    return any(started_by(one, user) for one in asked)


urlpatterns = [
    path("operations/mail/", sent_mail, name="sent_mail"),
    path("operations/mail/<int:message_id>/", message, name="mail"),
    path("operations/mail/<int:message_id>/body/", message_body, name="mail_body"),
    path("operations/mail/<int:message_id>/resend/", resend, name="mail_resend"),
]
