"""The only way in: every run begins here, as a run row and a dispatch row in one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import connection, transaction

from . import slots
from .doorbell import ring_after_commit
from .models import Run, Version

# Make runs and their dispatch rows, all on the same terms (`slots.Terms`); an idempotency key that is taken makes
# nothing. What its flow drops has ended at once, and leaves its key free. Returns (id, key, why dropped) of the new ones.
INSERT_RUNS = """
with item as materialized (
    select *, case when %(drops)s then holdfast_slot(%(workflow)s, %(slot_key)s::text, %(trigger)s, key)
                   else '' end as dropped
    from unnest(%(keys)s::text[], %(hashes)s::text[], %(inputs)s::text[]) as item(key, hash, input)
), fresh as (
    insert into run (workflow_id, version_id, trigger_key, idempotency_key, input_hash, input, state, title, test,
                     created_at, started_by_id, rerun_of_id, depth, ended_at, error)
    select %(workflow)s, %(version)s, %(trigger)s, case dropped when '' then item.key end, item.hash, item.input::json,
           case dropped when '' then 'open' else 'cancelled' end, '', %(test)s,
           holdfast_now(), %(user)s, %(rerun_of)s, %(depth)s,
           case when dropped <> '' then holdfast_now() end,
           case when dropped <> '' then jsonb_build_object('message', 'Dropped: ' || dropped, 'dropped', true) end
    from item
    on conflict (workflow_id, trigger_key, idempotency_key) where idempotency_key is not null do nothing
    returning id, idempotency_key, created_at, state, error
), begun as (
    insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths,
                          priority, queued, slot_of, slot_key, yields, expires_at)
    select id, %(version)s, 'ready', created_at, 0, 0, 0, false, 0, %(priority)s,
           %(slot_of)s::bigint is not null and not %(drops)s, %(slot_of)s::bigint, %(slot_key)s::text, %(yields)s,
           created_at + make_interval(secs => %(max_age)s::float8)
    from fresh where state = 'open'
), told as (
    insert into log_line (run_id, path, level, text, at)
    select id, '', 'warning', %(note)s::text, created_at from fresh where %(note)s::text <> ''
)
select id, idempotency_key, coalesce(error ->> 'message', '') from fresh
"""


@dataclass(frozen=True, slots=True)
class Started:
    """The run, and whether this call made it. `dropped`: why its flow's limits ended it at once; else empty."""

    run_id: int
    created: bool
    dropped: str = ""


class IdempotencyConflict(Exception):
    """The key was used before, with another input."""


def start(
    version: Version, *, trigger_key: str, input: dict[str, Any], idempotency_key: str | None = None,
    input_hash: str = "", user=None, test: bool = False, rerun_of: Run | None = None,
) -> Started:
    """Start one run of a version, or find the one that this key started before.

    `input` is what expressions call `trigger`; the caller has checked that it is storable JSON.
    """
    earlier = Run.objects.only("id", "idempotency_key", "input_hash").filter(
        workflow_id=version.workflow_id, trigger_key=trigger_key, idempotency_key=idempotency_key
    )
    # Looked up first, since a refused insert has used up a number. Of two that look at once, the unique index refuses one.
    if idempotency_key is not None and (run := earlier.first()):
        return _same(run, input_hash)
    while True:
        if rows := insert_runs(version, [(input, idempotency_key, input_hash)], trigger_key, user, test, rerun_of):
            return Started(rows[0][0], True, rows[0][2])
        if run := earlier.first():  # else retention took it away in between, and the key is free
            return _same(run, input_hash)


def _same(run: Run, input_hash: str) -> Started:
    if run.input_hash != input_hash:
        raise IdempotencyConflict(f"The idempotency key {run.idempotency_key!r} was used with another input.")
    return Started(run.pk, False)


def start_many(version: Version, items: Sequence[tuple[dict[str, Any], str | None]], *, trigger_key: str) -> list[int]:
    """Start a run for each (input, idempotency key) in one statement. Returns the ids of the runs that were made."""
    rows = insert_runs(version, [(input, key, "") for input, key in items], trigger_key)
    return [run_id for run_id, _, dropped in rows if not dropped]


async def insert_one(
    connection: psycopg.AsyncConnection, workflow_id: int, version_id: int, trigger_key: str, key: str, input: dict[str, Any],
    depth: int = 0,
) -> list[int]:
    """Start a run as a worker does, on its flow's terms. Returns its id, or nothing when the key did so before."""
    limit = await (await connection.execute(slots.LIMIT, [workflow_id])).fetchone()
    terms = slots.terms(limit, workflow_id, input)
    parameters = insert_with(workflow_id, version_id, trigger_key, [(input, key, "")], terms, depth=depth)
    return [run_id for run_id, *_ in await (await connection.execute(INSERT_RUNS, parameters)).fetchall()]


def insert_with(
    workflow_id: int, version_id: int, trigger_key: str, items: Sequence[tuple[dict[str, Any], str | None, str]],
    terms: slots.Terms, *, test: bool = False, user: int | None = None, rerun_of: int | None = None, depth: int = 0,
) -> dict[str, Any]:
    """The parameters of `INSERT_RUNS` for each (input, idempotency key, hash)."""
    return {
        "workflow": workflow_id, "version": version_id, "trigger": trigger_key, "test": test, "user": user,
        "rerun_of": rerun_of, "depth": depth,
        "inputs": [json.dumps(given, allow_nan=False) for given, *_ in items],
        "keys": [key for _, key, _ in items], "hashes": [hash for *_, hash in items], **terms.columns(),
    }  # fmt: skip


def insert_runs(
    version: Version, items: Sequence[tuple[dict[str, Any], str | None, str]], trigger_key: str, user=None,
    test: bool = False, rerun_of: Run | None = None,
) -> list[tuple[int, str | None, str]]:
    """(id, key, why dropped) of the runs that were made. Those on the same terms are made by one statement, unless they
    may be dropped: each takes its slot before the next is looked at."""
    limit = None if test else slots.limit_of(version.workflow_id)
    batches: dict[Any, tuple[slots.Terms, list[tuple[dict[str, Any], str | None, str]]]] = {}
    for number, item in enumerate(items):
        terms = slots.terms(limit, version.workflow_id, item[0])
        batches.setdefault((terms, number if terms.drops else 0), (terms, []))[1].append(item)
    rows = []
    with transaction.atomic(), connection.cursor() as cursor:
        for terms, those in batches.values():
            cursor.execute(INSERT_RUNS, insert_with(
                version.workflow_id, version.pk, trigger_key, those, terms, test=test, user=user.pk if user else None,
                rerun_of=rerun_of.pk if rerun_of else None,
            ))
            rows += cursor.fetchall()
        if rows:
            ring_after_commit()
    return rows
