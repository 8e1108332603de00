"""Accounts and their identities. Nothing of django-allauth is edited by hand: authenticators are their owners' business, and
addresses stand in the user."""

from __future__ import annotations

from typing import Any

import allauth.account.admin  # noqa: F401 - registers what is taken away here
import allauth.mfa.admin  # noqa: F401
import allauth.usersessions.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from builder.accountmail import LINKED, tell
from builder.models import Identity
from builder.tokens import revoke_all
from runtime.audit import record


@admin.register(Identity)
class IdentityAdmin(admin.ModelAdmin):
    """Made by hand for providers that do not tell whether an address is verified. Removing one lets the account be found by its
    address again."""

    fields = ("user", "issuer", "subject")
    list_display = ("user", "issuer", "subject", "created_at")
    list_select_related = ("user",)

    def has_change_permission(self, request: HttpRequest, obj: Identity | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Identity, *more: Any) -> None:
        super().save_model(request, obj, *more)
        self._note("link_openid", request, obj)
        tell(obj.user, LINKED.format(obj.issuer))

    def delete_model(self, request: HttpRequest, obj: Identity) -> None:
        self._note("unlink_openid", request, obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Identity]) -> None:
        for one in queryset:
            self.delete_model(request, one)

    def _note(self, action: str, request: HttpRequest, obj: Identity) -> None:
        detail = {"issuer": obj.issuer, "subject": obj.subject}
        record(action, f"user:{obj.user_id}", actor=request.user, detail=detail)


admin.site.unregister(get_user_model())


@admin.register(get_user_model())
class PersonAdmin(UserAdmin):
    """Who gets a new password from somebody else loses their API tokens as well, unless the page is told otherwise. Another
    address is told to both, since it is by it that people are found: approvers, and who signs in elsewhere."""

    @transaction.atomic
    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "email" in form.changed_data:
            before = str(form.initial.get("email") or "")
            record("change_email", f"user:{obj.pk}", actor=request.user, detail={"from": before, "to": obj.email})
            for address in filter(None, (before, obj.email)):
                tell(obj, "The e-mail address was changed", to=address)

    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        before = self._password(id)
        answer = super().user_change_password(request, id, form_url)
        if self._password(id) != before:
            person = get_user_model().objects.get(pk=unquote(id))
            record("reset_password", f"user:{person.pk}", actor=request.user)
            tell(person, "The password was changed")
            if "revoke_tokens" in request.POST:
                revoke_all(person, actor=request.user)
        return answer

    def _password(self, id: str) -> str | None:
        person = self.get_object(None, unquote(id))
        return person and person.password


for model in (Authenticator, EmailAddress, UserSession):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
