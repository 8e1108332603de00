"""A run walked once more by the interpreter itself, without any effect.

Steps that call, wait or ask give what the run remembers of them; conditions, loops, parallels, `set` and `stop` are
evaluated anew. What the interpreter writes stays in memory, and where nothing is remembered the walk waits, as a run
would.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .definition import find
from .execution import Execution, RunRow
from .interpreter import advance, sequence
from .journal import Claim, Row, StaleClaim
from .loops import CHUNK_SIZE
from .memory import CHUNK, GIVEN, VALUES, FrameState, Memory, Result
from .models import FrameChunk, Run, StepResult
from .paths import scopes_of, step_of
from .plan import Node, Plan, make_plan
from .states import RunState, StepState, WaitKind, WaitState
from .steps.base import Context, Done, Outcome, Park, StepError, StepType, Stop

EVALUATED = ("set", "stop")
"""Leaf steps that are run anew: they look at nothing but the names."""

Key = tuple[str, tuple[int, ...]]


def place_of(path: str) -> Key:
    """What a place is known by in another version, where its step may stand in another lane: step and iterations."""
    box, error_lane, _ = path.rpartition("/on_error")
    step = f"{step_of(box)}/on_error" if error_lane and path.endswith("/on_error") else step_of(path)
    return step, tuple(int(number) for number in re.findall(r"\[(\d+)\]", path))


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What a step gave in the walk. `input` is its filled-in config; None for containers."""

    path: str
    state: str
    input: Any
    output: Any
    error: dict[str, Any] | None


@dataclass(slots=True)
class Walked:
    """`state` is None where the walk came to an end because nothing is remembered of the places `missing`."""

    results: dict[Key, Evaluated] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    state: str | None = None
    output: Any = None
    error: dict[str, Any] | None = None
    title: str = ""


class NotRemembered(ValueError):
    """The run does not tell what its step saw; the message says why."""


def remembered(run: Run) -> dict[Key, StepResult]:
    """The results of a run that stand."""
    return {place_of(row.path): row for row in StepResult.objects.filter(run_id=run.pk, superseded=False)}


def replayed(run: Run, definition: dict[str, Any], memo: dict[Key, StepResult]) -> Walked:
    """The run on this definition. Raises PlanError for one that cannot be run."""
    plan, memory = _plan(run, definition), Memory()
    walked, last = Walked(), _ended_by(run, memo)
    for node in _nodes(plan.nodes):
        if not node.step.children:
            node.step = _Remembered(node.step, memo, last, walked.missing)
    races = {node.id for node in _nodes(plan.nodes) if node.needed}
    for row in memo.values():
        if row.step in races and not row.path.endswith("/on_error"):  # which lanes were first nobody can evaluate
            memory.results[row.path] = Result(1, row.state, row.value, row.error)
    notes = _Notes()
    asyncio.run(_advanced(_execution(run, plan, memory, notes), notes))
    walked.results = {place_of(row[2]): _evaluated(row) for row in notes.results.values()}
    if notes.end is not None:
        _, _, walked.state, output, error, walked.title, *_ = notes.end
        walked.output, walked.error = _read(output), _read(error)
    return walked


def names_at(run: Run, path: str) -> dict[str, Any]:
    """The names that the step at this path saw. Raises NotRemembered, PlanError.

    What a resume would load is loaded, with only those iterations open that the path lies in; the walk ends at the
    step."""
    plan, notes, caught = _plan(run, run.version.definition), _Notes(), _Catcher()
    memory = _memory_around(run, path, notes)
    found = next((node for node in _nodes(plan.nodes) if node.id == step_of(path)), None)
    if found is None:
        raise NotRemembered(f"Version {run.version} has no step “{step_of(path)}”.")
    for node in _nodes(plan.nodes):
        node.needed = 0
        if not node.step.children:
            node.step = _Remembered(None, {}, None, [])
    if found.type == "condition":
        found.lanes[0].when = caught
    elif found.step.children:
        raise NotRemembered("Loops and parallels cannot be run again alone: choose a step inside.")
    else:
        found.config = caught
    asyncio.run(_reached(_execution(run, plan, memory, notes)))
    if caught.names is None:
        raise NotRemembered(f"The run did not come to “{path}”, so nothing is known of its input.")
    return caught.names


def _ended_by(run: Run, memo: dict[Key, StepResult]) -> StepResult | None:
    """The result of the step that ended the run as a success before its steps were through, such as a rejection: no
    other run has an output."""
    last = max(memo.values(), key=lambda row: row.finished_at, default=None)
    if last is None or run.state != RunState.SUCCEEDED or run.output is None or run.output != last.value:
        return None
    return last


def _memory_around(run: Run, path: str, notes: _Notes) -> Memory:
    memory = Memory()
    around = {path[: found.start()]: int(found[1]) for found in re.finditer(r"\[(\d+)\]", path)}
    boxes = {"/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)}
    rows = StepResult.objects.filter(run_id=run.pk, scope__in=scopes_of(path), superseded=False)
    open_again = {*around, *boxes}
    for row in rows.defer("input"):
        # Of what holds the step, conditions and failures that were taken care of lead the way to it.
        leads = isinstance(row.value, dict) and "branch" in row.value or row.state == StepState.FAILED
        if row.path != path and (leads or row.path not in open_again):
            memory.results[row.path] = Result(row.take, row.state, row.value, row.error)
    for loop, index in around.items():
        chunk = FrameChunk.objects.filter(run_id=run.pk, path=loop, n=index // CHUNK_SIZE).order_by("-take").first()
        if chunk is None or index % CHUNK_SIZE >= len(chunk.items):
            step = find(run.version.definition, step_of(loop)) or {}
            if not (step.get("config") or {}).get("while"):
                raise NotRemembered(f"The loop at “{loop}” had no iteration {index + 1:,}.")
        else:
            notes.known[CHUNK, loop] = [(chunk.items,)]
        scope = f"{loop}[{index - 1}]"
        given = StepResult.objects.filter(run_id=run.pk, scope=scope, superseded=False)
        rows = given.values_list("step", "output", "error", "path")
        notes.known[GIVEN, scope] = sorted(rows, key=lambda row: -len(row[3]))
        total = index + 1 if chunk is not None else None
        memory.frames[loop] = FrameState(chunk.take if chunk else 1, "loop", total, index + 1, [index])
    return memory


class _Remembered(StepType):
    """Stands for a leaf step: gives what the run remembers of it, and waits where that is nothing."""

    type = label = icon = category = summary = ""

    def __init__(self, real: StepType | None, memo: dict[Key, StepResult], last: StepResult | None, missing: list[str]):
        self.real, self.memo, self.last, self.missing = real, memo, last, missing

    async def run(self, ctx: Context) -> Outcome:
        row = self.memo.get(place_of(ctx.path))
        evaluated = self.real is not None and self.real.type in EVALUATED
        if evaluated and (row is None or row.state != StepState.SKIPPED):
            return await self.real.run(ctx)
        if row is None:
            self.missing.append(ctx.path)
            return Park(WaitKind.TIMER)
        if row.state == StepState.FAILED:
            raise StepError(row.error.get("message", ""), field=row.error.get("field", ""))
        if row is self.last and not evaluated:
            return Stop(RunState.SUCCEEDED, "", row.value)
        return Done(row.value)


class _Catcher:
    """Stands for a config or an expression: keeps the names that it is evaluated with, and ends the walk."""

    is_static = False
    names: dict[str, Any] | None = None

    def render(self, names: dict[str, Any]) -> Any:
        self.names = dict(names, steps=dict(names["steps"]))
        raise StaleClaim

    evaluate = render


class _Notes:
    """A journal that writes nothing down, and answers what the interpreter asks of the database."""

    def __init__(self) -> None:
        self.results: dict[str, tuple[Any, ...]] = {}
        self.values: dict[str, dict[int, Any]] = {}
        self.known: dict[tuple[str, str], list[tuple]] = {}
        self.end: tuple[Any, ...] | None = None
        self.waits = 0

    def add(self, claim: Claim, rows: Iterable[Row]) -> None:
        for kind, row in rows:
            self._take(kind, row)

    async def commit(self, claim: Claim, rows: list[Row]) -> list[tuple]:
        return [answer for kind, row in rows if (answer := self._take(kind, row))]

    def _take(self, kind: str, row: tuple[Any, ...]) -> tuple | None:
        match kind:
            case "result":
                self.results[row[2]] = row
            case "value":
                self.values.setdefault(row[1], {})[row[3]] = json.loads(row[4])
            case "end":
                self.end = row
            case "wait":
                self.waits += 1
                return "wait", self.waits, row[2], row[3], row[4], row[5], WaitState.OPEN, None, None
            case "release":
                return "release", None
        return None

    def rows_of(self, sql: str, parameters: list[Any]) -> list[tuple]:
        if sql == VALUES:
            return sorted(self.values.get(parameters[1], {}).items())
        if (sql, parameters[1]) in self.known:
            return [row[:3] for row in self.known[sql, parameters[1]]]
        if sql == GIVEN:
            given = [row for row in self.results.values() if row[1] == parameters[1]]
            return [(row[4], _read(row[7]), _read(row[8])) for row in sorted(given, key=lambda row: -len(row[2]))]
        raise LookupError("A walk without effects asks the database for nothing.")


@dataclass
class _Services:
    """What a worker lends to its runs, without an outside."""

    journal: _Notes
    at: datetime
    lease_seconds: float = 0.0

    def now(self) -> datetime:
        return self.at

    async def query(self, sql: str, parameters: Any) -> list[tuple]:
        return self.journal.rows_of(sql, parameters)

    async def connection(self, team_id: int, name: str) -> Any:
        raise StepError("A walk without effects opens no connection.")


def _plan(run: Run, definition: dict[str, Any]) -> Plan:
    workflow = run.workflow
    return make_plan(definition, number=run.version.number, workflow_name=workflow.name, team_id=workflow.team_id)


def _nodes(nodes: list[Node]) -> Iterable[Node]:
    for node in nodes:
        yield node
        for inner in (node.body, node.error_lane, *(lane.nodes for lane in node.lanes)):
            yield from _nodes(inner)


def _execution(run: Run, plan: Plan, memory: Memory, notes: _Notes) -> Execution:
    row = RunRow(run.pk, run.workflow_id, run.input, "", run.test, run.created_at, None)
    return Execution(Claim(run.pk, 0), row, plan, memory, _Services(notes, run.started_at or run.created_at))


async def _advanced(execution: Execution, notes: _Notes) -> None:
    """To the end, or until the walk waits for what nobody remembers."""
    execution.task = asyncio.create_task(advance(execution))
    await asyncio.wait([execution.task])
    if not execution.task.cancelled() and (broke := execution.task.exception()):
        error = {"message": f"Holdfast failed to run this: {type(broke).__name__}: {broke}"}
        notes.end = (0, 0, RunState.FAILED, None, json.dumps(error), "", None, "")


async def _reached(execution: Execution) -> None:
    """As far as the step that is looked for."""

    async def walked() -> None:
        await sequence(execution, execution.plan.nodes, "", execution.scope, execution.group)

    execution.task = asyncio.create_task(walked())
    await asyncio.wait([execution.task])
    if not execution.task.cancelled():
        execution.task.exception()


def _evaluated(row: tuple[Any, ...]) -> Evaluated:
    _, _, path, _, _, state, given, output, error, *_ = row
    return Evaluated(path, str(state), _read(given), _read(output), _read(error))


def _read(text: str | None) -> Any:
    return None if text is None else json.loads(text)
