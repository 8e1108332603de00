"""Guessing the password of one account from many addresses. django-axes counts a name and an address together, so that nobody locks
out somebody else; whoever has a thousand addresses would have ten thousand guesses an hour.

So wrong passwords are counted by the name alone too. Beyond a hundred an hour only browsers are listened to in which this person has
signed in before: they hold a signed cookie that says so, and nobody is locked out of their own.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.core.signing import BadSignature
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from runtime.limits import caller, count, is_full

EACH, AT_ONCE = timedelta(seconds=36), timedelta(minutes=12)
"""A hundred wrong passwords an hour, of which twenty may come at once."""
COOKIE = "__Host-known" if settings.HTTPS else "known"
SALT = "holdfast.known"
KNOWN_FOR = 400 * 24 * 3600


class FewFailures:
    """An authentication backend that only refuses, before the password is looked at."""

    def authenticate(self, request: HttpRequest | None, username: str | None = None, **more: Any) -> None:
        if request is None or not username or not is_full(_key(username), EACH, AT_ONCE) or _is_known(request, username):
            return
        request.too_many_guesses = True
        raise PermissionDenied("Too many wrong passwords for this name.")


@receiver(user_login_failed)
def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any) -> None:
    """What was refused unseen is no guess, and fills nobody's measure."""
    unseen = getattr(request, "axes_locked_out", False) or getattr(request, "too_many_guesses", False)
    if (username := credentials.get("username")) and not unseen:
        count(_key(username), EACH, AT_ONCE)


def remember(response: HttpResponse, user: Any) -> HttpResponse:
    """In the browser in which somebody has just shown the right password."""
    response.set_signed_cookie(
        COOKIE, str(user.pk), salt=SALT, max_age=KNOWN_FOR, secure=settings.HTTPS, httponly=True, samesite="Lax"
    )
    return response


def address_of(request: HttpRequest) -> str | None:
    """For django-axes: of IPv6 the /64, which a single caller has whole."""
    address = caller(request.META.get("REMOTE_ADDR", ""))
    return None if address == "unknown" else address


def _is_known(request: HttpRequest, username: str) -> bool:
    try:
        known = request.get_signed_cookie(COOKIE, salt=SALT, max_age=KNOWN_FOR)
    except (KeyError, BadSignature):
        return False
    return get_user_model().objects.filter(username=username, pk=known).exists()


def _key(username: str) -> str:
    return f"wrong password:{username[:150]}"
