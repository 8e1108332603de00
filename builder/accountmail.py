"""Mails to people about their own account: when how they sign in has changed, or a program may act for them. Who did it may be
somebody else, and the mail is how they learn of it. They go the way of all mails, through the outbox."""

from __future__ import annotations

from typing import Any

from allauth.core import context
from allauth.mfa import signals
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.dispatch import receiver
from django.utils import timezone

from runtime.audit import record
from runtime.outbox import add_mail

WHAT_TO_DO = (
    "If this was you, there is nothing to do. If it was not: sign in, set a new password, which signs all other browsers out, "
    "revoke the API tokens that are not yours, and look at where you are signed in: {account}\n\n"
    "If you cannot sign in any more, tell the person who runs this Holdfast at once."
)
LINKED = "A sign-in at {} lets into it from now on"


def tell(person: Any, what: str, *, to: str = "") -> None:
    """`what` happened, a sentence without its full stop. To the account's address or to another, such as the former one; to
    nobody where there is none. In the caller's transaction."""
    what = _line(what)  # else a name with a line break in it would keep the mail from being sent
    if address := to or person.email:
        lines = [f"{what}.", _circumstances(person), WHAT_TO_DO.format(account=f"{settings.HOLDFAST_PUBLIC_URL}/account/")]
        add_mail(address, f"Your Holdfast account: {what[:1].lower()}{what[1:]}", "\n\n".join(lines), f"account-{person.pk}")


def _circumstances(person: Any) -> str:
    """When, from where and by whom. django-allauth's middleware knows the request that this thread answers."""
    request, now = context.request, timezone.now()
    user = getattr(request, "user", None)
    other = user is not None and user.is_authenticated and user.pk != person.pk
    told = {
        "Account": person.get_username(),
        "When": f"{now:%Y-%m-%d %H:%M} UTC",
        "From": request.META.get("REMOTE_ADDR") or "an unknown address" if request else "the command line of the installation",
        "Browser": request.headers.get("User-Agent", "")[:200] if request else "",
        "By": user.get_username() if other else "",
    }
    return "\n".join(f"{name}: {_line(value)}" for name, value in told.items() if value)


def _line(text: str) -> str:
    """What others wrote begins no line of its own."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


@receiver(signals.authenticator_added)
@receiver(signals.authenticator_removed)
@receiver(signals.authenticator_reset)
def _second_factor(signal: Any, user: Any, authenticator: Authenticator, **more: Any) -> None:
    """Recovery codes come and go with the app: only a new set of them is told."""
    if signal is signals.authenticator_reset:
        record("new_recovery_codes", f"user:{user.pk}", actor=user)
        tell(user, "New recovery codes were made")
    elif authenticator.type == Authenticator.Type.TOTP:
        added = signal is signals.authenticator_added
        record("second_factor_added" if added else "second_factor_removed", f"user:{user.pk}", actor=user)
        tell(user, "An authenticator app was set up" if added else "The authenticator app was removed")
