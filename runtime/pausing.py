"""Pausing all work, of all teams: no worker claims a run until it is resumed.

What a worker holds goes on to its next wait or its end. Runs that start, timers that are due and answers that come are
rows, and are taken up afterwards.
"""

from __future__ import annotations

from django.db import connection, transaction

from .audit import record
from .doorbell import ring_after_commit
from .models import Pause

PAUSED = "select exists (select from pause)"
LONGEST_WHY = 300


def paused() -> Pause | None:
    return Pause.objects.select_related("by").first()


@transaction.atomic
def pause(*, user=None, why: str = "") -> bool:
    """False: it was paused already."""
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into pause (id, by_id, why) values (1, %s, %s) on conflict do nothing",
            [user.pk if user else None, why[:LONGEST_WHY]],
        )
        if not cursor.rowcount:
            return False
    record("pause_all", "cluster:all", actor=user, detail={"why": why[:LONGEST_WHY]})
    return True


@transaction.atomic
def resume(*, user=None) -> bool:
    """False: it was not paused."""
    if not Pause.objects.all().delete()[0]:
        return False
    record("resume_all", "cluster:all", actor=user)
    ring_after_commit()
    return True
