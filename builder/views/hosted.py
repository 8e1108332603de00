"""The hosted page of a form trigger: GET shows it, POST starts a run. It needs no script.

Sent twice is started once: each page carries a number of its own. Machines that fill in everything fall for a field that
people do not see, and are thanked like everybody else.
"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.decorators import decorator_from_middleware
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from builder.signin import asked_to_set_up
from builder.teams import who_asks
from builder.uploads import answers, files_of, largest, open_form
from builder.views.approvals import CsrfWithoutOrigin, private
from runtime.clock import business_now
from runtime.limits import admitted, caller
from runtime.models import Trigger
from runtime.starts import start_with_files
from runtime.tokens import URLSAFE
from runtime.triggers.form import FormConfig
from runtime.triggers.manual import fields_of

TRAP = "website"


@csrf_exempt
@decorator_from_middleware(CsrfWithoutOrigin)
@require_http_methods(["GET", "HEAD", "POST"])
def form_page(request: HttpRequest, token: str) -> HttpResponse:
    """The page of one form. Unknown, disabled and unpublished ones look the same."""
    trigger = open_form(token)
    if trigger is None:
        if admitted(f"miss:{caller(request.META.get('REMOTE_ADDR', ''))}", settings.HOLDFAST_MISSES_PER_MINUTE):
            return private(_told(request, "Too many attempts", "Wait a minute, then try again.", 429))
        return private(_told(request, "There is no form here", "Ask the person who sent you the address for the right one.", 404))
    if trigger.config.get("access") == "signed_in":
        if not request.user.is_authenticated:
            return private(redirect(f"{reverse('login')}?{urlencode({'next': request.path})}"))
        if settings.HOLDFAST_REQUIRE_SECOND_FACTOR and (set_up := asked_to_set_up(request, "form_page")):
            return private(set_up)  # which the table asks for on pages that are not public
    if trigger.workflow.paused:
        return private(_told(request, "This form is closed at present", "Try again later.", 503, trigger))
    if request.method == "POST":
        return private(_send(request, trigger))
    if request.GET.get("sent"):
        thanks = trigger.config.get("thanks") or FormConfig.model_fields["thanks"].default
        return private(_told(request, "Sent", thanks, 200, trigger))
    return private(_show(request, trigger, {}, secrets.token_urlsafe(18)))


def _send(request: HttpRequest, trigger: Trigger) -> HttpResponse:
    if _too_many(request, trigger):
        return _told(request, "Too many answers just now", "Nothing was sent. Go back, wait a minute, and send it again.", 429, trigger)
    sent = answers(request, trigger.config, prefix="form.")
    page = request.POST.get("page", "")
    if not URLSAFE.fullmatch(page):
        page = secrets.token_urlsafe(18)
    if sent.wrong:
        return _show(request, trigger, sent.wrong, page)
    if not request.POST.get(TRAP):
        user = request.user if request.user.is_authenticated else None
        given = {"body": sent.body, "by": (user.email or user.get_username()) if user else "", "at": business_now().isoformat()}
        live, key = trigger.workflow.live_version, f"form:{page}"
        if start_with_files(live, sent.files, trigger_key=trigger.key, input=given, idempotency_key=key, user=user).dropped:
            words = "Your answer was not taken. Go back, wait a while, and send it again."
            return _told(request, "Too much is going on just now", words, 409, trigger)
    return redirect(f"{request.path}?sent=1")


def _too_many(request: HttpRequest, trigger: Trigger) -> bool:
    most = int(trigger.config.get("per_minute") or FormConfig.model_fields["per_minute"].default)
    own = f"form:{trigger.pk}:{caller(request.META.get('REMOTE_ADDR', ''))}"
    return bool(admitted(own, max(1, most // 10)) or admitted(f"form:{trigger.pk}", most))


def _show(request: HttpRequest, trigger: Trigger, wrong: dict[str, str], page: str) -> HttpResponse:
    declared = fields_of(trigger.config)
    fields = [
        {
            **field,
            "label": field.get("label") or field["id"],
            "input": {"date": "date", "file": "file"}.get(field.get("type", "text"), "text"),
            "value": request.POST.get(f"form.{field['id']}", ""),
            "wrong": wrong.get(field["id"], ""),
            "again": f"form.{field['id']}" in request.FILES,
        }
        for field in declared
    ]
    context = {
        **_heading(trigger), "fields": fields, "wrong": wrong, "page": page, "trap": TRAP, "action": request.path,
        "takes_files": bool(files_of(declared)), "largest": largest(trigger.config),
    }  # fmt: skip
    return render(request, "forms/form.html", context, status=422 if wrong else 200)


def _told(request: HttpRequest, heading: str, words: str, status: int, trigger: Trigger | None = None) -> HttpResponse:
    context = {"told": heading, "words": words, "good": status == 200, **(_heading(trigger) if trigger else {})}
    return render(request, "forms/told.html", context, status=status)


def _heading(trigger: Trigger) -> dict[str, Any]:
    config, workflow = trigger.config, trigger.workflow
    return {"heading": config.get("title") or workflow.name, "intro": config.get("intro", ""), "organisation": who_asks(workflow.team)}


urlpatterns = [path("forms/<str:token>/", form_page, name="form_page")]
