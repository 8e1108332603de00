"""What goes on side by side in a run: lanes that fail together, what expressions see in each, and how one ends early."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .journal import Row
from .states import RunState
from .tokens import callback_url


class StepFailed(Exception):
    """A step failed for good. `error` is stored: `{"step", "name", "path", "field", "message"}`."""

    def __init__(self, error: dict[str, Any]):
        super().__init__(error["message"])
        self.error = error


class RunStopped(Exception):
    """A stop step ended the run. `output` is JSON text; `rows` are its own, to be written with the run's end; `error` if it
    ended as failed."""

    def __init__(self, state: RunState, message: str, output: str | None, error: dict[str, Any] | None, rows: list[Row]):
        super().__init__(message)
        self.state, self.message, self.output, self.error, self.rows = state, message, output, error, rows


def is_told_to_end(error: BaseException) -> bool:
    """Whether an error is the end that this task was told to come to. A step that waited for something of its own that was
    cancelled raises the same, and has failed."""
    return isinstance(error, asyncio.CancelledError) and asyncio.current_task().cancelling() > 0


class Group:
    """Lanes that fail together. A failure inside stops the siblings at their next boundary."""

    __slots__ = ("parent", "failure")

    def __init__(self, parent: Group | None = None):
        self.parent, self.failure = parent, None

    def stopped_by(self) -> Exception | None:
        group: Group | None = self
        while group is not None:
            if group.failure is not None:
                return group.failure
            group = group.parent
        return None

    def check(self) -> None:
        """Raise LaneStopped when the lane must not begin anything more."""
        if self.stopped_by() is not None:
            raise LaneStopped


class LaneStopped(Exception):
    """This lane ends because a sibling failed."""


class Scope:
    """What expressions see at one depth of loops."""

    __slots__ = ("names", "path")

    def __init__(self, names: dict[str, Any], path: str):
        self.names, self.path = names, path

    def iteration(
        self, path: str, item: Any, index: int, callbacks: dict[str, str], last: dict[str, Any] | None = None
    ) -> Scope:
        """The scope of one iteration: what is seen here, the item, and the addresses of the body's callbacks; in a while
        loop what the steps of the iteration before gave."""
        names = {**self.names, "steps": dict(self.names["steps"]), "loop": {"item": item, "index": index}}
        if last is not None:
            names["loop"]["last"] = last
        if callbacks:
            run_id = names["run"]["id"]
            own = {step: callback_url(run_id, f"{path}/{below}") for step, below in callbacks.items()}
            names["callbacks"] = {**names["callbacks"], **own}
        return Scope(names, path)


@dataclass(slots=True)
class Parked:
    future: asyncio.Future
    group: Group
    due_at: datetime | None
