"""`manage.py secondfactor USER`: takes the second factor from somebody who lost theirs."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from builder.signin import remove_second_factor


class Command(BaseCommand):
    help = "Takes the authenticator app and the recovery codes from a user who lost both; the password stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="who lost them")

    def handle(self, *, user: str, **options: Any) -> None:
        person = get_user_model().objects.filter(username=user).first()
        if person is None:
            raise CommandError(f"There is no user “{user}”.")
        if not remove_second_factor(person):
            raise CommandError(f"{user} has no second factor.")
        self.stdout.write(f"{user} signs in with the password alone, until a new authenticator is set up.")
