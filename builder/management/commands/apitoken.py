"""`manage.py apitoken USER`: a token for the API, printed once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from builder.models import Scope
from builder.tokens import make_token


class Command(BaseCommand):
    help = "Makes a token with which programs use the API as this user, and prints it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="whose rights it has")
        parser.add_argument("--name", default="command line", help="what it is for")
        parser.add_argument("--scope", choices=Scope.values, default=Scope.ALL, help="what it may do, of what they may")
        parser.add_argument("--days", type=int, help="how long it is good; without an end if not given")

    def handle(self, *, user: str, name: str, scope: str, days: int | None, **options: Any) -> None:
        person = get_user_model().objects.filter(username=user, is_active=True).first()
        if person is None:
            raise CommandError(f"There is no active user “{user}”.")
        if days is not None and days < 1:
            raise CommandError("--days is a number of days, 1 or more.")
        if not 1 <= len(name) <= 100:
            raise CommandError("--name has 1 to 100 characters.")
        _, text = make_token(person, name, days=days, scope=scope)
        self.stdout.write(text)
