"""To the OpenID provider, and back from it. What has to come back is kept in the browser, signed, for ten minutes: whoever
only follows the link leaves nothing here."""

from __future__ import annotations

import hmac
import logging
import secrets
import time

from allauth.account.utils import perform_login
from django.conf import settings
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET

from builder import openid
from builder.proof import unproven
from builder.signin import LoginView
from runtime.audit import record
from runtime.limits import admitted, caller
from runtime.net import BadLocation

log = logging.getLogger(__name__)

COOKIE = "__Host-openid" if settings.HTTPS else "openid"
SALT = "holdfast.openid"
GOOD_FOR = 600
PER_MINUTE = 30
AGAIN = "This sign-in was begun in another browser, or too long ago. Try again."
AWAY = "Signing in there does not work just now. Use your password, or try again later."


@require_GET
def start(request: HttpRequest) -> HttpResponse:
    if not _open(request):
        return _refused(request, "Too many attempts. Wait a minute.", 429)
    asked = openid.Asked(*(secrets.token_urlsafe(32) for _ in range(3)))
    again = "again" in request.GET
    try:
        response = redirect(openid.address_of_sign_in(asked, _back(), again))
    except (openid.Trouble, BadLocation) as trouble:
        log.error("Signing in by OpenID does not work: %s", trouble)
        return _refused(request, AWAY, 503)
    onward = request.GET.get("next", "")
    onward = onward if url_has_allowed_host_and_scheme(onward, allowed_hosts=None) and onward.startswith("/") else reverse("flows")
    kept = "\n".join([asked.state, asked.nonce, asked.verifier, "again" if again else "", onward[:1000]])
    response.set_signed_cookie(
        COOKIE, kept, salt=SALT, max_age=GOOD_FOR, secure=settings.HTTPS, httponly=True, samesite="Lax"
    )
    return response


@require_GET
def back(request: HttpRequest) -> HttpResponse:
    if not _open(request):
        return _refused(request, "Too many attempts. Wait a minute.", 429)
    try:
        state, nonce, verifier, again, onward = request.get_signed_cookie(COOKIE, salt=SALT, max_age=GOOD_FOR).split("\n")
    except (KeyError, BadSignature, ValueError):
        return _refused(request, AGAIN)
    answer = request.GET
    if not hmac.compare_digest(answer.get("state", "").encode("utf-8", "replace"), state.encode()):
        return _refused(request, AGAIN)
    if answer.get("iss", settings.HOLDFAST_OIDC_ISSUER) != settings.HOLDFAST_OIDC_ISSUER or not answer.get("code"):
        return _refused(request, "You were not signed in there.")
    try:
        claims = openid.claims_for(answer["code"][:2000], openid.Asked(state, nonce, verifier), _back())
    except (openid.Trouble, BadLocation) as trouble:
        log.error("Signing in by OpenID does not work: %s", trouble)
        return _refused(request, AWAY, 503)
    fresh = openid.asked_just_now(claims, time.time()) if again else None
    if fresh is False:
        return _refused(request, "You were let in there without being asked who you are. Sign out there first, or use a password.")
    return _admit(request, claims, onward, bool(fresh))


def _admit(request: HttpRequest, claims: dict[str, object], onward: str, fresh: bool) -> HttpResponse:
    address = request.META.get("REMOTE_ADDR") or None
    detail = {"issuer": claims["iss"], "subject": claims["sub"], "email": str(claims.get("email", ""))[:320]}
    try:
        user = openid.person_of(claims)
    except openid.Refused as refused:
        record("refuse_openid", "openid", detail=detail | {"why": str(refused)}, address=address)
        return _refused(request, str(refused))
    record("sign_in_openid", f"user:{user.pk}", actor=user, detail=detail, address=address)
    user.backend = "django.contrib.auth.backends.ModelBackend"
    response = perform_login(request, user, redirect_url=onward)
    if not fresh and request.user.is_authenticated:
        unproven(request)
    response.delete_cookie(COOKIE, samesite="Lax")
    return response


def _open(request: HttpRequest) -> bool:
    """Each of these may cost a call to the provider."""
    if not settings.HOLDFAST_OIDC_ISSUER:
        raise Http404("There is no OpenID provider.")
    return not admitted(f"openid:{caller(request.META.get('REMOTE_ADDR', ''))}", PER_MINUTE)


def _back() -> str:
    return settings.HOLDFAST_ORIGIN + reverse("openid_back")


def _refused(request: HttpRequest, why: str, status: int = 403) -> HttpResponse:
    """The sign-in page, and why. What was kept is of no more use."""
    response = LoginView.as_view(extra_context={"refused": why})(request)
    response.status_code = status
    response.delete_cookie(COOKIE, samesite="Lax")
    return response


urlpatterns = [
    path("login/openid/", start, name="openid_start"),
    path("login/openid/back/", back, name="openid_back"),
]
