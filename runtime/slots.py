"""What a flow allows its runs: how many at a time, in all and for each key, how many begin in a minute, who goes first,
and how old one may become.

The limits of the live version hold for runs of all versions (`FlowLimit`). A run's dispatch row is its slot, and so a
slot goes with its run whatever ends it, and no crash can keep one. Runs of a flow with limits begin queued;
`admission.py` lets them in. Where the flow says so, what is too much is dropped at the start instead: the run is there,
but cancelled, and says why. Tests of a draft have no limits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from .expressions import ExpressionError, compile
from .jsonvalues import storable_text

HIGHEST = 9
LEVELS = range(-HIGHEST, HIGHEST + 1)
DUE = f"token is null and not queued and priority = any(array{list(LEVELS)}) and due_at <= (select holdfast_now())"
"""Of dispatch rows that a worker could claim now; so written that the index finds them for each priority."""
LONGEST_KEY = 200

MOST_COUNTED = 100

LIMIT = """
select at_most, per_key, key, per_minute, drops, yields, priority, max_age from flow_limit where workflow_id = %s
"""
# Where queued runs stand: how many with the same key are before them, and why there is no slot.
STANDING = f"""
select d.run_id, (
    select count(*) from (
        select from generate_series(d.priority, {HIGHEST}) as level join lateral (
            select from dispatch o
            where o.slot_of = d.slot_of and o.queued and o.slot_key = d.slot_key and o.priority = level
            and o.due_at <= case when level = d.priority then d.due_at else (select holdfast_now()) end
            and (level > d.priority or (o.due_at, o.run_id) < (d.due_at, d.run_id)) limit {MOST_COUNTED}
        ) o on true limit {MOST_COUNTED}
    ) before
), d.slot_key, holdfast_full(d.slot_of, d.slot_key)
from dispatch d where d.run_id = any(%s) and d.queued and d.due_at <= (select holdfast_now())
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """A row of `flow_limit`."""

    at_most: int | None
    per_key: int | None
    key: str
    per_minute: int | None
    drops: bool
    yields: bool
    priority: str
    max_age: float | None


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run's dispatch row begins with. `drops`: no slot, no run. `note` tells what could not be worked out."""

    priority: int = 0
    slot_of: int | None = None
    slot_key: str | None = None
    drops: bool = False
    yields: bool = False
    max_age: float | None = None
    note: str = ""

    def columns(self) -> dict[str, Any]:
        """As the statements that start runs name them."""
        return {name: getattr(self, name) for name in self.__slots__}


FREE = Terms()


def terms(row: Sequence[Any] | None, workflow_id: int, input: dict[str, Any]) -> Terms:
    """The terms of a run with this input, by its flow's limits as `LIMIT` read them."""
    if row is None:
        return FREE
    limit, notes = Limit(*row), []
    key = _key(limit, input, notes) if limit.per_key is not None else ""
    priority = _priority(limit, input, notes)
    slots = limit.at_most is not None or limit.per_key is not None or limit.per_minute is not None
    return Terms(
        priority, workflow_id if slots else None, key if slots else None, slots and limit.drops, slots and limit.yields,
        limit.max_age, " ".join(notes),
    )


def limit_of(workflow_id: int) -> tuple[Any, ...] | None:
    """`LIMIT` over Django's connection."""
    with connection.cursor() as cursor:
        cursor.execute(LIMIT, [workflow_id])
        return cursor.fetchone()


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a queued run stands: how many with its key are before it, at most 100 counted, and why it has no slot."""

    before: int
    key: str
    why: str


def standings(run_ids: list[int]) -> dict[int, Standing]:
    """Of the runs that queue, by id."""
    if not run_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(STANDING, [run_ids])
        return {run: Standing(before, key, why) for run, before, key, why in cursor.fetchall()}


def _key(limit: Limit, input: dict[str, Any], notes: list[str]) -> str:
    """The value of the key as text. Runs whose key cannot be worked out share the empty one."""
    try:
        value = compile(limit.key).evaluate({"trigger": input})
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (ExpressionError, TypeError, ValueError) as wrong:
        notes.append(f"The key of the flow's limit cannot be worked out, and is taken as empty: {wrong}")
        return ""
    text = storable_text(text)
    return text if len(text) <= LONGEST_KEY else hashlib.sha256(text.encode()).hexdigest()


def _priority(limit: Limit, input: dict[str, Any], notes: list[str]) -> int:
    if not limit.priority:
        return 0
    try:
        value = compile(limit.priority).evaluate({"trigger": input})
    except ExpressionError as wrong:
        notes.append(f"The priority cannot be worked out, and is taken as 0: {wrong}")
        return 0
    if type(value) not in (int, float) or value != value:
        notes.append("The priority is no number, and is taken as 0.")
        return 0
    return int(max(-HIGHEST, min(HIGHEST, value)))
