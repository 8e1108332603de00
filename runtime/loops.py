"""Loops. The frame row holds the cursor and the open iterations; items lie in chunks of a hundred; an iteration that waits
keeps its place. Beginning iteration 10,000 reads and writes what beginning iteration 10 does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .execution import Execution
from .expressions import ExpressionError
from .journal import Row
from .lanes import Group, Scope, StepFailed
from .memory import CHUNK, GIVEN, VALUES, Elsewhere, FrameState
from .plan import Node
from .steps.base import StepError
from .steps.loop import MOST_ITERATIONS
from .storing import ASK_FOR_LESS, Unstorable, largest_output, too_large

CHUNK_SIZE = 100


async def run_loop(
    execution: Execution, node: Node, path: str, scope: Scope, group: Group, sequence: Callable[..., Any]
) -> dict[str, Any]:
    """Run the iterations that are left. Returns the loop's output: `{"count", "succeeded", "failed", "results"?}`.
    Raises StepError for bad items, StepFailed for a failed iteration."""
    loop = _Loop(execution, node, path, scope)
    await loop.begin()
    inner = Group(group)
    width = node.concurrency if loop.frame.total is None else min(node.concurrency, max(loop.left(), 1))

    async def lane() -> None:
        while (index := loop.next()) is not None:
            inner.check()
            last = await loop.last(index)
            iteration = scope.iteration(f"{path}[{index}]", await loop.item(index), index, node.callbacks, last)
            await execution.fetch(node.reads, iteration)
            if node.condition is not None and not loop.goes_on(iteration):
                loop.over(index)
                return
            own = Group(inner)
            try:
                await sequence(execution, node.body, f"{path}[{index}]/", iteration, own)
            except StepFailed as failed:
                if node.on_item_error == "stop":
                    raise
                execution.fail_group(own, failed)
                loop.failed(index, failed)
            else:
                await execution.fetch(node.reads, iteration)
                loop.ended(index, iteration)
            await execution.breathe()

    await execution.together([lane] * width, inner)
    return await loop.output()


class _Loop:
    def __init__(self, execution: Execution, node: Node, path: str, scope: Scope):
        self.execution, self.node, self.path, self.scope = execution, node, path, scope
        self.again: list[int] = []
        self.items: list[Any] | None = None
        self.chunks: dict[int, list[Any]] = {}
        self.before: tuple[int, dict[str, Any]] | None = None
        self.collected = 0
        """Characters, of the iterations that ended here: more than an output may have are refused before all are done."""

    async def begin(self) -> None:
        """Find the frame, or evaluate the items and make it."""
        frame = self.execution.memory.frames.get(self.path)
        if frame is not None:
            self.frame, self.again = frame, sorted(frame.open)
            return
        if self.node.items is not None:
            self.items = self._evaluate_items()
        take = self.execution.memory.take(self.path)
        chunks = self._chunk_rows(take)
        self.frame = FrameState(take, "loop", None if self.items is None else len(self.items))
        self.execution.memory.frames[self.path] = self.frame
        self.execution.add(self._frame_row(), *chunks)

    def _evaluate_items(self) -> list[Any]:
        try:
            items = self.node.items.evaluate(self.scope.names)
        except ExpressionError as wrong:
            raise StepError(str(wrong), field="config.items") from None
        if not isinstance(items, list):
            raise StepError("The loop needs a list to go through.", field="config.items")
        if len(items) > MOST_ITERATIONS:
            raise StepError(f"The list has {len(items):,} items; at most {MOST_ITERATIONS:,}.", field="config.items")
        return items

    def _chunk_rows(self, take: int) -> list[Row]:
        items = self.items or []
        chunks = [items[first : first + CHUNK_SIZE] for first in range(0, len(items), CHUNK_SIZE)]
        try:
            texts = [self.execution.dump_output(chunk, "What a hundred items of the list hold") for chunk in chunks]
            return [("chunk", (self.execution.run.id, self.path, take, n, text)) for n, text in enumerate(texts)]
        except Unstorable as wrong:
            raise StepError(str(wrong), field="config.items") from None

    def _frame_row(self) -> Row:
        frame = self.frame
        return "frame", (self.execution.run.id, self.path, frame.take, "loop", frame.total, frame.cursor,
                         json.dumps(frame.open), frame.succeeded, frame.failed)

    def left(self) -> int:
        return len(self.again) + self.frame.total - self.frame.cursor

    def next(self) -> int | None:
        """The next iteration to run: one that was open, else the one at the cursor."""
        if self.again:
            return self.again.pop(0)
        frame = self.frame
        if frame.total is not None and frame.cursor >= frame.total:
            return None
        if frame.total is None and frame.cursor >= self.node.limit:
            raise self._too_many()
        index = frame.cursor
        frame.cursor += 1
        frame.open.append(index)
        self.execution.add(self._frame_row())
        return index

    def _too_many(self) -> StepFailed:
        words = f"The loop reached its bound of {self.node.limit:,} iterations."
        return StepFailed({"step": self.node.id, "name": self.node.name, "path": self.path, "field": "config.max", "message": words})

    async def item(self, index: int) -> Any:
        if self.frame.total is None:
            return None
        if self.items is not None:
            return self.items[index]
        n = index // CHUNK_SIZE
        if n not in self.chunks:
            rows = await self.execution.services.query(CHUNK, [self.execution.run.id, self.path, self.frame.take, n])
            self.chunks = {n: rows[0][0]}
        return self.chunks[n][index % CHUNK_SIZE]

    async def last(self, index: int) -> dict[str, Any] | None:
        """What the steps of the iteration before gave, in a while loop that asks for it: step -> `{"output"}`."""
        if self.node.condition is None:
            return None
        if index == 0 or not self.node.last:
            return {}
        if self.before is None or self.before[0] != index - 1:
            await self.execution.commit()
            rows = await self.execution.services.query(GIVEN, [self.execution.run.id, f"{self.path}[{index - 1}]"])
            self.before = index - 1, {step: _given(output, error) for step, output, error in rows}
        return self.before[1]

    def goes_on(self, iteration: Scope) -> bool:
        """Whether a while loop runs this iteration."""
        try:
            value = self.node.condition.evaluate(iteration.names)
        except ExpressionError as wrong:
            raise self._wrong(str(wrong), "config.while") from None
        if type(value) is not bool:
            raise self._wrong("The while expression is neither true nor false.", "config.while")
        return value

    def over(self, index: int) -> None:
        """A while loop's condition has become false: the iteration did not take place."""
        self.frame.open.remove(index)
        self.frame.cursor -= 1

    def ended(self, index: int, iteration: Scope) -> None:
        if self.node.last:
            outside = self.scope.names["steps"]
            given = {step: value for step, value in iteration.names["steps"].items() if step not in outside}
            fetched = all(type(value["output"]) is not Elsewhere for value in given.values())
            self.before = (index, given) if fetched else None
        self.frame.open.remove(index)
        self.frame.succeeded += 1
        if self.node.collect is not None:
            try:
                value = self.execution.dump_output(self.node.collect.evaluate(iteration.names), "What an iteration collects")
                self.collected += len(value)
                if self.collected > largest_output():
                    raise too_large("What the loop collects", largest_output(), ASK_FOR_LESS)
            except (ExpressionError, Unstorable) as wrong:
                raise self._wrong(str(wrong), "config.collect") from None
            self.execution.add(("value", (self.execution.run.id, self.path, self.frame.take, index, value)))
        if self.frame.cursor == self.frame.total and not self.again:
            self.execution.add(self._frame_row())

    def failed(self, index: int, failed: StepFailed) -> None:
        """An iteration failed, and the loop goes on: what it waits for is dropped."""
        self.frame.open.remove(index)
        self.frame.failed += 1
        run_id = self.execution.run.id
        self.execution.add(self._frame_row(), ("abandon", (run_id, f"{self.path}[{index}]")))
        if self.node.on_item_error == "collect":
            told = {name: failed.error[name] for name in ("step", "name", "message") if name in failed.error}
            self.execution.add(("value", (run_id, self.path, self.frame.take, -1 - index, self.execution.dump({"index": index, **told}))))

    def _wrong(self, message: str, field: str) -> StepFailed:
        return StepFailed({"step": self.node.id, "name": self.node.name, "path": self.path, "field": field, "message": message})

    async def output(self) -> dict[str, Any]:
        frame = self.frame
        output: dict[str, Any] = {"count": frame.cursor, "succeeded": frame.succeeded, "failed": frame.failed}
        collects = self.node.on_item_error == "collect"
        if self.node.collect is not None or collects:
            await self.execution.commit()
            rows = await self.execution.services.query(VALUES, [self.execution.run.id, self.path, frame.take])
            if self.node.collect is not None:
                output["results"] = [value for index, value in rows if index >= 0]
            if collects:  # of negative numbers, the last item first
                output["errors"] = [value for index, value in reversed(rows) if index < 0]
        return output


def _given(output: Any, error: dict[str, Any] | None) -> dict[str, Any]:
    """A step's result as its iteration saw it."""
    if error is None:
        return {"output": output}
    return {"output": None, "error": {name: value for name, value in error.items() if name != "handled"}}
