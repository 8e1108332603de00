"""Reads what the run page shows: the rows outside loops, a page of each loop's iterations, and the opened iteration's rows.

The cost follows what is shown, not how much the run did: ten thousand iterations are read like ten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from runtime.definition import children
from runtime.models import Attempt, Frame, Run, StepResult, Wait
from runtime.states import UNFINISHED, WaitKind

from .runrows import Iteration, LoopPage, Rows, gathered
from .unpriced import unpriced_scopes

PER_PAGE = 10
LONGEST_LABEL = 40
TELLING = ("name", "title", "label", "full_name", "email", "subject", "company", "key", "sku", "number", "id")
DEEPEST = 24

# What every iteration of a page did: when, what it cost, whether a step failed that nothing caught.
ITERATIONS = """
select scope, min(started_at), max(finished_at), sum(cost), bool_or(state = 'failed' and not step = any(%(caught)s)),
       case when bool_and(kept_from is not null) then max(kept_from) end
from step_result where run_id = %(run)s and scope = any(%(scopes)s) and not superseded group by scope
"""
# What the open iterations of a page wait for.
PARKED = "select scope, kind from wait where run_id = %(run)s and scope = any(%(scopes)s) and state = 'open'"
# Where a loop's first uncaught failure stands: the scopes of its iterations share a prefix.
FIRST_FAILED = """
select scope from step_result
where run_id = %(run)s and scope >= %(prefix)s || '[' and scope < %(prefix)s || '\\' and state = 'failed' and not superseded
  and not step = any(%(caught)s)
order by finished_at limit 1
"""
# How many items an ended loop had: its last chunk tells.
LENGTH = """
select n * 100 + json_array_length(items) from frame_chunk where run_id = %(run)s and path = %(path)s
order by take desc, n desc limit 1
"""
# The items of some iterations; of a loop that ran again, those of its newest take.
ITEMS = """
select asked.path, asked.index, found.item
from unnest(%(paths)s::text[], %(indexes)s::int[]) as asked(path, index) cross join lateral (
    select items -> (asked.index %% 100) as item from frame_chunk
    where run_id = %(run)s and path = asked.path and n = asked.index / 100 order by take desc limit 1
) found
"""
# Whether anything changed that the page could show: one row, read by keys.
FINGERPRINT = """
with scopes as materialized (
    select '' as scope
    union all
    select path || '[' || index || ']' from frame, jsonb_array_elements_text(open) as index
    where run_id = %(run)s and kind = 'loop'
), waiting as materialized (
    select w.* from scopes s join wait w on w.run_id = %(run)s and w.scope = s.scope
)
select r.state, r.ended_at, r.title, r.cost, d.state, d.due_at, d.claims, d.queued,
    (select count(*) from (select from dispatch o where d.queued and o.slot_of = d.slot_of and o.queued
     and o.slot_key = d.slot_key and o.priority = d.priority and o.due_at < d.due_at limit 100) q),
    (select max(id) from log_line where run_id = r.id),
    (select array_agg((path, take, cursor, succeeded, failed, open) order by path) from frame where run_id = r.id),
    (select (count(*), count(*) filter (where superseded)) from scopes s
     join step_result x on x.run_id = r.id and x.scope = s.scope),
    (select (count(*), count(ended_at)) from scopes s join attempt x on x.run_id = r.id and x.scope = s.scope),
    (select (count(*), count(resolved_at), count(*) filter (where state = 'open'), max(due_at)) from waiting),
    (select (count(*), max(viewed_at)) from recipient where approval_id in (select id from waiting where kind = 'approval')),
    (select count(*) from decision where approval_id in (select id from waiting where kind = 'approval')),
    (select count(*) from outbox where run_id = r.id and kind = 'approval' and state = 'sent')
from run r left join dispatch d on d.run_id = r.id where r.id = %(run)s
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asked to see: loop path -> opened iteration (None: none), loop path -> first index of the page."""

    opened: Mapping[str, int | None] = field(default_factory=dict)
    pages: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop met while reading: its definition, where it stands, and its row."""

    step: dict[str, Any]
    path: str
    frame: Frame | None
    ended: bool
    output: Any


def load(run: Run, definition: dict[str, Any], wanted: Wanted = Wanted()) -> Rows:
    """The rows of `run` for its pinned definition; nested loops are read level by level."""
    rows, sequences = Rows(), [("", definition.get("steps") or [])]
    caught = sorted(_caught(definition.get("steps") or []))
    for _ in range(DEEPEST):
        if not sequences:
            break
        sequences = _load_level(run, rows, sequences, caught, wanted)
    return rows


def fingerprint(run_id: int) -> str:
    """Changes whenever the run page would show something else; what only grows with the clock does not count. To be asked
    before the run is read: else what changes in between would be taken for shown, and never be."""
    with connection.cursor() as cursor:
        cursor.execute(FINGERPRINT, {"run": run_id})
        return hashlib.sha256(repr(cursor.fetchone()).encode()).hexdigest()[:24]


def _load_level(
    run: Run, rows: Rows, sequences: list[tuple[str, list[dict[str, Any]]]], caught: list[str], wanted: Wanted
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Read the scopes of these sequences, then the pages of the loops in them. Returns the opened bodies."""
    holders = [pair for scope, steps in sequences for pair in _holders(steps, f"{scope}/" if scope else "")]
    scopes = [scope for scope, _ in sequences]
    results = StepResult.objects.filter(run_id=run.pk, scope__in=scopes).defer("input")
    attempts = Attempt.objects.filter(run_id=run.pk, scope__in=scopes)
    waits = Wait.objects.filter(run_id=run.pk, scope__in=scopes)
    frames = Frame.objects.filter(run_id=run.pk, path__in=[path for _, path in holders]) if holders else []
    rows.places.update(gathered(results, attempts, waits, frames))
    loops = [loop for step, path in holders if step["type"] == "loop" and (loop := _met(step, path, rows))]
    bodies = []
    for loop, page in _pages(run, loops, caught, wanted):
        rows.loops[loop.path] = page
        if page.opened is not None:
            bodies.append((f"{loop.path}[{page.opened}]", loop.step.get("steps") or []))
    return bodies


def _holders(steps: list[dict[str, Any]], prefix: str) -> Iterator[tuple[dict[str, Any], str]]:
    """(step, path) of every loop and parallel of one scope; bodies of loops belong to other scopes."""
    for step in steps:
        path = prefix + step["id"]
        if step["type"] in ("loop", "parallel"):
            yield step, path
        for lane, inner in children(step):
            if lane:
                yield from _holders(inner, f"{path}/{lane}/")


def _caught(steps: list[dict[str, Any]]) -> Iterator[str]:
    """Ids of the steps whose failure does not fail what they stand in."""
    for step in steps:
        if (step.get("on_error") or "fail") != "fail":
            yield step["id"]
        for _, inner in children(step):
            yield from _caught(inner)


def _met(step: dict[str, Any], path: str, rows: Rows) -> _Loop | None:
    place = rows.places.get(path)
    if place is None:
        return None
    return _Loop(step, path, place.frame, place.result is not None, place.result.output if place.result else None)


def _pages(
    run: Run, loops: list[_Loop], caught: list[str], wanted: Wanted
) -> Iterator[tuple[_Loop, LoopPage]]:
    """The page of each loop. Four queries for all of them, and one more for a loop of which something failed."""
    bounds = {loop.path: _bounds(run, loop, caught, wanted) for loop in loops}
    scopes = [f"{path}[{index}]" for path, (_, opened, first, last) in bounds.items() for index in range(first, last)]
    did, parked, unpriced = _did(run, scopes, caught), _parked(run, scopes), unpriced_scopes(run.pk, scopes)
    items = _items(run, {path: range(first, last) for path, (_, _, first, last) in bounds.items()})
    for loop in loops:
        total, opened, first, last = bounds[loop.path]
        iterations = tuple(
            _iteration(run, loop, index, did, parked, unpriced, items.get((loop.path, index), ""))
            for index in range(first, last)
        )
        known = total if total is not None else _begun(loop, total)
        yield loop, LoopPage(
            total=total,
            ended=(loop.frame.succeeded + loop.frame.failed) if loop.frame and not loop.ended else (total or 0),
            iterations=iterations,
            opened=opened if opened is not None and first <= opened < last else None,
            earlier=max(0, first - PER_PAGE) if first > 0 else None,
            later=last if last < known else None,
        )


def _bounds(run: Run, loop: _Loop, caught: list[str], wanted: Wanted) -> tuple[int | None, int | None, int, int]:
    """(total, opened, first, last + 1) of the page: around the opened iteration unless another page was asked for."""
    total = _total(run, loop)
    begun = _begun(loop, total)
    opened = wanted.opened[loop.path] if loop.path in wanted.opened else _telling(run, loop, caught)
    known = total if total is not None else begun
    first = wanted.pages.get(loop.path, (opened or 0) // PER_PAGE * PER_PAGE)
    first = max(0, min(first, max(0, known - 1)))
    return total, opened, first, min(first + PER_PAGE, known)


def _total(run: Run, loop: _Loop) -> int | None:
    if loop.frame is not None and not loop.ended:
        return loop.frame.total
    for key in ("count", "total", "iterations"):
        if isinstance(loop.output, dict) and isinstance(loop.output.get(key), int):
            return loop.output[key]
    with connection.cursor() as cursor:
        cursor.execute(LENGTH, {"run": run.pk, "path": loop.path})
        row = cursor.fetchone()
    return row[0] if row else 0


def _begun(loop: _Loop, total: int | None) -> int:
    return loop.frame.cursor if loop.frame is not None and not loop.ended else total or 0


def _telling(run: Run, loop: _Loop, caught: list[str]) -> int | None:
    """The iteration to open unasked: the one that failed, else the first that is open, else none."""
    failed = loop.frame is not None and loop.frame.failed or run.state == "failed"
    if failed:
        with connection.cursor() as cursor:
            cursor.execute(FIRST_FAILED, {"run": run.pk, "prefix": loop.path, "caught": caught})
            if row := cursor.fetchone():
                return int(re.match(r"\d+", row[0][len(loop.path) + 1 :])[0])
    if loop.frame is not None and not loop.ended and loop.frame.open:
        return min(int(index) for index in loop.frame.open)
    return None


def _did(run: Run, scopes: list[str], caught: list[str]) -> dict[str, tuple]:
    if not scopes:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(ITERATIONS, {"run": run.pk, "scopes": scopes, "caught": caught})
        return {scope: tuple(rest) for scope, *rest in cursor.fetchall()}


def _parked(run: Run, scopes: list[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    if scopes:
        with connection.cursor() as cursor:
            cursor.execute(PARKED, {"run": run.pk, "scopes": scopes})
            for scope, kind in cursor.fetchall():
                found.setdefault(scope, set()).add(kind)
    return found


def _items(run: Run, pages: dict[str, range]) -> dict[tuple[str, int], str]:
    """(loop, index) -> the word for its item."""
    asked = [(path, index) for path, indexes in pages.items() for index in indexes]
    if not asked:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(ITEMS, {"run": run.pk, "paths": [path for path, _ in asked], "indexes": [index for _, index in asked]})
        return {(path, index): label_of(item) for path, index, item in cursor.fetchall()}


def label_of(item: Any) -> str:
    """A short word for an item: the item itself, or what in it names it best."""
    if isinstance(item, dict):
        plain = {str(key).lower(): value for key, value in item.items() if isinstance(value, str | int | float) and value != ""}
        best = next((key for name in TELLING for key in plain if key == name), None)
        item = plain.get(best) if best else next(iter(plain.values()), None)
    if item is None or isinstance(item, list | dict | bool):
        return ""
    text = " ".join(str(item).split())
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def _iteration(
    run: Run, loop: _Loop, index: int, did: dict[str, tuple], parked: dict[str, set[str]], unpriced: set[str], label: str
) -> Iteration:
    scope = f"{loop.path}[{index}]"
    started, ended, cost, failed, kept_from = did.get(scope, (None, None, None, False, None))
    is_open = loop.frame is not None and not loop.ended and index in map(int, loop.frame.open)
    if failed:
        state = "failed"
    elif is_open and run.state not in UNFINISHED:
        state = "cancelled"
    elif is_open:
        kinds = parked.get(scope, set())
        state = "attention" if WaitKind.PERSON in kinds else "waiting" if kinds else "running"
    else:
        state = "succeeded" if index < _begun(loop, loop.frame.total if loop.frame else None) or loop.ended else "queued"
    ended = None if is_open and state != "failed" else ended
    return Iteration(index, state, started, ended, cost, scope in unpriced, label, None if is_open else kept_from)
