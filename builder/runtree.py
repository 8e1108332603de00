"""pure: a pinned definition and the rows of a run -> the lines of the run page's step table.

A lane that was taken is shown without a line of its own, one that was not as a folded line; a loop has a line per
iteration of the page that is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from runtime.definition import walk
from runtime.states import UNFINISHED, AttemptOutcome, WaitKind, WaitState

from .editing.places import label_of
from .runrows import Iteration, LoopPage, Place, Rows

SOON = timedelta(seconds=1)
END_UNKNOWN = "its end is not known"
OUTSIDE_OUTCOMES = {
    AttemptOutcome.NOT_SENT: "not sent",
    AttemptOutcome.REFUSED: "refused",
    AttemptOutcome.ANSWERED: "answered",
    AttemptOutcome.UNKNOWN: "unclear whether it happened",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time on the line. `kind`: work, lost (an attempt that failed), wait, group, next (still to come)."""

    kind: str
    start: datetime
    end: datetime
    title: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """Words beside the bar: `before`, then `bold`, then `moment` as relative time."""

    before: str
    bold: str = ""
    moment: datetime | None = None
    leads: bool = False
    """Stands before the bar rather than after it."""


@dataclass(slots=True)
class Node:
    """One line. `kind`: trigger, step, lane, iteration, pages. `path` is unique in the table."""

    kind: str
    path: str
    level: int
    name: str
    icon: str = ""
    parent: str = ""
    state: str = "queued"
    word: str = ""
    tag: str = ""
    aside: str = ""
    """Small words after the name: "2 lanes"."""
    standing: str = ""
    """Small words in the place of attempts and time: "not taken", "0 of 3"."""
    attempts: int | None = None
    time: timedelta | None = None
    cost: Decimal | None = None
    unpriced: bool = False
    """Whether something under `cost` has no known price."""
    spans: list[Span] = field(default_factory=list)
    note: Note | None = None
    folded: bool | None = None
    """None for a line without anything under it."""
    hidden: bool = False
    index: int | None = None
    loop: LoopPage | None = None

    @property
    def dim(self) -> bool:
        return self.state in ("queued", "skipped")

    @property
    def groups(self) -> bool:
        """Whether it holds other steps."""
        return self.icon in ("condition", "parallel", "loop")


def tree(definition: dict[str, Any], rows: Rows, run: Any, now: datetime) -> list[Node]:
    """The lines in the order of the page. `run` has state, trigger_key, created_at, started_at, ended_at."""
    maker = _Maker(rows, run, run.ended_at or now)
    nodes = [maker.trigger(definition), *maker.sequence(definition.get("steps") or [], "", 1, "")]
    _fold(nodes)
    return nodes


def most_telling(nodes: list[Node]) -> str:
    """The path of the step that a person opens the page for: what asks, failed, runs or waits; else the trigger."""
    steps = [node for node in nodes if node.kind == "step" and not node.groups]
    for state in ("attention", "failed", "running", "waiting"):
        found = [node for node in steps if node.state == state]
        asking = [node for node in found if node.icon == "approval"]
        if chosen := asking or found:
            return chosen[0].path
    return nodes[0].path


class _Maker:
    def __init__(self, rows: Rows, run: Any, end: datetime):
        self.rows, self.run, self.end = rows, run, end
        self.going = run.state in UNFINISHED

    def trigger(self, definition: dict[str, Any]) -> Node:
        """The first line: how the run came to be, and how long it took until a worker had it."""
        found = next((item for item in definition.get("triggers") or [] if item["id"] == self.run.trigger_key), {})
        kind = found.get("type") or self.run.trigger_key
        name = found.get("name") or {"manual": "Started by hand", "api": "Started by API"}.get(kind, kind.capitalize())
        node = Node("trigger", "trigger", 1, name, icon=kind, state="succeeded", attempts=1)
        if self.run.started_at:
            node.time = self.run.started_at - self.run.created_at
            kind = "work" if node.time < SOON else "wait"
            node.spans = [Span(kind, self.run.created_at, self.run.started_at, "until a worker took it")]
        return node

    def sequence(self, steps: list[dict[str, Any]], prefix: str, level: int, parent: str, skipped: bool = False) -> list[Node]:
        nodes: list[Node] = []
        for step in steps:
            nodes += self.step(step, prefix + step["id"], level, parent, skipped)
        return nodes

    def step(self, step: dict[str, Any], path: str, level: int, parent: str, skipped: bool) -> list[Node]:
        place = self.rows.places.get(path) or Place()
        node = Node("step", path, level, label_of(step), icon=step["type"], parent=parent)
        below = list(self.below(step, path, level, place, skipped))
        self.describe(node, step, place, below, skipped)
        if step["type"] in ("condition", "parallel", "loop"):
            node.folded = False if below else None
        return [node, *below]

    def below(self, step: dict[str, Any], path: str, level: int, place: Place, skipped: bool) -> Iterator[Node]:
        match step["type"]:
            case "condition":
                yield from self.condition(step, path, level, place, skipped)
            case "parallel":
                yield from self.parallel(step, path, level, skipped)
            case "loop":
                yield from self.loop(step, path, level, skipped)
        if isinstance(step.get("on_error"), dict):
            yield from self.error_lane(step, path, level)

    def condition(self, step: dict[str, Any], path: str, level: int, place: Place, skipped: bool) -> Iterator[Node]:
        taken = taken_lane(step, path, self.rows)
        for branch in step.get("branches") or []:
            steps, prefix = branch.get("steps") or [], f"{path}/{branch['id']}/"
            if branch["id"] == taken:
                yield from self.sequence(steps, prefix, level + 1, path)
                continue
            passed = skipped or taken is not None or not self.going
            lane = Node("lane", prefix, level + 1, f"{lane_name(branch)} lane", parent=path)
            lane.aside = counted(steps, "step") if steps else "empty"
            lane.state, lane.folded = ("skipped" if passed else "queued"), (True if steps else None)
            lane.standing = "not taken" if taken is not None else ""
            yield lane
            yield from self.sequence(steps, prefix, level + 2, prefix, skipped=passed)

    def parallel(self, step: dict[str, Any], path: str, level: int, skipped: bool) -> Iterator[Node]:
        for branch in step.get("branches") or []:
            lane = self.sequence(branch.get("steps") or [], f"{path}/{branch['id']}/", level + 1, path, skipped)
            if lane:
                lane[0].tag = lane_name(branch)
            yield from lane

    def loop(self, step: dict[str, Any], path: str, level: int, skipped: bool) -> Iterator[Node]:
        body, page = step.get("steps") or [], self.rows.loops.get(path)
        if page is None or not page.iterations:
            yield from self.sequence(body, f"{path}[]/", level + 1, path, skipped)
            return
        if page.earlier is not None:
            yield Node("pages", f"{path}[<]", level + 1, "Earlier iterations", parent=path, index=page.earlier)
        for iteration in page.iterations:
            yield from self.iteration(iteration, page, body, path, level + 1)
        if page.later is not None:
            yield Node("pages", f"{path}[>]", level + 1, "Later iterations", parent=path, index=page.later)

    def iteration(self, row: Iteration, page: LoopPage, body: list[dict[str, Any]], path: str, level: int) -> Iterator[Node]:
        of = f" of {page.total:,}" if page.total else ""
        scope = f"{path}[{row.index}]"
        node = Node("iteration", scope, level, f"Iteration {row.index + 1:,}{of}", parent=path, index=row.index)
        node.state, node.cost, node.unpriced = row.state, row.cost, row.unpriced
        node.folded, node.aside = row.index != page.opened, row.label
        steps = self.sequence(body, f"{scope}/", level + 1, scope) if row.index == page.opened else []
        if steps and row.state not in ("succeeded", "failed"):
            node.state = self.joined([step for step in steps if step.parent == scope])
        begun = [span.start for step in steps for span in step.spans]
        if row.kept_from:
            node.note = Note(f"kept from run {row.kept_from:,}")
        else:
            self.group(node, row.started_at or min(begun, default=None), row.ended_at)
        yield node
        yield from steps

    def error_lane(self, step: dict[str, Any], path: str, level: int) -> Iterator[Node]:
        """Shown once it was entered."""
        prefix, steps = f"{path}/on_error/", step["on_error"].get("steps") or []
        if any(prefix + inner["id"] in self.rows.places for inner in steps):
            lane = Node("lane", prefix, level + 1, "On error", parent=path, aside=counted(steps, "step"), folded=False)
            inside = self.sequence(steps, prefix, level + 2, prefix)
            lane.state = self.joined([node for node in inside if node.parent == prefix])
            yield lane
            yield from inside

    def describe(self, node: Node, step: dict[str, Any], place: Place, below: list[Node], skipped: bool) -> None:
        node.state = self.state(step, place, [child for child in below if child.parent == node.path], skipped)
        node.cost, node.unpriced = place.cost, place.unpriced
        started = place.started_at
        if step["type"] in ("parallel", "loop"):
            self.container(node, step, place, below)
        if place.kept_from:
            node.note = Note(f"kept from run {place.kept_from:,}")
        elif started is not None and step["type"] not in ("parallel", "loop"):
            node.attempts = len(place.earlier) + len(place.attempts) or max(1, place.take)
            node.time = self.ended(place) - started
            node.spans = list(self.spans(place, node.state))
            node.note = self.note(step, node, place)
        if step.get("off") and node.state in ("queued", "skipped"):
            node.state, node.standing = "skipped", "switched off"

    def container(self, node: Node, step: dict[str, Any], place: Place, below: list[Node]) -> None:
        if step["type"] == "parallel":
            node.aside = counted(step.get("branches") or [], "lane")
        else:
            page = self.rows.loops.get(node.path)
            if page is not None:
                node.loop = page
                known = page.total is not None
                node.aside = f"{page.ended:,} of {page.total:,}" if known else counted_number(page.ended, "iteration")
        begun = [span.start for child in below for span in child.spans]
        # Its own result tells when it was taken up last, which for lanes that waited is near their end.
        started = min([*begun, *([place.started_at] if place.started_at else [])], default=None)
        ended = place.result.finished_at if place.result else None
        if started and not ended and not self.going:
            ended = self.end
        if not place.kept_from:
            self.group(node, started, ended)

    def group(self, node: Node, started: datetime | None, ended: datetime | None) -> None:
        if started is None:
            return
        end = ended or self.end
        node.time, node.spans = end - started, [Span("group", started, end)]

    def state(self, step: dict[str, Any], place: Place, children: list[Node], skipped: bool) -> str:
        if place.result is not None:
            return str(place.result.state)
        if place.waits and place.last_wait.state in (WaitState.OPEN, WaitState.SUSPENDED, WaitState.CANCELLED):
            return self.waiting(place.last_wait)
        if children and any(not child.dim for child in children):
            return self.joined(children)
        if place.started_at is not None:
            return "running" if self.going else "cancelled"
        return "skipped" if skipped else "queued"

    def waiting(self, wait: Any) -> str:
        """What was suspended or withdrawn by the run's end is shown as stopped."""
        if wait.state != WaitState.OPEN or not self.going:
            return "cancelled"
        return "attention" if wait.kind == WaitKind.PERSON else "waiting"

    def joined(self, children: list[Node]) -> str:
        """The state of what holds these lines and has no result of its own yet."""
        states = {child.state for child in children}
        for state in ("attention", "running", "waiting"):
            if state in states:
                return state
        if not self.going:
            return next((state for state in ("failed", "cancelled") if state in states), "succeeded")
        if states <= {"queued", "skipped"}:
            return "queued"
        return "failed" if "failed" in states and self.run.state == "failed" else "running"

    def ended(self, place: Place) -> datetime:
        if place.result is not None:
            return place.result.finished_at
        if place.attempts and place.attempts[-1].ended_at and not self.going and not place.waits:
            return place.attempts[-1].ended_at
        return self.end

    def spans(self, place: Place, state: str) -> Iterator[Span]:
        last = place.attempts[-1] if place.attempts else None
        for attempt in place.earlier:
            title = f"Take {attempt.take}, {attempt_title(attempt, self.going).lower()}"
            yield Span("lost", attempt.started_at, attempt.ended_at or self.end, title)
        for attempt in place.attempts:
            end = attempt.ended_at or self.end
            good = attempt is last and state not in ("attention",) and (attempt.error is None or state == "failed")
            yield Span("work" if good else "lost", attempt.started_at, end, attempt_title(attempt, self.going))
        for wait in place.waits:
            if wait.kind == WaitKind.RETRY:
                continue
            end = wait.resolved_at or self.end
            yield Span("wait", wait.created_at, min(end, self.end))
            if wait.state == WaitState.OPEN and self.going and wait.due_at and wait.due_at > self.end:
                yield Span("next", self.end, wait.due_at)
        if place.result is not None and not place.attempts and not place.waits:
            yield Span("work", place.result.started_at, place.result.finished_at)

    def note(self, step: dict[str, Any], node: Node, place: Place) -> Note | None:
        if step["type"] == "condition":
            taken = taken_lane(step, node.path, self.rows)
            name = next((lane_name(branch) for branch in step.get("branches") or [] if branch["id"] == taken), "")
            return Note("takes ", bold=name) if name else None
        wait = place.open_wait
        if wait is None or not self.going:
            return decided_note(place)
        match wait.kind:
            case WaitKind.RETRY:
                return self.upcoming("retrying ", wait.due_at)
            case WaitKind.TIMER:
                return self.upcoming("wakes ", wait.due_at, leads=True)
            case WaitKind.APPROVAL:
                return Note("waits for an answer", leads=True)
            case WaitKind.CALLBACK:
                return Note("waits for a call", leads=True)
            case WaitKind.PERSON:
                return Note("did it happen?", leads=True)
        return None

    def upcoming(self, words: str, due: datetime | None, leads: bool = False) -> Note:
        """A due time that has come is not told as past: somebody is about to take it up."""
        late = due is not None and due <= self.end
        return Note(f"{words}now", leads=leads) if late else Note(words, moment=due, leads=leads)


def taken_lane(step: dict[str, Any], path: str, rows: Rows) -> str | None:
    """The id of the lane that a condition took: as its result says, else the lane in which something stands."""
    place = rows.places.get(path)
    output = place.result.output if place and place.result else None
    ids = [branch["id"] for branch in step.get("branches") or []]
    for key in ("lane", "branch", "taken"):
        if isinstance(output, dict) and output.get(key) in ids:
            return output[key]
    return next((lane for lane in ids if any(key.startswith(f"{path}/{lane}/") for key in rows.places)), None)


def decided_note(place: Place) -> Note | None:
    """How an approval was answered."""
    wait = place.last_wait
    if wait is None or wait.kind != WaitKind.APPROVAL or not isinstance(wait.outcome, dict):
        return None
    if wait.outcome.get("by") == "due":
        return Note("nobody answered in time")
    who, decision = str(wait.outcome.get("who") or "").split("@")[0], wait.outcome.get("decision")
    return Note(f"{who} {decision}".strip()) if decision else None


def attempt_title(attempt: Any, going: bool) -> str:
    """`going`: whether the run has not ended. After its end nobody else says what became of a call whose worker died."""
    if attempt.ended_at is None:
        return f"Attempt {attempt.n}, {'under way' if going else END_UNKNOWN}"
    words = attempt.error or OUTSIDE_OUTCOMES.get(attempt.outcome, str(attempt.outcome or ""))
    return f"Attempt {attempt.n}: {words}"[:200]


def lane_name(branch: dict[str, Any]) -> str:
    return branch.get("label") or branch["id"].replace("_", " ").capitalize()


def counted(steps: list[dict[str, Any]], noun: str) -> str:
    number = sum(1 for _ in walk(steps)) if noun == "step" else len(steps)
    return counted_number(number, noun)


def counted_number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _fold(nodes: list[Node]) -> None:
    """Hide what stands below a folded line."""
    folded: set[str] = set()
    for node in nodes:
        node.hidden = node.parent in folded
        if node.hidden or node.folded:
            folded.add(node.path)
