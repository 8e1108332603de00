"""`manage.py changepassword USER`: Django's, which also revokes the API tokens that the person has."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.management.commands import changepassword

from builder.accountmail import tell
from builder.tokens import revoke_all
from runtime.audit import record


class Command(changepassword.Command):
    help = "Sets a new password for a user, signs their browsers out, and revokes their API tokens."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--keep-tokens", action="store_true", help="their API tokens go on working")

    def handle(self, *args: Any, **options: Any) -> str:
        told = super().handle(*args, **options)
        person = get_user_model().objects.get(username=options["username"] or getpass.getuser())
        record("reset_password", f"user:{person.pk}", detail={"by": "command line"})
        tell(person, "The password was changed")
        if not options["keep_tokens"] and (revoked := revoke_all(person, actor=None)):
            told += f"\nRevoked {revoked} API token{'' if revoked == 1 else 's'}; programs that use one are refused from now on."
        return told
