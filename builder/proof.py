"""Who is it, once more: asked before what would outlive a browser that was left open, unless it was proven minutes ago.

The page that asks carries along what was sent, so that nothing has to be typed again, and nothing of it is kept meanwhile:
it may hold a secret. Which views ask stands in `builder.gate`.
"""

from __future__ import annotations

import time
from urllib.parse import urlencode, urlsplit

from allauth.account.adapter import get_adapter
from allauth.account.forms import ReauthenticateForm
from allauth.account.internal.flows.reauthentication import did_recently_reauthenticate, reauthenticate_by_password
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from builder.sessions import PROVED_AT
from builder.signin import ConfirmForm

PASSWORD, CODE = "proof_password", "proof_code"


def unproven(request: HttpRequest) -> None:
    """Signed in by somebody else's word, who may not have asked for anything."""
    request.session.pop(PROVED_AT, None)


def proven(request: HttpRequest) -> bool:
    """Whether the person has shown within the last minutes who they are."""
    signed_in = request.session.get(PROVED_AT, 0.0)
    return time.time() - signed_in < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT or did_recently_reauthenticate(request)


def asked_to_prove(request: HttpRequest, page: str) -> HttpResponse | None:
    """What asks for a proof before the request is answered; None when there is one, or the request itself brings it. What
    only reads, and fragments, go by the page `page`, an address that leads back."""
    if proven(request):
        return None
    if getattr(request, "htmx", None):
        return HttpResponseClientRedirect(f"{page}?{urlencode({'next': request.htmx.current_url_abs_path or reverse('flows')})}")
    if request.path != page and request.method in ("GET", "HEAD"):
        return redirect(f"{page}?{urlencode({'next': request.get_full_path()})}")
    sent = request.POST.copy()
    given = {name: "".join(sent.pop(name, [])[-1:]) for name in (PASSWORD, CODE)}
    ways = {method["id"] for method in get_adapter().get_reauthentication_methods(request.user)}
    wrong: list[str] = []
    for way, name, check in (("reauthenticate", PASSWORD, _password), ("mfa_reauthenticate", CODE, _code)):
        if way in ways and given[name] and not wrong and not (wrong := check(request, given[name])):
            request.POST = sent
            return None
    sent.pop("csrfmiddlewaretoken", None)
    context = {
        "sent": [(name, value) for name, values in sent.lists() for value in values],
        "wrong": wrong,
        "by_password": "reauthenticate" in ways,
        "by_code": "mfa_reauthenticate" in ways,
        "provider": urlsplit(settings.HOLDFAST_OIDC_ISSUER).hostname,
        "back": _back(request),
    }
    return render(request, "account/proof.html", context, status=422 if wrong else 200)


def _password(request: HttpRequest, text: str) -> list[str]:
    """What is wrong with it."""
    form = ReauthenticateForm({"password": text}, user=request.user)
    if form.is_valid():
        reauthenticate_by_password(request)
    return form.errors.get("password", [])


def _code(request: HttpRequest, text: str) -> list[str]:
    form = ConfirmForm({"code": text}, user=request.user)
    if form.is_valid():
        form.save()
    return form.errors.get("code", [])


def _back(request: HttpRequest) -> str:
    """A page of ours that the person came from, to go back to without doing it."""
    came = urlsplit(request.headers.get("Referer", ""))
    path = f"{came.path}?{came.query}" if came.query else came.path
    ours = came.netloc == request.get_host() and path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if ours else reverse("account")
