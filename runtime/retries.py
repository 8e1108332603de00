"""Retrying a step of a run that is there: what it would repeat, told beforehand, and doing it.

What is done again is done as the next take of its step. Old takes stay as history: their results are superseded, and what
was begun without a result is closed by a row that is superseded from the start, so that no take is ever used twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from .courses import Course
from .models import Run
from .paths import key_of, scope_of, scope_sql, step_of, step_sql

MOST_LISTED = 200

# What failed and was not borne: not what an error lane took care of, nor what is inside of such a container, nor what stands
# in something that has ended well all the same.
FAILED = """
select failed.path from step_result failed
where run_id = %(run)s and state = 'failed' and not superseded and not coalesce(error @> '{"handled": true}', false)
  and not exists (
    select from step_result handled, left(handled.path, -length('/on_error')) as box
    where handled.run_id = failed.run_id and handled.state = 'failed' and not handled.superseded
      and right(handled.path, length('/on_error')) = '/on_error' and not starts_with(failed.path, handled.path || '/')
      and (starts_with(failed.path, box || '/') or starts_with(failed.path, box || '[')))
  and not exists (
    select from step_result box
    where box.run_id = failed.run_id and box.state = 'succeeded' and not box.superseded
      and starts_with(box.path, %(within)s)
      and (box.output ->> 'lanes' is not null and starts_with(failed.path, box.path || '/')
           or box.output ->> 'count' is not null and starts_with(failed.path, box.path || '[')))
  and starts_with(failed.path, %(within)s)
"""
# Of these, those that stop the run: in no loop, or in an iteration that is open.
STOPS = FAILED + """
  and (scope = '' or scope in (
    select f.path || '[' || index || ']' from frame f, jsonb_array_elements_text(f.open) as index
    where f.run_id = failed.run_id))
"""
LANES_ENDED = """
select output::jsonb -> 'ended' from step_result
where run_id = %(run)s and path = %(path)s and state = 'succeeded' and not superseded
"""
# Whether a row runs again: it failed itself, or stands at or below a root.
AGAIN = """
(path = any(%(failed)s) or exists (select from unnest(%(roots)s::text[]) root
    where path = root or starts_with(path, root || '/') or starts_with(path, root || '[')))
"""
BEGUN = """
select exists (select from step_result where run_id = %(run)s and not superseded and {at})
    or exists (select from attempt where run_id = %(run)s and {at})
    or exists (select from wait where run_id = %(run)s and {at})
    or exists (select from frame where run_id = %(run)s and {at})
""".format(at="(path = %(path)s or starts_with(path, %(path)s || '[') or starts_with(path, %(path)s || '/'))")
HANDLED = """
select path from step_result where run_id = %(run)s and not superseded and path = any(%(boxes)s) order by path limit 1
"""
IN_FLIGHT = "select path, n from attempt where run_id = %(run)s and ended_at is null order by started_at limit 1"

# Steps with a result, those that run again and those that keep it, by step and number of places.
RESULTS = f"""
select again, step, count(*), min(path), max(state) from (
    select {AGAIN} as again, step, path, state from step_result where run_id = %(run)s and not superseded
      and right(path, length('/on_error')) <> '/on_error'
) told group by again, step order by min(path)
"""
# Places without a result that were begun and begin anew.
UNDONE = f"""
select distinct path from (
    select path, scope from attempt where run_id = %(run)s and {AGAIN}
    union all select path, scope from wait where run_id = %(run)s and path <> '' and {AGAIN}
) begun where not exists (
    select from step_result r
    where r.run_id = %(run)s and r.scope = begun.scope and r.path = begun.path and not r.superseded)
order by path limit %(most)s
"""
# Calls that were made, and will be made again as the take after the newest.
CALLS = f"""
select path, max(take) + 1, (array_agg(outcome order by take desc, n desc))[1], count(*) over ()
from attempt where run_id = %(run)s and operation <> 'check' and {AGAIN}
group by path order by path limit %(most)s
"""
# Runs that will be started again.
CHILDREN = f"""
select path, count(*) over () from wait where run_id = %(run)s and kind = 'child' and {AGAIN}
group by path order by path limit %(most)s
"""
MAILS = f"""
select path, array_agg(distinct recipient order by recipient), count(*) over ()
from outbox where run_id = %(run)s and {AGAIN} group by path order by path limit %(most)s
"""

# Loops that run again as a whole, the outermost, with the newest take of anything in them: what is in them begins beyond it,
# for their iterations are not remembered when the run is taken up.
LOOPS = """
with rows as materialized (
    select path, take from step_result where run_id = %(run)s
    union all select path, take from attempt where run_id = %(run)s
    union all select path, take from wait where run_id = %(run)s
    union all select path, take from frame where run_id = %(run)s
), inside as (
    select left(path, length(root) + position('[' in substr(path, length(root) + 1)) - 1) as loop, take
    from rows join unnest(%(roots)s::text[]) root
      on position('[' in substr(path, length(root) + 1)) > 0
     and (starts_with(path, root || '/') or starts_with(path, root || '['))
)
select loop, greatest(max(take), (select max(take) from rows where path = loop)) from inside group by loop
"""
# Close the takes that were begun and have no result.
CLOSE = f"""
insert into step_result (run_id, scope, path, take, step, state, error, token, started_at, finished_at, superseded)
select distinct on (scope, path, take) run_id, scope, path, take,
    {step_sql()}, 'skipped', '{{"message": "Given up for a retry."}}'::jsonb, 0, holdfast_now(), holdfast_now(), true
from (
    select run_id, scope, path, take from attempt where run_id = %(run)s and {AGAIN}
    union all select run_id, scope, path, take from wait where run_id = %(run)s and path <> '' and {AGAIN}
    union all select run_id, {scope_sql()}, path, take from frame where run_id = %(run)s and {AGAIN}
) begun
on conflict (run_id, scope, path, take) do nothing
"""
CLOSE_LOOP = """
insert into step_result (run_id, scope, path, take, step, state, error, token, started_at, finished_at, superseded)
values (%(run)s, %(scope)s, %(path)s, %(take)s, %(step)s, 'skipped', '{"message": "Given up for a retry."}', 0,
        holdfast_now(), holdfast_now(), true)
on conflict (run_id, scope, path, take) do nothing
"""
SUPERSEDE = f"""
update step_result set superseded = true
where run_id = %(run)s and not superseded and ({AGAIN} or path = any(%(reopened)s))
"""
SETTLE = f"""
update attempt set outcome = 'unknown', ended_at = holdfast_now(),
    error = 'Nobody waited for the answer: the step was retried.'
where run_id = %(run)s and outcome is null and {AGAIN}
"""
# A run that a dropped step waits for ends too.
DROP_WAITS = f"""
with dropped as (
    update wait set state = 'cancelled'
    where run_id = %(run)s and state in ('open', 'suspended') and path <> '' and {AGAIN}
    returning id, run_id, kind
)
insert into run_end (run_id, wait_id) select run_id, id from dropped where kind = 'child'
"""
# What earlier takes were sent: to the next one the same report is news.
FORGET_SIGNALS = f"delete from signal where run_id = %(run)s and wait_id is not null and {AGAIN}"
FORGET_NAMED_SIGNALS = f"""
delete from named_signal where wait_id in (select id from wait where run_id = %(run)s and kind = 'callback' and {AGAIN})
"""
DROP_FRAMES = f"delete from frame where run_id = %(run)s and {AGAIN}"
# A loop that goes on with one iteration opened again. One that has ended gets its place back as it was when it ended.
OPEN_ITERATION = """
update frame set open = open || to_jsonb(%(index)s), succeeded = succeeded - 1 + %(bad)s, failed = failed - %(bad)s
where run_id = %(run)s and path = %(path)s and not open @> to_jsonb(%(index)s) and cursor > %(index)s
"""
FRAME_AGAIN = """
insert into frame (run_id, path, take, kind, total, cursor, open, succeeded, failed, started_at)
select run_id, path, coalesce(
        (select max(take) from frame_chunk c where c.run_id = r.run_id and c.path = r.path),
        (select min(take) from step_result i
         where i.run_id = r.run_id and starts_with(i.path, r.path || '[') and not superseded),
        take),
    'loop', case when %(counted)s then (output ->> 'count')::int end, (output ->> 'count')::int,
    jsonb_build_array(%(index)s),
    (output ->> 'succeeded')::int - 1 + %(bad)s, (output ->> 'failed')::int - %(bad)s, started_at
from step_result r
where run_id = %(run)s and path = %(path)s and not superseded and (output ->> 'count')::int > %(index)s
on conflict do nothing
"""
# What the iteration gave, and what was told of its failure.
FORGET_VALUE = """
delete from frame_value where run_id = %(run)s and path = %(path)s and index in (%(index)s, -1 - %(index)s)
"""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something outside that happens once more: a call with a new key, or mails."""

    path: str
    key: str = ""
    outcome: str = ""
    recipients: tuple[str, ...] = ()


@dataclass(slots=True)
class Forecast:
    """What an act repeats. `again` and `kept` are (step id, number of places, first path, state)."""

    again: list[tuple[str, int, str, str]] = field(default_factory=list)
    kept: list[tuple[str, int, str, str]] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    more_effects: int = 0


def scope_of_act(run_id: int, course: Course | None) -> dict[str, Any]:
    """The parameters of the statements here. What failed unhandled is done again in any case, or the run would fail anew. An
    iteration whose failure the loop bore, and lanes that a parallel did not wait for, cannot go on in the middle: all of them
    is done again."""
    roots = list(course.roots) if course else []
    for loop, index, _ in course.loops if course else ():
        if _failed_within(run_id, loop, index):
            roots.append(f"{loop}[{index}]")
    for path in course.parallels if course else ():
        roots += [f"{path}/{lane}" for lane in _lanes_left(run_id, path, course)]
    return {
        "run": run_id,
        "roots": roots,
        "failed": [path for (path,) in rows(STOPS, {"run": run_id, "within": ""})],
        "reopened": [*course.parallels, *(path for path, *_ in course.loops)] if course else [],
        "most": MOST_LISTED,
    }


def _failed_within(run_id: int, loop: str, index: int) -> bool:
    """Whether this iteration has ended with a failure."""
    is_open = "select from frame where run_id = %(run)s and path = %(path)s and open @> to_jsonb(%(index)s)"
    if rows(f"select exists ({is_open})", {"run": run_id, "path": loop, "index": index})[0][0]:
        return False
    return bool(rows(FAILED, {"run": run_id, "within": f"{loop}[{index}]/"}))


def _lanes_left(run_id: int, path: str, course: Course) -> list[str]:
    """The lanes of a parallel that has ended without them."""
    ended = next((found for (found,) in rows(LANES_ENDED, {"run": run_id, "path": path})), None)
    return [lane for lane in course.lanes.get(path, ()) if lane not in ended] if ended is not None else []


def forecast(run: Run, course: Course | None) -> Forecast:
    """What a retry of this course would repeat; without one, what a requeue would."""
    return _forecast(run, scope_of_act(run.pk, course))


def forecast_below(run: Run, roots: list[str]) -> Forecast:
    """What would be repeated if all at and below these paths ran again, and nothing else."""
    return _forecast(run, {"run": run.pk, "roots": roots, "failed": [], "reopened": [], "most": MOST_LISTED})


def _forecast(run: Run, given: dict[str, Any]) -> Forecast:
    told = Forecast()
    for again, *row in rows(RESULTS, given):
        (told.again if again else told.kept).append(tuple(row))
    told.undone = [path for (path,) in rows(UNDONE, given)]
    calls, mails, started = (rows(sql, given) for sql in (CALLS, MAILS, CHILDREN))
    loops = dict(rows(LOOPS, given))
    for path, take, outcome, _ in calls:
        take = max(take, *(newest + 1 for loop, newest in loops.items() if path.startswith(f"{loop}[")), 1)
        told.effects.append(Effect(path, key_of(run.pk, run.created_at, path, take), outcome or "open"))
    told.effects += [Effect(path, recipients=tuple(recipients)) for path, recipients, _ in mails]
    told.effects += [Effect(path, outcome="run") for path, _ in started]
    told.more_effects = sum(found[0][-1] - len(found) for found in (calls, mails, started) if found)
    return told


def begun(run_id: int, path: str) -> bool:
    return rows(BEGUN, {"run": run_id, "path": path})[0][0]


def handled_box(run_id: int, course: Course) -> str:
    """The path of a container around the step whose failure an error lane took care of, or nothing."""
    found = rows(HANDLED, {"run": run_id, "boxes": [f"{box}/on_error" for box in course.boxes]})
    return found[0][0].removesuffix("/on_error") if found else ""


def in_flight(run_id: int) -> tuple[str, int] | None:
    """(path, n) of a call that is under way."""
    found = rows(IN_FLIGHT, {"run": run_id})
    return found[0] if found else None


def reopen(run_id: int, course: Course | None) -> None:
    """Make ready for the next take what runs again. The caller holds the run's lock, and nobody else can write for it."""
    given = scope_of_act(run_id, course)
    for loop, index, step in course.loops if course else ():
        at = given | {"path": loop, "index": index, "counted": bool((step.get("config") or {}).get("items")),
                      "bad": int(_failed_within(run_id, loop, index))}
        execute(OPEN_ITERATION, at)
        execute(FRAME_AGAIN, at)
        execute(FORGET_VALUE, at)
    for loop, newest in rows(LOOPS, given):
        execute(CLOSE_LOOP, {"run": run_id, "scope": scope_of(loop), "path": loop, "take": newest, "step": step_of(loop)})
    for statement in (CLOSE, SUPERSEDE, SETTLE, DROP_WAITS, FORGET_SIGNALS, FORGET_NAMED_SIGNALS, DROP_FRAMES):
        execute(statement, given)


def rows(sql: str, parameters: dict[str, Any]) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def execute(sql: str, parameters: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.rowcount
