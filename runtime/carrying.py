"""Copying what is kept (`keeping.py`) into the new run, which needs nothing of the old one then."""

from __future__ import annotations

import json

from .keeping import Kept
from .models import Run
from .paths import moment
from .retries import execute

# Of a loop that goes on, what is in its open iterations is named one by one.
KEPT = """
(path = any(%(places)s) or exists (select from unnest(%(below)s::text[]) as box where starts_with(path, box))
 or exists (select from jsonb_to_recordset(%(loops)s::jsonb) as loop(path text, open int[])
            where starts_with(kept.path, loop.path || '[')
              and not exists (select from unnest(open) as index where starts_with(kept.path, format('%%s[%%s]', loop.path, index)))))
"""
# The rows of what is kept, all of one moment. They cost the new run no time and no money.
RESULTS = f"""
insert into step_result (run_id, scope, path, take, step, state, input, output, output_size, error, token, started_at, finished_at,
                         superseded, kept_from)
select %(to)s, scope, path, take, step, state, input, output, output_size, error, 0, moment.at, moment.at,
       false, coalesce(kept_from, run_id)
from (select holdfast_now() as at) moment, step_result kept where run_id = %(run)s and not superseded and {KEPT}
"""
BLOBS = """
insert into blob (run_id, path, take, content)
select %(to)s, path, take, content from blob b where run_id = %(run)s and exists (
    select from step_result r where r.run_id = %(to)s and r.path = b.path and r.take = b.take)
"""
FILES = """
insert into step_file (run_id, path, take, key, content)
select %(to)s, path, take, key, content from step_file f where run_id = %(run)s and exists (
    select from step_result r where r.run_id = %(to)s and r.path = f.path and r.take = f.take)
"""
# Where loops stand, and what they went through and collected, so that an iteration can run again.
STANDS = """
insert into frame (run_id, path, take, kind, total, cursor, open, succeeded, failed, started_at)
select %(to)s, path, take, kind, total, cursor, open, succeeded, failed, holdfast_now()
from frame where run_id = %(run)s and path = any(%(frames)s)
"""
CHUNKS = f"""
insert into frame_chunk (run_id, path, take, n, items)
select %(to)s, path, take, n, items from frame_chunk kept where run_id = %(run)s and (path = any(%(frames)s) or {KEPT})
"""
VALUES = f"""
insert into frame_value (run_id, path, take, index, value)
select %(to)s, path, take, index, value from frame_value kept
where run_id = %(run)s and (path = any(%(frames)s) or path || '[' = any(%(below)s) or path <> all(%(places)s) and {KEPT})
"""
# What is in a loop begins with the loop's take.
TAKE = r"coalesce((select f.take from frame f where f.run_id = %(to)s and f.path = regexp_replace(old.scope, '\[\d+\]$', '')), 1)"
# As the first attempt of the new run, which has no answer. What is made again as it was has the keys that it had.
DOUBT = f"""
insert into attempt (run_id, scope, path, take, n, operation, token, request, outcome, error, started_at, ended_at, seed)
select distinct on (path) %(to)s, scope, path, {TAKE}, 1, operation, 0, request, 'unknown',
    left(format('It may have happened in run %%s: %%s', to_char(run_id, 'FM999,999,999,999'), coalesce(error, 'nobody knows its answer.')), 4000),
    holdfast_now(), holdfast_now(),
    case when path = any(%(same)s) then coalesce(
        (select seed from attempt a where (a.run_id, a.scope, a.path, a.take) = (old.run_id, old.scope, old.path, old.take)
                                      and seed is not null),
        format('%%s|%%s|%%s|%%s', run_id, %(moment)s::text, path, take)) end
from attempt old where run_id = %(run)s and path = any(%(doubts)s) and operation <> 'check'
order by path, take desc, n desc
"""
# The new run waits for them in the place of the old one, which they tell nothing any more.
WAITED_FOR = f"""
insert into wait (run_id, scope, path, take, kind, n, state, data, created_at)
select distinct on (path) %(to)s, scope, path, {TAKE}, kind, 1, 'open', data, holdfast_now()
from wait old where run_id = %(run)s and kind = 'child' and path = any(%(children)s) order by path, take desc, n desc
"""
ADOPTED = """
update run set parent_id = %(to)s from wait w
where w.run_id = %(to)s and w.kind = 'child' and run.id = (w.data ->> 'run')::bigint
"""
# As after a requeue: whoever claims a run that was claimed before reads what it remembers.
REMEMBERS = "update dispatch set claims = 1 where run_id = %(to)s"


def carry(run: Run, to: int, found: Kept) -> int:
    """Copy what is kept into the new run, in the caller's transaction. Returns how many results that were."""
    given = {"run": run.pk, "to": to, "places": found.places, "below": found.below, "same": found.same}
    given |= {"doubts": [*found.doubts, *found.repeats], "children": found.children, "moment": moment(run.created_at)}
    given["frames"] = [path for path, *_ in found.loops]
    given["loops"] = json.dumps([{"path": path, "open": open} for path, open, _ in found.loops])
    number = execute(RESULTS, given)
    for statement in (BLOBS, FILES, STANDS, CHUNKS, VALUES, DOUBT, WAITED_FOR, ADOPTED, REMEMBERS):
        execute(statement, given)
    return number
