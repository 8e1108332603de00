"""`manage.py createsuperuser`: Django's, without its ways around the rules for passwords."""

from __future__ import annotations

import getpass
import os
from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

VARIABLE, NAME = "DJANGO_SUPERUSER_PASSWORD", "DJANGO_SUPERUSER_USERNAME"


class Command(createsuperuser.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        name, email = options["username"], options["email"]
        if options["interactive"]:
            name = name or input("User name: ").strip()
            email = input("E-mail address: ").strip() if email is None else email
            os.environ[VARIABLE] = self._asked(name, email)
        elif given := os.environ.get(VARIABLE, ""):
            self._check(given, name or os.environ.get(NAME, ""), email)
        super().handle(*args, **options | {"interactive": False, "username": name, "email": email})

    def _asked(self, name: str, email: str) -> str:
        """Until it is one that can be used."""
        while True:
            password = getpass.getpass("Password: ")
            try:
                if password != getpass.getpass("Once more: "):
                    raise CommandError("These were two different ones.")
                self._check(password, name, email)
                return password
            except CommandError as wrong:
                self.stderr.write(str(wrong))

    def _check(self, password: str, name: str, email: str | None) -> None:
        try:
            validate_password(password, self.UserModel(username=name, email=email or ""))
        except ValidationError as wrong:
            raise CommandError(f"This password cannot be used. {' '.join(wrong.messages)}") from None
