"""`manage.py rotate_keys`: encrypt all connections and authenticators anew with the first of HOLDFAST_CREDENTIAL_KEYS."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from builder import signin
from runtime import credentials


class Command(BaseCommand):
    help = (
        "Encrypt all connections and authenticators anew with the first of HOLDFAST_CREDENTIAL_KEYS. "
        "Put a new key first, run this, then take the old one away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with transaction.atomic():
                count = credentials.rotate()
                signin.rotate()
        except credentials.CannotOpen as wrong:
            raise CommandError(f"{wrong} Nothing was changed.") from None
        self.stdout.write(f"{count} connection{'' if count == 1 else 's'} encrypted with the first key.")
