"""Runs that were started again have one origin: a re-run that begins with the results of another may have only one that goes on."""

from __future__ import annotations

from django.db import connection

# All runs of one origin: `up` are a run and those that it was started after, `family` the first of these and all that were
# started after it, and so on.
CHAIN = """
with recursive up(id, before) as (
    select {run}
    union select r.id, r.rerun_of_id from up join run r on r.id = up.before
), family(id, state, test) as (
    select r.id, r.state, r.test from up join run r on r.id = up.id where up.before is null
    union select r.id, r.state, r.test from family join run r on r.rerun_of_id = family.id
)
"""
# Those that came later, or were taken up again since, and were not given up, the newest.
LATER = CHAIN.format(run="id, rerun_of_id from run where id = %(run)s") + """
select f.id from family f join run r on r.id = f.id join run this on this.id = %(run)s
where f.id <> this.id and f.state <> 'cancelled' and f.test = this.test
  and (f.id > this.id or r.ended_at is null or r.ended_at > this.created_at)
order by f.id desc limit 1
"""
# Those that were begun with results of this one, and with results of these, and were not given up, the newest.
CONTINUED = """
with recursive continued(id, state) as (
    select %(run)s::bigint, 'cancelled'::varchar
    union select r.id, r.state from continued join run r on r.rerun_of_id = continued.id
    where exists (select from step_result where run_id = r.id and kept_from is not null)
)
select id from continued where state <> 'cancelled' order by id desc limit 1
"""


def later_of(run_id: int) -> int | None:
    """The newest run of its origin that was begun, or taken up again, after it, and was not cancelled."""
    return _first(LATER, run_id)


def continued_by(run_id: int) -> int | None:
    """The newest run that goes on with what this one did and was not cancelled."""
    return _first(CONTINUED, run_id)


def _first(sql: str, run_id: int) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"run": run_id})
        row = cursor.fetchone()
    return row and row[0]
