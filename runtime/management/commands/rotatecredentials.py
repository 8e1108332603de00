"""`manage.py rotatecredentials`: encrypt all connections anew with the first of HOLDFAST_CREDENTIAL_KEYS."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runtime.credentials import CannotOpen, rotate


class Command(BaseCommand):
    help = (
        "Encrypt all connections anew with the first of HOLDFAST_CREDENTIAL_KEYS. "
        "Put a new key first, run this, then take the old one away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            count = rotate()
        except CannotOpen as wrong:
            raise CommandError(f"{wrong} Nothing was changed.") from None
        self.stdout.write(f"{count} connection{'' if count == 1 else 's'} encrypted with the first key.")
