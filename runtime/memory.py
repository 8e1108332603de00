"""What a run remembers when somebody claims it: the rows of its open iterations, and no others.

The cost follows the definition, not the history: a loop's frame names the open iterations, each names a scope, and results,
attempts and waits are read by scope. Runs claimed together are read together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from .states import WaitKind, WaitState


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Stands for a large output until a step reads it."""

    path: str
    take: int


@dataclass(slots=True)
class Result:
    take: int
    state: str
    output: Any
    error: dict[str, Any] | None


@dataclass(slots=True)
class PastAttempt:
    n: int
    operation: str
    outcome: str | None
    error: str | None
    started_at: datetime
    token: int


@dataclass(slots=True)
class PastWait:
    id: int
    kind: str
    n: int
    state: str
    outcome: dict[str, Any] | None
    data: dict[str, Any]
    due_at: datetime | None


@dataclass(slots=True)
class Place:
    """What was begun at a path and has no result yet, for its newest take."""

    take: int = 1
    attempts: list[PastAttempt] = field(default_factory=list)
    waits: list[PastWait] = field(default_factory=list)
    seed: str = ""
    """Of a take that goes on with a call of another run: what that one's keys are made from (`paths.key_from`)."""

    def move_to(self, take: int) -> bool:
        """Make this the place's take if it is the newest. Returns whether rows of that take count."""
        if take > self.take:
            self.take, self.attempts, self.waits, self.seed = take, [], [], ""
        return take == self.take

    def wait(self, *kinds: str, n: int | None = None) -> PastWait | None:
        """The newest wait of one of these kinds."""
        if not self.waits:
            return None
        found = [wait for wait in self.waits if wait.kind in kinds and (n is None or wait.n == n)]
        return max(found, key=lambda wait: wait.n, default=None)


@dataclass(slots=True)
class FrameState:
    """A loop's place; the interpreter changes it as it goes."""

    take: int
    kind: str
    total: int | None
    cursor: int = 0
    open: list[int] = field(default_factory=list)
    succeeded: int = 0
    failed: int = 0


@dataclass(slots=True)
class Memory:
    results: dict[str, Result] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    frames: dict[str, FrameState] = field(default_factory=dict)

    def place(self, path: str) -> Place:
        place = self.places.get(path)
        if place is None:
            place = self.places[path] = Place(self._first_take(path))
        return place

    def take(self, path: str) -> int:
        """The take of a step that has no attempts or waits of its own: one more than what people had done again."""
        place = self.places.get(path)
        return place.take if place else self._first_take(path)

    def _first_take(self, path: str) -> int:
        """What is in a loop that is done again begins with the loop's take: of iterations that are not open nothing is
        remembered."""
        loop = self.frames.get(path[: path.rfind("[")]) if "[" in path else None
        return loop.take if loop else 1

    def open_waits(self) -> dict[int, PastWait]:
        """By id, what is remembered as still waited for."""
        return {wait.id: wait for place in self.places.values() for wait in place.waits if wait.state == WaitState.OPEN}

    def over_since(self) -> list[datetime]:
        """When each wait was due that ended because its time had come, and that nobody acted upon yet."""
        waits = (wait for place in self.places.values() for wait in place.waits)
        return [wait.due_at for wait in waits if wait.due_at and wait.outcome and wait.outcome["by"] == "due"]


# The open loops and parallels of some runs.
FRAMES = """
select run_id, path, take, kind, total, cursor, open, succeeded, failed from frame where run_id = any(%(runs)s)
"""
# Scopes that can be seen: the root, and each open iteration.
SCOPES = """
with scopes as materialized (
    select unnest(%(runs)s::bigint[]) as run_id, '' as scope
    union all
    select run_id, path || '[' || index || ']' from frame, jsonb_array_elements_text(open) as index
    where run_id = any(%(runs)s) and kind = 'loop'
)
"""
RESULTS = SCOPES + """
select r.run_id, r.path, r.take, r.state, r.superseded, r.error,
       case when '*' = any(%(referenced)s) or r.step = any(%(referenced)s) or r.step = any(%(always)s) then r.output end,
       r.output_size
from scopes s join step_result r on r.run_id = s.run_id and r.scope = s.scope
"""
ATTEMPTS = SCOPES + """
select a.run_id, a.path, a.take, a.seed, a.n, a.operation, a.outcome, a.error, a.started_at, a.token
from scopes s join attempt a on a.run_id = s.run_id and a.scope = s.scope
where not exists (select from step_result r where r.run_id = a.run_id and r.scope = a.scope and r.path = a.path
                  and not r.superseded)
order by a.run_id, a.path, a.n
"""
WAITS = SCOPES + """
select w.run_id, w.path, w.take, w.id, w.kind, w.n, w.state, w.outcome, w.data, w.due_at
from scopes s join wait w on w.run_id = s.run_id and w.scope = s.scope
where w.state in ('open', 'resolved')
  and not exists (select from step_result r where r.run_id = w.run_id and r.scope = w.scope and r.path = w.path
                  and not r.superseded)
order by w.run_id, w.path, w.n
"""
CHUNK = "select items from frame_chunk where run_id = %s and path = %s and take = %s and n = %s"
# What the steps of one iteration gave.
GIVEN = """
select r.step, coalesce(b.content::json, r.output), r.error from step_result r
left join blob b on r.output_size is not null and (b.run_id, b.path, b.take) = (r.run_id, r.path, r.take)
where r.run_id = %s and r.scope = %s and not r.superseded order by length(r.path) desc
"""
BLOB = "select content::json from blob where run_id = %s and path = %s and take = %s"
FILE = "select content from step_file where run_id = %s and key = %s"
VALUES = "select index, value from frame_value where run_id = %s and path = %s and take = %s order by index"


async def load(
    connection: psycopg.AsyncConnection, runs: list[int], referenced: list[str], always: list[str]
) -> dict[int, Memory]:
    """Run id -> memory. Outputs come for the steps `referenced` by expressions and `always` (conditions: the lane)."""
    memories = {run_id: Memory() for run_id in runs}
    parameters = {"runs": runs, "referenced": referenced, "always": always}
    async with connection.pipeline():
        frames = await connection.execute(FRAMES, parameters)
        results = await connection.execute(RESULTS, parameters)
        attempts = await connection.execute(ATTEMPTS, parameters)
        waits = await connection.execute(WAITS, parameters)
    for run_id, path, *frame in await frames.fetchall():
        memories[run_id].frames[path] = FrameState(*frame)
    for run_id, path, take, state, superseded, error, output, size in await results.fetchall():
        if size is not None:
            output = Elsewhere(path, take)
        _remember_result(memories[run_id], path, Result(take, state, output, error), superseded)
    for run_id, path, take, seed, *attempt in await attempts.fetchall():
        place = memories[run_id].place(path)
        if place.move_to(take):
            place.attempts.append(PastAttempt(*attempt))
            place.seed = seed or place.seed
    for run_id, path, take, *wait in await waits.fetchall():
        _remember_wait(memories[run_id].place(path), take, PastWait(*wait))
    return memories


def _remember_result(memory: Memory, path: str, result: Result, superseded: bool) -> None:
    if superseded:
        memory.place(path).move_to(result.take + 1)
    else:
        memory.results[path] = result


def _remember_wait(place: Place, take: int, wait: PastWait) -> None:
    if place.move_to(take):
        place.waits.append(wait)
    if wait.kind == WaitKind.PERSON and wait.outcome and wait.outcome.get("answer") == "again":
        place.move_to(take + 1)
