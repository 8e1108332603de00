"""The only way in: every run begins here, as a run row and a dispatch row in one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import connection, transaction

from . import slots
from .doorbell import ring_after_commit
from .models import Run, StepFile, Version
from .steps.base import File

# As `sql/starts.sql` tells: (id, whether it is new, the earlier one's hash, why dropped) of a run.
INSERT_RUN = """
select made, fresh, kept, why from holdfast_start(
    %(workflow)s, %(version)s, %(trigger)s, %(key)s, %(hash)s, %(input)s, %(test)s, %(user)s, %(rerun_of)s, %(depth)s, %(priority)s,
    %(slot_of)s, %(slot_key)s, %(drops)s, %(yields)s, %(max_age)s, %(note)s
)
"""
# Many on the same terms. (id, why dropped) of those that are new.
INSERT_RUNS = """
select made, why from unnest(%(keys)s::text[], %(inputs)s::text[]) as item(key, input), lateral holdfast_start(
    %(workflow)s, %(version)s, %(trigger)s, key, '', input, %(test)s, %(user)s, %(rerun_of)s, %(depth)s, %(priority)s,
    %(slot_of)s, %(slot_key)s, %(drops)s, %(yields)s, %(max_age)s, %(note)s
) where fresh
"""


FIELD = "trigger:"
"""Before the name of a field, in the place of a step's path: files that a run was started with."""
COPY_FILES = """
insert into step_file (run_id, path, take, key, content)
select %(new)s, path, take, key, content from step_file where run_id = %(old)s and starts_with(path, %(field)s)
"""


@dataclass(frozen=True, slots=True)
class Live:
    """Of a live version, what a start needs: its number, its flow's, and the row of the flow's limits (`slots.LIMIT`)."""

    pk: int
    workflow_id: int
    limits: Sequence[Any] | None


@dataclass(frozen=True, slots=True)
class Started:
    """The run, and whether this call made it. `dropped`: why its flow's limits ended it at once; else empty."""

    run_id: int
    created: bool
    dropped: str = ""


class IdempotencyConflict(Exception):
    """The key was used before, with another input."""


def start(
    version: Version | Live, *, trigger_key: str, input: dict[str, Any], idempotency_key: str | None = None,
    input_hash: str = "", user=None, test: bool = False, rerun_of: Run | None = None,
) -> Started:
    """Start one run of a version, or find the one that this key started before.

    `input` is what expressions call `trigger`; the caller has checked that it is storable JSON.
    """
    limit = None if test else version.limits if isinstance(version, Live) else slots.limit_of(version.workflow_id)
    terms = slots.terms(limit, version.workflow_id, input)
    with connection.cursor() as cursor:
        cursor.execute(INSERT_RUN, {
            **shared(version.workflow_id, version.pk, trigger_key, terms, test=test, user=user, rerun_of=rerun_of),
            "key": idempotency_key, "hash": input_hash, "input": as_text(input),
        })  # fmt: skip
        made = cursor.fetchone()
    return outcome(*made, idempotency_key, input_hash)


def outcome(run_id: int, fresh: bool, kept: str | None, why: str | None, key: str | None, input_hash: str) -> Started:
    """What `holdfast_start` made or found with this key and hash. Raises IdempotencyConflict."""
    if fresh:
        ring_after_commit()
    elif kept != input_hash:
        raise IdempotencyConflict(f"The idempotency key {key!r} was used with another input.")
    return Started(run_id, fresh, why or "")


def start_with_files(version: Version | Live, files: Mapping[str, File], **how: Any) -> Started:
    """`start`, with files by the name of the field that they were sent in: a worker sees all of it or nothing."""
    if not files:
        return start(version, **how)
    with transaction.atomic():
        started = start(version, **how)
        if started.created and not started.dropped:
            StepFile.objects.bulk_create(
                StepFile(run_id=started.run_id, path=FIELD + name, take=1, key=file.key, content=file.content)
                for name, file in files.items()
            )
    return started


def copy_files(old: int, new: int) -> None:
    """The files that a run was started with, for another one with the same input."""
    with connection.cursor() as cursor:
        cursor.execute(COPY_FILES, {"old": old, "new": new, "field": FIELD})


def start_many(version: Version, items: Sequence[tuple[dict[str, Any], str | None]], *, trigger_key: str) -> list[int]:
    """Start a run for each (input, idempotency key) in one transaction: those on the same terms by one statement. Returns the ids
    of the runs that were made."""
    limit = slots.limit_of(version.workflow_id)
    batches: dict[slots.Terms, list[tuple[dict[str, Any], str | None]]] = {}
    for item in items:
        batches.setdefault(slots.terms(limit, version.workflow_id, item[0]), []).append(item)
    rows = []
    with transaction.atomic(), connection.cursor() as cursor:
        for terms, those in batches.items():
            cursor.execute(INSERT_RUNS, {
                **shared(version.workflow_id, version.pk, trigger_key, terms),
                "keys": [key for _, key in those], "inputs": [as_text(given) for given, _ in those],
            })  # fmt: skip
            rows += cursor.fetchall()
        if rows:
            ring_after_commit()
    return [run_id for run_id, dropped in rows if not dropped]


async def insert_one(
    connection: psycopg.AsyncConnection, workflow_id: int, version_id: int, trigger_key: str, key: str, input: dict[str, Any],
    depth: int = 0,
) -> list[int]:
    """Start a run as a worker does, on its flow's terms. Returns its id, or nothing when the key did so before."""
    limit = await (await connection.execute(slots.LIMIT, [workflow_id])).fetchone()
    terms = slots.terms(limit, workflow_id, input)
    parameters = shared(workflow_id, version_id, trigger_key, terms, depth=depth) | {"keys": [key], "inputs": [as_text(input)]}
    return [run_id for run_id, _ in await (await connection.execute(INSERT_RUNS, parameters)).fetchall()]


def shared(
    workflow_id: int, version_id: int, trigger_key: str, terms: slots.Terms, *, test: bool = False, user: Any = None,
    rerun_of: Run | None = None, depth: int = 0,
) -> dict[str, Any]:
    """What the statements that start runs are told of all of them."""
    return {
        "workflow": workflow_id, "version": version_id, "trigger": trigger_key, "test": test, "user": user.pk if user else None,
        "rerun_of": rerun_of.pk if rerun_of else None, "depth": depth, **terms.columns(),
    }  # fmt: skip


def as_text(input: dict[str, Any]) -> str:
    return json.dumps(input, allow_nan=False)
