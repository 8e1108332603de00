"""Walks a run from where it stands to its next wait or its end.

A step that has a result is passed over; a condition's result is the lane it chose; a loop goes on at its frame. So a
resume repeats no step, whatever the last owner died of.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from typing import Any

from .calls import TakeAgain, awaited, call, register
from .execution import Execution
from .expressions import ExpressionError
from .journal import Refused, Row, StaleClaim
from .lanes import Group, LaneStopped, RunStopped, Scope, StepFailed, is_told_to_end
from .loops import run_loop
from .mail_rows import mail_row, question_rows
from .memory import FrameState, PastWait, Result
from .parallels import run_parallel
from .plan import Node
from .states import AttemptOutcome, RunState, StepState, WaitKind, WaitState
from .step_context import StepContext
from .steps.base import Done, Park, StepError, Stop
from .storing import Unstorable
from .tokens import without_signatures

log = logging.getLogger(__name__)

# Others that wait for the same may have taken what this one saw: then it looks for the next.
UNTAKEN = """
select 1 from wait w join run on run.id = w.run_id
join named_signal s on s.team_id = %s and s.name = %s and s.key = %s and s.test = run.test and s.wait_id is null
  and s.received_at > (select holdfast_now()) - interval '30 days'  -- signals.KEPT_DAYS
where w.id = %s and w.state = 'open' limit 1
"""

OWN_WAITS = (WaitKind.TIMER, WaitKind.APPROVAL, WaitKind.CALLBACK, WaitKind.CHILD)


async def advance(execution: Execution) -> None:
    """Take the run as far as it goes. Returns when it has ended, was released, or belongs to somebody else."""
    try:
        await _to_its_end(execution)
    except StaleClaim:
        log.info("run %s: the lease was lost, nothing more is written", execution.run.id, extra={"run": execution.run.id})
    except Refused as refused:
        await _end_refused(execution, str(refused))
    except asyncio.CancelledError:
        if not execution.released:
            raise


async def _to_its_end(execution: Execution) -> None:
    failed_at = None
    try:
        await _walk(execution)
        rows = await execution.end_rows(RunState.SUCCEEDED)
    except StepFailed as failed:
        failed_at = failed.error.get("path", "")
        ended = await execution.end_rows(RunState.FAILED, error=failed.error)
        rows = [execution.log("", f"The run failed: {failed}", "error"), *ended]
    except RunStopped as stopped:
        words = f"Stopped as {stopped.state}" + (f": {stopped.message}" if stopped.message else "")
        ended = await execution.end_rows(stopped.state, stopped.output, stopped.error)
        rows = [*stopped.rows, execution.log("", words), *ended]
    await execution.commit(*rows)
    if failed_at is not None:
        about = {"run": execution.run.id, "step": failed_at}
        log.info("run %s failed at step %s", execution.run.id, failed_at, extra=about)


async def _walk(execution: Execution) -> None:
    """All steps. What stopped the whole run from one of several lanes is raised here as if it had been the only one."""
    try:
        await sequence(execution, execution.plan.nodes, "", execution.scope, execution.group)
    except LaneStopped:
        raise execution.group.failure from None


async def _end_refused(execution: Execution, why: str) -> None:
    """The database would not take this run's rows: fail the run and say so, rather than try for ever."""
    log.error("run %s: the database refused its rows: %s", execution.run.id, why, extra={"run": execution.run.id})
    execution.claim.refused = None
    error = {"message": f"The database refused what the run wrote: {why}"}
    try:
        await execution.commit(*await execution.end_rows(RunState.FAILED, error=error))
    except StaleClaim:
        log.info("run %s: the lease was lost", execution.run.id, extra={"run": execution.run.id})


async def sequence(execution: Execution, nodes: list[Node], prefix: str, scope: Scope, group: Group) -> None:
    """The steps of one sequence, in order."""
    for node in nodes:
        group.check()
        if not node.off:
            await _step(execution, node, prefix + node.id, scope, group)
            if execution.owes:
                await execution.breathe()


async def _step(execution: Execution, node: Node, path: str, scope: Scope, group: Group) -> None:
    """One step, or what follows its failure."""
    try:
        await execution.fetch(node.reads, scope)
        handled = execution.memory.results.get(f"{path}/on_error")
        if handled is not None:
            raise StepFailed(handled.error)
        if node.lanes or node.step.children == "branches":
            await (_condition if node.type == "condition" else _parallel)(execution, node, path, scope, group)
        elif node.step.children == "steps":
            await _loop(execution, node, path, scope, group)
        else:
            await _leaf(execution, node, path, scope, group)
    except StepFailed as failed:
        if node.on_error == "fail":
            raise
        await _on_error(execution, node, path, scope, group, failed)


async def _on_error(
    execution: Execution, node: Node, path: str, scope: Scope, group: Group, failed: StepFailed
) -> None:
    """Go on without the step's output, or by its error lane. A container's handled failure has a row of its own."""
    place = f"{path}/on_error"
    if node.step.children and place not in execution.memory.results:
        error = {**failed.error, "handled": True}
        execution.add(
            _result_row(execution, node, place, scope, execution.memory.take(place), StepState.FAILED, error=error),
            ("abandon", (execution.run.id, path)),
        )
        execution.memory.results[place] = Result(execution.memory.take(place), StepState.FAILED, None, error)
    error = {name: value for name, value in failed.error.items() if name != "handled"}
    scope.names["steps"][node.id] = {"output": None, "error": error}
    await sequence(execution, node.error_lane, f"{path}/on_error/", scope, group)


async def _condition(execution: Execution, node: Node, path: str, scope: Scope, group: Group) -> None:
    result = execution.memory.results.get(path)
    chosen = result.output["branch"] if result else _choose(execution, node, path, scope)
    _show(scope, node, {"branch": chosen})
    lane = next(lane for lane in node.lanes if lane.id == chosen)
    await sequence(execution, lane.nodes, f"{path}/{lane.id}/", scope, group)


def _choose(execution: Execution, node: Node, path: str, scope: Scope) -> str:
    """The first lane whose condition is true, else the last; recorded, so that a resume takes the same."""
    for number, lane in enumerate(node.lanes[:-1]):
        try:
            value = lane.when.evaluate(scope.names)
        except ExpressionError as wrong:
            raise _failure(execution, node, path, scope, StepError(str(wrong), field=f"branches.{number}.when")) from None
        if type(value) is not bool:
            words = "The condition of a lane is neither true nor false."
            raise _failure(execution, node, path, scope, StepError(words, field=f"branches.{number}.when"))
        if value:
            break
    else:
        lane = node.lanes[-1]
    take = execution.memory.take(path)
    execution.add(_result_row(execution, node, path, scope, take, StepState.SUCCEEDED, {"branch": lane.id}))
    return lane.id


async def _parallel(execution: Execution, node: Node, path: str, scope: Scope, group: Group) -> None:
    take = execution.memory.take(path)
    if path not in execution.memory.results:
        frame = execution.memory.frames.get(path)
        if frame is None:
            frame = execution.memory.frames[path] = FrameState(take, "parallel", len(node.lanes))
            execution.add(("frame", (execution.run.id, path, take, "parallel", len(node.lanes), 0, "[]", 0, 0)))
        ended = await run_parallel(execution, node, path, scope, group, sequence)
        output = {"lanes": len(node.lanes)} | ({"ended": ended} if node.needed else {})
        execution.add(
            _result_row(execution, node, path, scope, take, StepState.SUCCEEDED, output),
            ("unframe", (execution.run.id, path, frame.take)),
        )
        if len(ended) < len(node.lanes):
            execution.add(("abandon", (execution.run.id, path)))
        execution.memory.results[path] = Result(take, StepState.SUCCEEDED, output, None)
    else:
        # The outputs of the lanes that ended stay visible after the join; every step in them has its result.
        output = execution.memory.results[path].output or {"lanes": len(node.lanes)}
        for lane in node.lanes:
            if lane.id in output.get("ended", (lane.id,)):
                await sequence(execution, lane.nodes, f"{path}/{lane.id}/", scope, group)
    _show(scope, node, output)


async def _loop(execution: Execution, node: Node, path: str, scope: Scope, group: Group) -> None:
    result, take = execution.memory.results.get(path), execution.memory.take(path)
    if result is None:
        try:
            output = await run_loop(execution, node, path, scope, group, sequence)
        except StepError as wrong:
            raise _failure(execution, node, path, scope, wrong) from None
        try:
            row = _result_row(execution, node, path, scope, take, StepState.SUCCEEDED, output)
        except Unstorable as wrong:
            raise _failure(execution, node, path, scope, StepError(str(wrong), field="config.collect")) from None
        execution.add(row, ("unframe", (execution.run.id, path, execution.memory.frames[path].take)))
        result = execution.memory.results[path] = Result(take, StepState.SUCCEEDED, output, None)
    _show(scope, node, result.output)


async def _leaf(execution: Execution, node: Node, path: str, scope: Scope, group: Group) -> None:
    result = execution.memory.results.get(path)
    if result is None:
        result = await _run_leaf(execution, node, path, scope, group)
    if result.state == StepState.FAILED:
        raise StepFailed(result.error)
    _show(scope, node, result.output)


async def _run_leaf(execution: Execution, node: Node, path: str, scope: Scope, group: Group) -> Result:
    """Bring a step to its result, over as many takes as people asked for."""
    while True:
        place = execution.memory.place(path)
        ctx = StepContext(execution, node, path, scope, group, place)
        try:
            outcome = await _outcome(execution, ctx, group)
            rows, result = _success(execution, ctx, outcome)
        except TakeAgain:
            place.move_to(place.take + 1)
            continue
        except Unstorable as wrong:
            raise _failure(execution, node, path, scope, StepError(str(wrong)), ctx) from None
        except StepError as wrong:
            raise _failure(execution, node, path, scope, wrong, ctx) from None
        execution.add(*rows)
        execution.memory.places.pop(path, None)
        return result


async def _outcome(execution: Execution, ctx: StepContext, group: Group) -> Done:
    """Run or resume the step until it is done."""
    own = ctx.place.wait(*OWN_WAITS)
    try:
        if own is not None:
            ctx.render()
            await _take_early(execution, own)
            outcome = await ctx.node.step.resume(ctx, await awaited(execution, own, group), own.data)
        elif ctx.node.step.outside:
            outcome = await call(execution, ctx, group)
        else:
            ctx.render()
            outcome = await ctx.node.step.run(ctx)
        while isinstance(outcome, Park):
            own = await _park(execution, ctx, outcome, own.n + 1 if own else 1)
            await _take_early(execution, own)
            outcome = await ctx.node.step.resume(ctx, await awaited(execution, own, group), own.data)
    except (StepError, StaleClaim, Refused, TakeAgain, LaneStopped, Unstorable):
        raise
    except (Exception, asyncio.CancelledError) as bug:
        if is_told_to_end(bug):
            raise
        log.exception("run %s: step %s broke", execution.run.id, ctx.path, extra={"run": execution.run.id, "step": ctx.path})
        raise StepError(f"The step broke: {type(bug).__name__}: {bug}", outcome=AttemptOutcome.UNKNOWN) from bug
    if isinstance(outcome, Stop):
        raise _stopped(execution, ctx, outcome)
    return outcome


def _stopped(execution: Execution, ctx: StepContext, stop: Stop) -> RunStopped:
    """With the step's rows, which are written with the end: a result without it would let the next owner pass over the stop.
    Raises StepError."""
    state, error, text = StepState.SUCCEEDED, None, None
    if stop.output is not None:
        try:
            text = execution.dump(stop.output, "The run's output")
        except Unstorable as wrong:
            raise StepError(str(wrong), field="output") from None
    if stop.state == RunState.FAILED:
        # As one that failed: a requeue runs it again, and does not pass over it.
        state, error = StepState.FAILED, _error(execution, ctx.node, ctx.path, StepError(str(stop.message)))
    row = _result_row(execution, ctx.node, ctx.path, ctx.scope, ctx.take, state, stop.output, error, ctx)
    return RunStopped(stop.state, str(stop.message), text, error, [*_settled_if_open(ctx), *ctx.lines, row])


def _settled_if_open(ctx: StepContext) -> list[Row]:
    """A step that parks or stops after its call had its answer."""
    return [ctx.settled(AttemptOutcome.ANSWERED)] if ctx.open else []


async def _park(execution: Execution, ctx: StepContext, park: Park, n: int):
    more: list[Row] = []
    if park.kind == WaitKind.CALLBACK:
        more.append(("early", ctx.key[:3]))
    if park.question is not None:
        more += question_rows(execution, ctx, park.question, n)
    rows: list[Row] = [*_settled_if_open(ctx), *ctx.lines]
    ctx.lines = []
    try:
        return await register(
            execution, ctx, park.kind, n, rows, after=park.after.total_seconds() if park.after is not None else None,
            until=park.until, data=park.data, more=more,
        )
    except Unstorable as wrong:
        raise StepError(str(wrong)) from None


async def _take_early(execution: Execution, own: PastWait) -> None:
    """Take what came early: a signal of the wait's name and key, the end of a started run. Only now that the wait is
    there for the other side to see: whoever comes second finds the first."""
    if own.state == WaitState.RESOLVED or not (own.kind == WaitKind.CHILD or own.data.get("signal")):
        return
    execution.registering += 1
    try:
        row: Row = ("childend", (execution.run.id, own.id, own.data.get("run")))
        if own.kind != WaitKind.CHILD:
            row = ("named", (execution.run.id, own.id, execution.plan.team_id, own.data["signal"], own.data["key"]))
        while own.state != WaitState.RESOLVED:
            for name, *returned in await execution.commit(row):
                if name == row[0] and returned[0] == own.id:
                    own.state, own.outcome = WaitState.RESOLVED, returned[1]
            if row[0] != "named" or not await execution.services.query(UNTAKEN, [*row[1][2:], own.id]):
                break
    finally:
        execution.registering -= 1  # the caller parks before anybody else gets a turn


def _success(execution: Execution, ctx: StepContext, done: Done) -> tuple[list[Row], Result]:
    """The rows of a finished step: attempt settled, result, mails and log, committed together."""
    settled = [ctx.settled(AttemptOutcome.ANSWERED, done)] if ctx.open else []
    rows: list[Row] = [*settled]
    try:
        rows.append(_result_row(
            execution, ctx.node, ctx.path, ctx.scope, ctx.take, StepState.SUCCEEDED, done.output, ctx=ctx
        ))
        for mail in done.mails:
            rows.append(mail_row(execution, ctx, mail, "body"))
        if done.file is not None:
            content = execution.masker.mask_bytes(done.file.content)
            rows.append(("file", (execution.run.id, ctx.path, ctx.take, done.file.key, b64encode(content).decode())))
    except (StepError, Unstorable) as wrong:
        execution.add(*settled)
        raise wrong if isinstance(wrong, StepError) else StepError(f"The output cannot be stored: {wrong}") from None
    rows += ctx.lines
    rows += [execution.log(ctx.path, line) for line in done.log]
    rows.append(execution.log(ctx.path, f"{ctx.node.name}: done"))
    # As it is stored, or what follows would see another output after a resume than without one.
    return rows, Result(ctx.take, StepState.SUCCEEDED, execution.masker.mask(done.output), None)


def _failure(
    execution: Execution, node: Node, path: str, scope: Scope, wrong: StepError, ctx: StepContext | None = None
) -> StepFailed:
    """Record that a step failed, and make the exception that carries it up."""
    error = _error(execution, node, path, wrong)
    rows: list[Row] = []
    take = 1
    if ctx is not None:
        take = ctx.take
        if ctx.open:
            rows.append(ctx.settled(wrong.outcome, wrong, wrong.message))
        rows += ctx.lines
    stored = {**error, "handled": True} if node.on_error != "fail" else error
    if not node.step.children:
        rows.append(_result_row(execution, node, path, scope, take, StepState.FAILED, error=stored, ctx=ctx))
        execution.memory.results[path] = Result(take, StepState.FAILED, None, stored)
    rows.append(execution.log(path, f"{node.name}: {wrong.message}", "error"))
    execution.add(*rows)
    return StepFailed(error)


def _error(execution: Execution, node: Node, path: str, wrong: StepError) -> dict[str, Any]:
    """What is stored of a failure."""
    message = execution.words(wrong.message)
    return {"step": node.id, "name": node.name, "path": path, "field": wrong.field, "message": message}


def _result_row(
    execution: Execution, node: Node, path: str, scope: Scope, take: int, state: StepState, output: Any = None,
    error: dict[str, Any] | None = None, ctx: StepContext | None = None,
) -> Row:
    text, size = execution.output_rows(path, take, output)
    return "result", (
        execution.run.id, scope.path, path, take, node.id, state, _input(execution, ctx),
        text, None if error is None else execution.dump(error),
        execution.claim.token, ctx.cost if ctx else None,
        ctx.began_at if ctx else execution.services.now(), size,
    )


def _input(execution: Execution, ctx: StepContext | None) -> str | None:
    """The filled-in config, for people. An attempt keeps its own request; what cannot be stored is left out."""
    if ctx is None or not ctx.config or ctx.node.step.outside:
        return None
    try:
        return without_signatures(execution.dump(ctx.config))
    except Unstorable:
        return None


def _show(scope: Scope, node: Node, output: Any) -> None:
    scope.names["steps"][node.id] = {"output": output}
