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
# Those that came later and were not given up, the newest.
LATER = CHAIN.format(run="id, rerun_of_id from run where id = %(run)s") + """
select id, state from family where state <> 'cancelled' and id > %(run)s and test = (select test from run where id = %(run)s)
order by id desc limit 1
"""


def later_of(run_id: int) -> tuple[int, str] | None:
    """(number, state) of the newest later run of its origin that was not cancelled."""
    with connection.cursor() as cursor:
        cursor.execute(LATER, {"run": run_id})
        return cursor.fetchone()
