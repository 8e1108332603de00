"""Runs that were started again: those of one origin, and failures that a later one of them has made good."""

from __future__ import annotations

from django.db import connection
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from runtime.models import Run

MOST = 500
# All runs of the origin of a run, which are the first of them, those that were started again after it, and so on.
FAMILY = """
with recursive up(id, before) as (
    select id, rerun_of_id from run where id = %(run)s
    union select r.id, r.rerun_of_id from up join run r on r.id = up.before
), family(id, state) as (
    select r.id, r.state from up join run r on r.id = up.id where up.before is null
    union select r.id, r.state from family join run r on r.rerun_of_id = family.id
)
select id, state from family where id <> %(run)s limit %(most)s
"""
# Whether a later run of its origin has succeeded. Most runs have no others, and are not looked at further.
MADE_GOOD = """
(("run"."rerun_of_id" is not null or exists (
    select from run a where a.rerun_of_id = "run"."id" and a.rerun_of_id is not null)) and exists (
    with recursive up(id, before) as (
        select "run"."id", "run"."rerun_of_id"
        union select r.id, r.rerun_of_id from up join run r on r.id = up.before
    ), family(id, state) as (
        select up.id, ''::text from up where up.before is null
        union select r.id, r.state::text from family join run r on r.rerun_of_id = family.id
    )
    select from family where state = 'succeeded' and id > "run"."id"
))
"""


def family(run: Run) -> list[tuple[int, str]]:
    """(number, state) of the other runs of its origin, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(FAMILY, {"run": run.pk, "most": MOST})
        return sorted(cursor.fetchall())


def made_good_by(run: Run, others: list[tuple[int, str]]) -> int | None:
    """The latest run of its family that did what this one failed to do: a requeue would do it twice."""
    if run.state != "failed":
        return None
    return max((pk for pk, state in others if state == "succeeded" and pk > run.pk), default=None)


def made_good() -> RawSQL:
    """The same as a condition of a query on runs."""
    return RawSQL(MADE_GOOD, [], output_field=BooleanField())
