"""Signing in: the password, then a code for those who have an authenticator app. django-allauth keeps authenticators,
recovery codes and sessions; what it must not store in the clear, or count per process, is ours."""

from __future__ import annotations

import logging
import math
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from allauth.account.utils import perform_login
from allauth.core import context
from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from django.conf import settings
from django.contrib.auth import forms, views
from django.core.exceptions import ValidationError
from django.db import transaction
from django.forms import BooleanField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from builder.accountmail import tell
from builder.guessing import EACH, remember
from builder.tokens import revoke_all
from runtime.audit import record
from runtime.credentials import decrypted, encrypted
from runtime.limits import admitted, caller, is_full

log = logging.getLogger(__name__)

SIGN_INS_PER_MINUTE = 60
"""From one caller's address, whoever they say they are: an office may sit behind one, and each costs a tenth of a second."""
CODES_PER_MINUTE = 5
ONCE = timedelta(minutes=1)
"""For how long a code that was used is known; an app's is good for half of it."""
PASSWORDS_PER_MINUTE = 5
SECRETS = ("secret", "seed")
"""Where an authenticator app and recovery codes keep theirs."""
WITHOUT_SECOND_FACTOR = ("account", "logout", "account_reauthenticate", "mfa_index", "mfa_activate_totp")
"""What those who must have an authenticator may open before they have one."""


class LoginView(views.LoginView):
    """The password; those with an authenticator are asked for a code before they are in."""

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        return super().get_context_data(**more) | {"provider": urlsplit(settings.HOLDFAST_OIDC_ISSUER).hostname}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """django-axes counts the failures of a name from an address; this, one password tried with every name."""
        wait = admitted(f"sign in:{caller(request.META.get('REMOTE_ADDR', ''))}", SIGN_INS_PER_MINUTE)
        if not wait:
            return super().post(request, *args, **kwargs)
        return self._refused("Too many attempts. Wait a minute.", wait)

    def form_valid(self, form: Any) -> HttpResponse:
        response = perform_login(self.request, form.get_user(), redirect_url=self.get_success_url())
        return remember(response, form.get_user())

    def form_invalid(self, form: Any) -> HttpResponse:
        if getattr(self.request, "too_many_guesses", False):
            words = "Too many wrong passwords for this name. Wait some minutes, or use a browser in which you have signed in before."
            return self._refused(words, EACH.total_seconds())
        return super().form_invalid(form)

    def _refused(self, words: str, wait: float) -> HttpResponse:
        context = self.get_context_data(form=self.form_class(self.request), refused=words)
        return self.render_to_response(context, status=429, headers={"Retry-After": str(math.ceil(wait))})


class Adapter(DefaultMFAAdapter):
    """The authenticators' secrets are encrypted as those of connections are."""

    def get_totp_issuer(self) -> str:
        return "Holdfast"

    def encrypt(self, text: str) -> str:
        return encrypted(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypted(encrypted_text)


class _Once:
    """Each code counts once, whichever process is asked. An app's is good for thirty seconds, in which somebody who saw it
    being typed could use it, too, with other blanks and dashes in it. Whoever tries is told of, since they know the password too."""

    def clean_code(self) -> str:
        key = f"code:{self.user.pk}:{normalize_user_code(self.cleaned_data['code'])}"
        used = is_full(key, ONCE, ONCE)  # django-allauth, which remembers it in this process, would call it wrong
        code = "" if used else super().clean_code()
        if used or admitted(key, 1):
            _used_again(self.user)
            raise ValidationError("This code was used just now. Wait for the next one.")
        return code


@transaction.atomic
def _used_again(person: Any) -> None:
    """Into the audit trail and by mail, once a minute: two presses of a button look the same."""
    if not admitted(f"code again:{person.pk}", 1):
        address = context.request.META.get("REMOTE_ADDR") if context.request else None
        log.warning("A code of user %s that had been used already was refused; it came from %s.", person.pk, address)
        record("code_used_again", f"user:{person.pk}", detail={"user": str(person)}, address=address)
        tell(person, "A code for signing in was entered again after it had been used, and was refused")


class _FewGuesses(_Once):
    """So many codes a minute for one person, whichever process is asked."""

    def clean_code(self) -> str:
        if wait := admitted(f"code:{self.user.pk}", CODES_PER_MINUTE):
            raise ValidationError(f"Too many codes. Wait {wait:.0f} seconds.")
        return super().clean_code()


class CodeForm(_FewGuesses, AuthenticateForm):
    """At sign-in."""


class ConfirmForm(_FewGuesses, ReauthenticateForm):
    """Before a change to the authenticators."""


class SetUpForm(_Once, ActivateTOTPForm):
    """The first code of an app."""


class PasswordForm(forms.PasswordChangeForm):
    """Whoever finds a browser that is signed in must not be able to try passwords in it until one fits. A new one signs every
    other browser out, since a session knows the password's hash."""

    revoke_tokens = BooleanField(
        label="Revoke my API tokens as well", required=False,
        help_text="If somebody else may know the old one. Programs that use a token are refused from then on.",
    )  # fmt: skip

    def clean_old_password(self) -> str:
        if wait := admitted(f"password:{self.user.pk}", PASSWORDS_PER_MINUTE):
            raise ValidationError(f"Too many attempts. Wait {wait:.0f} seconds.")
        return super().clean_old_password()

    @transaction.atomic
    def save(self, commit: bool = True) -> Any:
        person = super().save(commit)
        record("change_password", f"user:{person.pk}", actor=person)
        tell(person, "The password was changed")
        if self.cleaned_data["revoke_tokens"]:
            revoke_all(person, actor=person)
        return person


def has_second_factor(user: Any) -> bool:
    return Authenticator.objects.filter(user_id=user.pk, type=Authenticator.Type.TOTP).exists()


def asked_to_set_up(request: HttpRequest, name: str) -> HttpResponse | None:
    """The page on which to set up an authenticator, for those who must have one and have none."""
    if name in WITHOUT_SECOND_FACTOR or has_second_factor(request.user):
        return None
    return redirect("mfa_index")


@transaction.atomic
def rotate() -> None:
    """Encrypt every authenticator's secrets anew with the first key. Raises CannotOpen, changing nothing."""
    for row in Authenticator.objects.select_for_update().order_by("pk"):
        for name in SECRETS:
            if name in row.data:
                row.data[name] = encrypted(decrypted(row.data[name]))
        row.save(update_fields=["data"])


@transaction.atomic
def remove_second_factor(user: Any) -> bool:
    """For somebody who lost theirs. Returns whether there was one."""
    removed = bool(Authenticator.objects.filter(user_id=user.pk).delete()[0])
    if removed:
        record("second_factor_removed", f"user:{user.pk}", detail={"by": "command line"})
        tell(user, "The authenticator app was removed")
    return removed
