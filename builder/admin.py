"""Nothing of django-allauth is edited by hand: authenticators are their owners' business, and addresses stand in the user."""

from __future__ import annotations

from typing import Any

import allauth.account.admin  # noqa: F401 - registers what is taken away here
import allauth.mfa.admin  # noqa: F401
import allauth.usersessions.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from builder.models import Identity
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

    def delete_model(self, request: HttpRequest, obj: Identity) -> None:
        self._note("unlink_openid", request, obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Identity]) -> None:
        for one in queryset:
            self.delete_model(request, one)

    def _note(self, action: str, request: HttpRequest, obj: Identity) -> None:
        detail = {"issuer": obj.issuer, "subject": obj.subject}
        record(action, f"user:{obj.user_id}", actor=request.user, detail=detail)


for model in (Authenticator, EmailAddress, UserSession):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
