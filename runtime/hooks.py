"""Webhooks: finding one by its token, counting the request, and starting its run.

The first request of a webhook takes two statements: `find`, which counts it, and `starts.start`. After that the process
remembers the webhook, and a request that starts a run takes one, `post`, which does both if nothing of the webhook has changed.
Whatever else a request comes to is found out with `find`, so that what is remembered only ever starts runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db import connection

from . import slots
from .limits import WAITING_FOR_NO_DISK, each, forget
from .starts import Live, Started, as_text, outcome

FIND = f"select h.* from {WAITING_FOR_NO_DISK}, holdfast_webhook(%s, %s) h"
FIND_WITHIN = "select * from holdfast_webhook(%s, %s)"
POST = f"call holdfast_post({', '.join(f'${n}' for n in range(1, 14))}, null, null, null, null, null)"
MOST_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook that takes requests. `later` is 0 when this request is within the rate and was counted; else the seconds until
    one is. `seen`: the state of the rows that this was read from."""

    pk: int
    key: str
    token: str
    config: dict[str, Any]
    team_id: int
    paused: bool
    live: Live
    seen: str
    later: float


_remembered: dict[str, Hook] = {}


def remembered(token: str) -> Hook | None:
    return _remembered.get(token)


def remember(hook: Hook) -> None:
    """It has just started a run. Nothing is remembered of a transaction that may not stay."""
    if connection.in_atomic_block:
        return
    if len(_remembered) >= MOST_REMEMBERED:
        _remembered.clear()
    _remembered[hook.token] = hook


def forget_hook(token: str) -> None:
    _remembered.pop(token, None)


def find(token: str, per_minute: int) -> Hook | None:
    """None where it is disabled, deleted, unpublished or unknown."""
    forget()
    with connection.cursor() as cursor:
        cursor.execute(FIND_WITHIN if connection.in_atomic_block else FIND, [token, each(per_minute)])
        row = cursor.fetchone()
    if row is None:
        return None
    pk, key, config, workflow_id, team_id, version_id, paused, limits, seen, later = row
    live = Live(version_id, workflow_id, json.loads(limits) if limits else None)
    told = {name: value for name, value in json.loads(config).items() if name != "sample"}  # which is for the builder, and may be large
    return Hook(pk, key, token, told, team_id, paused, live, seen, later)


def post(hook: Hook, per_minute: int, input: dict[str, Any], key: str | None, input_hash: str) -> Started | None:
    """Count a request of this webhook and start its run, outside of any transaction. None, and nothing is done, where the webhook
    is not as it was when it was found, or the request is beyond the rate."""
    terms = slots.terms(hook.live.limits, hook.live.workflow_id, input)
    forget()
    later, run_id, fresh, kept, why = connection.ask(POST, [
        hook.pk, hook.seen, each(per_minute), key, input_hash, as_text(input), *terms.columns().values(),
    ])  # fmt: skip
    return outcome(int(run_id), fresh == "t", kept, why, key, input_hash) if later == "0" else None
