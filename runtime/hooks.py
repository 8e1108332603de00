"""Finding a webhook by its token, and counting the request: one statement."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db import connection

from .limits import WAITING_FOR_NO_DISK, each, forget
from .starts import Live

FIND = f"select h.* from {WAITING_FOR_NO_DISK}, holdfast_hook(%s, %s) h"
FIND_WITHIN = "select * from holdfast_hook(%s, %s)"


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook that takes requests. `later` is 0 when this request is within the rate and was counted; else the seconds until
    one is."""

    pk: int
    key: str
    token: str
    config: dict[str, Any]
    team_id: int
    paused: bool
    live: Live
    later: float


def find(token: str, per_minute: int) -> Hook | None:
    """None where it is disabled, deleted, unpublished or unknown."""
    with connection.cursor() as cursor:
        forget(cursor)
        cursor.execute(FIND_WITHIN if connection.in_atomic_block else FIND, [token, each(per_minute)])
        row = cursor.fetchone()
    if row is None:
        return None
    pk, key, config, workflow_id, team_id, version_id, paused, limits, later = row
    live = Live(version_id, workflow_id, json.loads(limits) if limits else None)
    return Hook(pk, key, token, json.loads(config), team_id, paused, live, later)
