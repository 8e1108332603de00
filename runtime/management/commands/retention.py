"""`manage.py retention`: delete the runs that ended longer ago than their flows keep them, and show how it goes."""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand

from runtime import retention
from runtime.database import connect


class Command(BaseCommand):
    help = (
        "Delete the runs that ended longer ago than their flows keep them. Workers do the same slowly by themselves; "
        "this does it at once. Unfinished runs are never touched."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say how many there are")

    def handle(self, *args: Any, **options: Any) -> None:
        asyncio.run(self._delete(options["dry_run"]))

    async def _delete(self, dry: bool) -> None:
        async with await connect("holdfast retention") as connection:
            left = await retention.left(connection)
            self.stdout.write(f"{left:,} run{'' if left == 1 else 's'} ended longer ago than their flows keep them.")
            if dry:
                return
            await retention.forget_signals(connection)
            done = 0
            while (batch := await retention.delete_batch(connection, wait=True)).deleted:
                done += batch.deleted
                self.stdout.write(f"{done:,} of {max(left, done):,} deleted")
                self.stdout.flush()
            if batch.found:
                self.stdout.write(f"{batch.found:,} are in somebody's hands and stay for now.")
