"""A database of a year's work: runs by the million, each the copy of one that the engine has worked off, with all rows of it.

What differs from run to run is made anew: flow, version, trigger, key, title, times, cost, what it is found by, and of the
failed ones the error. Runs come evenly over `DAYS`, the numbers in the order of the times. One statement makes a block of one
table, so that a million runs of ten steps take minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Model

from runtime.faults import kind_of
from runtime.models import (
    Approval, Attempt, Dispatch, Frame, LogLine, OutboxMessage, Recipient, Run, RunSearch, StepResult, Version, Wait, Worker,
)  # fmt: skip

DAYS = 365
BLOCK = 50_000
KINDS = 40
"""How many kinds of errors there are; the first ones are the most frequent."""
TABLES: tuple[type[Model], ...] = (StepResult, Attempt, LogLine, Wait, OutboxMessage, Dispatch, RunSearch, Frame)
ASKED: tuple[type[Model], ...] = (Approval, Recipient)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A run to copy, and the share of all runs that are copies of it."""

    run: int
    share: float


PLAN = """
create unlogged table seed as
with n as materialized (  -- drawn once, whatever it is joined with
    select %(first)s + n as id, (%(patterns)s::bigint[])[1 + floor(random() * 10000)::int] as pattern,
        case when n <= %(rare)s then %(rare_version)s
             else (%(versions)s::bigint[])[1 + least(floor(-ln(1 - random()) * 2)::int, %(flows)s - 1)] end as version_id,
        holdfast_now() - make_interval(secs => %(seconds)s * (1 - n::float8 / %(count)s)) as began,
        random() as chance, random() as other
    from generate_series(1, %(count)s) as n
)
select n.id, n.pattern, n.version_id, v.workflow_id, n.began - p.created_at as shift, n.chance, n.other,
    holdfast_now() + interval '30 days' * n.other as due
from n join run p on p.id = n.pattern join version v on v.id = n.version_id
"""
OWN = {
    "run": {
        "workflow_id": "s.workflow_id", "version_id": "s.version_id", "idempotency_key": "'order-' || s.id",
        "title": "p.title || ' ' || s.id", "test": "s.other < 0.01", "rerun_of_id": "null::bigint",
        "trigger_key": "case when s.chance < 0.02 then 'manual' when s.chance < 0.25 then 'api' else p.trigger_key end",
        "cost": "case when s.other < 0.4 then round((0.001 + 5 * power(greatest(s.chance, 0.1), 40))::numeric, 6) end",
        "ended_at": "p.ended_at + s.shift + make_interval(secs => 200000 * power(greatest(s.other, 0.1), 60))",
        "error": """case when p.state = 'failed' then p.error || jsonb_build_object(
            'message', (%(messages)s::text[])[1 + floor(power(s.other, 2) * 40)::int],
            'kind', (%(keys)s::text[])[1 + floor(power(s.other, 2) * 40)::int]) else p.error end""",
    },
    "run_search": {"value": "case when p.value like '%%@%%' then 'buyer' || s.id || '@example.com' else 'order-' || s.id end"},
    "attempt": {"cost": "case when s.other < 0.4 then 0.001 end"},
    "wait": {"due_at": "case when p.due_at is not null and p.state = 'open' then s.due else p.due_at + s.shift end"},
    "dispatch": {"version_id": "s.version_id", "due_at": "case when p.due_at is not null then s.due end"},
    "approval": {"run_id": "s.id"},
    "outbox": {"message_id": "'<' || s.id || '-' || p.id || '@bench.example>'"},
}  # fmt: skip
"""Table -> column -> what a copy has instead of its pattern's value; `s` is its row of the plan."""

APPROVALS = """
insert into approval (wait_id, {columns}) select w.id, {values} from seed s join wait w on w.run_id = s.id and w.kind = 'approval'
join seed_approval p on p.run_id = s.pattern where s.id between %(least)s and %(most)s
"""
RECIPIENTS = """
insert into recipient (approval_id, token_hash, {columns})
select a.wait_id, md5(s.id::text || p.id) || md5(p.id::text || s.id), {values} from seed s join approval a on a.run_id = s.id
join seed_approval o on o.run_id = s.pattern join seed_recipient p on p.approval_id = o.wait_id
where s.id between %(least)s and %(most)s
"""
# Of the unfinished runs a few are in a worker's hands, and a few are due.
HELD = """
update dispatch d set state = 'claimed', token = nextval('claim_token'), worker_id = %s,
    leased_until = clock_timestamp() + interval '30 days'
from seed s where s.id = d.run_id and d.state = 'waiting' and s.chance < 0.03
"""
DUE = """
update dispatch d set state = 'ready', due_at = holdfast_now() - interval '5 minutes'
from seed s where s.id = d.run_id and d.state = 'waiting' and s.chance between 0.03 and 0.06
"""
# They wait no more.
NO_RECIPIENTS = """
delete from recipient r using approval a, dispatch d where a.wait_id = r.approval_id and d.run_id = a.run_id and d.state <> 'waiting'
"""
NO_APPROVALS = "delete from approval a using dispatch d where d.run_id = a.run_id and d.state <> 'waiting'"
NO_WAITS = "delete from wait w using dispatch d where d.run_id = w.run_id and w.state = 'open' and d.state <> 'waiting'"
# What a person has run again.
AGAIN = """
update run r set rerun_of_id = s.id - 1 from seed s join run f on f.id = s.id - 1
where r.id = s.id and r.state = 'succeeded' and f.state = 'failed' and s.chance > 0.9
"""


def seed(
    patterns: list[Pattern], versions: list[Version], rare: Version, count: int,
    say: Callable[[str], None] = lambda words: None,
) -> tuple[int, int]:
    """So many copies of the patterns, spread over the flows of `versions`, the first of which has most. `rare` gets the
    oldest thousandth of them. Gives the first and the last number."""
    with connection.cursor() as cursor:
        cursor.execute("set synchronous_commit = off")
        cursor.execute("select setseed(0.4), max(id) from run")
        _, first = cursor.fetchone()
        cursor.execute(PLAN, {
            "first": first, "count": count, "seconds": DAYS * 86_400, "patterns": _spread(patterns), "flows": len(versions),
            "versions": [one.pk for one in versions], "rare": count // 1000, "rare_version": rare.pk,
        })  # fmt: skip
        cursor.execute("alter table seed add primary key (id)")
        _keep_patterns(cursor, [one.run for one in patterns])
        cursor.execute("analyze seed")
        for least in range(first + 1, first + count + 1, BLOCK):
            most = min(least + BLOCK - 1, first + count)
            _block(cursor, least, most)
            say(f"{most - first:,} of {count:,} runs are there")
        cursor.execute(HELD, [Worker.objects.create(cluster="bench", host="gone", pid=1, slots=500).pk])
        for statement in (DUE, NO_RECIPIENTS, NO_APPROVALS, NO_WAITS, AGAIN):
            cursor.execute(statement)
        kept = [f"seed_{model._meta.db_table}" for model in (Run, *TABLES, *ASKED)]
        cursor.execute(f"drop table seed, {', '.join(kept)}")
        cursor.execute("select setval(pg_get_serial_sequence('run', 'id'), %s)", [first + count])
        cursor.execute("set synchronous_commit = on")
    return first + 1, first + count


def _keep_patterns(cursor: Any, runs: list[int]) -> None:
    """Tables with the rows of the patterns alone: to find them among the copies would take longer with every block."""
    for model in (Run, *TABLES, Approval):
        table, key = model._meta.db_table, "id" if model is Run else "run_id"
        cursor.execute(f"create unlogged table seed_{table} as select * from {table} where {key} = any(%s)", [runs])
    asked = "approval_id in (select wait_id from seed_approval)"
    cursor.execute(f"create unlogged table seed_recipient as select * from recipient where {asked}")


def _block(cursor: Any, least: int, most: int) -> None:
    kinds = messages()
    given = {"least": least, "most": most, "messages": [text for text, _ in kinds], "keys": [key for _, key in kinds]}
    for model in (Run, *TABLES):
        columns = _columns(model, {"id", "run_id"})
        table, key = model._meta.db_table, "id" if model is Run else "run_id"
        cursor.execute(
            f"insert into {table} ({key}, {', '.join(columns)}) select s.id, {', '.join(columns.values())} "
            f"from seed s join seed_{table} p on p.{key} = s.pattern where s.id between %(least)s and %(most)s order by s.id", given,
        )  # fmt: skip
    for model, statement in ((Approval, APPROVALS), (Recipient, RECIPIENTS)):
        columns = _columns(model, {"id", "wait_id", "approval_id", "token_hash"})
        cursor.execute(statement.format(columns=", ".join(columns), values=", ".join(columns.values())), given)


def _columns(model: type[Model], without: set[str]) -> dict[str, str]:
    """Column -> the expression of its value in a copy: times move with the run, what is its own is made, the rest stays."""
    own = OWN.get(model._meta.db_table, {})
    return {
        field.column: own.get(field.column) or f"p.{field.column}{' + s.shift' if isinstance(field, DateTimeField) else ''}"
        for field in model._meta.local_concrete_fields
        if field.column is not None and field.column not in without
    }


def _spread(patterns: list[Pattern]) -> list[int]:
    """Ten thousand places among which each pattern has its share; the first pattern has what is left."""
    places = [one.run for one in patterns[1:] for _ in range(max(1, round(one.share * 10_000)))]
    return [patterns[0].run] * (10_000 - len(places)) + places


def messages() -> list[tuple[str, str]]:
    """(message, key of its kind) of each kind of error."""
    names = ["stock is locked", "no such customer", "amount is not a number", "address is refused", "the answer is not JSON"]
    texts = [f"{names[n % len(names)]} at place {chr(97 + n // len(names))} ({n} of {n + 7000})" for n in range(KINDS)]
    return [(text, kind_of({"step": "stock", "message": text})) for text in texts]
