"""A run that nobody takes up by itself any more: it is parked for a person, who may requeue or cancel it."""

from __future__ import annotations

# What follows `parked as (…)`, which has taken the runs from everybody and gives `run_id`, `deaths` and `why`.
ASK = """
asked as (
    insert into wait (run_id, scope, path, take, kind, n, state, data, created_at)
    select run_id, '', '', 1, 'person', coalesce((select max(n) from wait w where w.run_id = parked.run_id and w.path = ''), 0) + 1,
           'open', json_build_object('reason', 'quarantine', 'deaths', deaths, 'why', why), holdfast_now() from parked
), told as (
    insert into log_line (run_id, path, level, text, at) select run_id, '', 'error', 'Quarantined: ' || why, holdfast_now() from parked
)
update run set state = 'attention' from parked where run.id = any(array[parked.run_id]) and (run.state = 'open') is true
"""
# It killed its workers.
KILLER = f"""
with parked as (
    update dispatch set state = 'waiting', due_at = null where run_id = %s and token is null
    returning run_id, deaths, 'its worker died ' || deaths || ' times while it ran nothing else.' as why
), {ASK}
"""
