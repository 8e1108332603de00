"""Nothing of django-allauth is edited by hand: authenticators are their owners' business, and addresses stand in the user."""

from __future__ import annotations

import allauth.account.admin  # noqa: F401 - registers what is taken away here
import allauth.mfa.admin  # noqa: F401
import allauth.usersessions.admin  # noqa: F401
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin

for model in (Authenticator, EmailAddress, UserSession):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
