"""One's own account: signing in and out, the password, and the tokens with which one's programs use the API."""

from __future__ import annotations

from typing import Any

from allauth.account.views import reauthenticate
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.usersessions.views import list_usersessions
from django import forms
from django.contrib import messages
from django.contrib.auth import views as auth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from builder.models import ApiToken, Scope
from builder.signin import LoginView, PasswordForm, has_second_factor
from builder.tokens import make_token, revoke, tokens_of
from runtime.models import Membership


class TokenForm(forms.Form):
    LENGTHS = [("30", "30 days"), ("90", "90 days"), ("365", "A year"), ("", "Without an end")]

    name = forms.CharField(label="What is it for?", max_length=100)
    scope = forms.ChoiceField(label="It may", choices=Scope, initial=Scope.ALL)
    days = forms.ChoiceField(label="Good for", choices=LENGTHS, initial="90", required=False)


@require_GET
def account(request: HttpRequest) -> HttpResponse:
    return _page(request, TokenForm())


@require_POST
@never_cache
def account_tokens(request: HttpRequest) -> HttpResponse:
    """Make a token. This answer shows it, and no other ever will."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    days = int(form.cleaned_data["days"]) if form.cleaned_data["days"] else None
    _, text = make_token(request.user, form.cleaned_data["name"], days=days, scope=form.cleaned_data["scope"])
    return _page(request, TokenForm(), made=text)


@require_POST
def account_token_revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    if revoke(token, actor=request.user):
        messages.success(request, f"Revoked {token.name}. Programs that use it are refused from now on.")
    return redirect("account")


@require_http_methods(["GET", "HEAD", "POST"])
def account_proof(request: HttpRequest) -> HttpResponse:
    """Where a page is that shows more to who has just proven who they are: whoever gets here has."""
    target = request.GET.get("next", "")
    ours = url_has_allowed_host_and_scheme(target, allowed_hosts=None) and target.startswith("/")
    return redirect(target if ours else "account")


def _page(request: HttpRequest, form: TokenForm, *, status: int = 200, **more: Any) -> HttpResponse:
    memberships = Membership.objects.filter(user=request.user).select_related("team").order_by("team__name")
    context = {
        "form": form,
        "tokens": tokens_of(request.user),
        "memberships": memberships,
        "second_factor": has_second_factor(request.user),
        **more,
    }
    return render(request, "account/account.html", context, status=status)


urlpatterns = [
    path("login/", LoginView.as_view(), name="login"),
    path("login/", LoginView.as_view(), name="account_login"),  # what django-allauth calls it
    path("login/code/", mfa.authenticate, name="mfa_authenticate"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("logout/", auth.LogoutView.as_view(), name="account_logout"),
    path("account/", account, name="account"),
    path("account/password/", auth.PasswordChangeView.as_view(form_class=PasswordForm), name="password_change"),
    path("account/password/done/", auth.PasswordChangeDoneView.as_view(), name="password_change_done"),
    path("account/proof/", account_proof, name="account_proof"),
    path("account/confirm/", reauthenticate, name="account_reauthenticate"),
    path("account/confirm/code/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("account/second-factor/", mfa.index, name="mfa_index"),
    path("account/second-factor/activate/", totp.activate_totp, name="mfa_activate_totp"),
    path("account/second-factor/deactivate/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("account/recovery-codes/", recovery_codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("account/recovery-codes/new/", recovery_codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path("account/recovery-codes/file/", recovery_codes.download_recovery_codes, name="mfa_download_recovery_codes"),
    path("account/sessions/", list_usersessions, name="usersessions_list"),
    path("account/tokens/", account_tokens, name="account_tokens"),
    path("account/tokens/<int:token_id>/revoke/", account_token_revoke, name="account_token_revoke"),
]
