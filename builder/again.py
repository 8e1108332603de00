"""What an act on a run repeats, in the words of its version: which steps run again, what is reused, what happens once more
outside."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from runtime import acts, keeping, reopening, retries
from runtime.courses import Course, NoSuchStep, course_of
from runtime.definition import find, walk
from runtime.models import Run, Version
from runtime.paths import step_of
from runtime.states import RunState

from .editing.places import label_of, name_at

MOST_NAMED = 40
OUTCOMES = {
    "answered": "was answered",
    "unknown": "may have happened",
    "open": "was under way",
    "run": "starts its run again, as a new one",
    "refused": "was refused",
    "not_sent": "was not sent",
    "doubt": "may have happened: the new run asks before it is made again",
    "repeat": "may have happened: it is made again with the key that it had",
    "child": "the run that it started is waited for further",
}
WHY = {
    keeping.FAILED: "failed",
    keeping.REPAIRED: "failed, and was changed since",
    keeping.CHANGED: "was changed since",
    keeping.NEW: "is new",
    keeping.OPEN: "had not ended",
    keeping.ADDRESS: "gave out the address of a callback of this run",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One line: a step, how often it ran, and where when that is not clear from its name."""

    id: str
    name: str
    icon: str
    number: int
    state: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    again: list[Step]
    kept: list[Step]
    effects: list[dict[str, Any]]
    more_effects: int
    refused: str = ""
    stops: list[tuple[str, str]] = field(default_factory=list)
    """Where a new run goes on that keeps results: the step's name, and why there."""


def told(run: Run, course: Course | None, refused: str = "", new_run: bool = False) -> Told:
    """For a retry of this course, a requeue (None), or a new run, whose keys are not known before it has a number."""
    return _told(run.version.definition, retries.forecast(run, course), refused, new_run)


def _told(definition: dict[str, Any], found: retries.Forecast, refused: str = "", new_run: bool = False) -> Told:
    again = [_step(definition, step, path, number, state) for step, number, path, state in found.again]
    again += [_step(definition, step_of(path), path, 1, "") for path in found.undone]
    kept = [_step(definition, step, path, number, state) for step, number, path, state in found.kept]
    order = {step["id"]: place for place, step in enumerate(walk(definition.get("steps") or []))}
    for steps in (again, kept):
        steps.sort(key=lambda step: order.get(step.id, 0))
    effects = [
        {
            "name": name_at(definition, effect.path),
            "icon": (find(definition, step_of(effect.path)) or {}).get("type", ""),
            "where": where(effect.path),
            "key": "" if new_run else effect.key,
            "words": f"Mail to {', '.join(effect.recipients[:3])}" if effect.recipients else OUTCOMES.get(effect.outcome, ""),
            "more": max(0, len(effect.recipients) - 3),
        }
        for effect in found.effects
    ]
    return Told(again, kept, effects[:MOST_NAMED], found.more_effects + max(0, len(effects) - MOST_NAMED), refused)


def for_retry(run: Run, path: str) -> Told:
    """What a retry from here would do, or why there can be none."""
    try:
        course = course_of(run.version.definition, path)
        acts.require_retriable(run.pk, path, course)
        reopening.require_no_other(run.pk)
    except (NoSuchStep, acts.NotPossible) as wrong:
        return Told([], [], [], 0, str(wrong))
    return told(run, course, _ended(run))


def for_requeue(run: Run) -> Told:
    try:
        reopening.require_no_other(run.pk)
    except acts.NotPossible as wrong:
        return Told([], [], [], 0, str(wrong))
    return told(run, None, "" if run.state == "failed" else "Only a failed run can be requeued.")


def for_rerun(run: Run) -> Told:
    """A new run does all of it again."""
    everything = Course(roots=[step["id"] for step in run.version.definition.get("steps") or []])
    return told(run, everything, new_run=True)


def for_continue(run: Run, version: Version) -> Told:
    """A new run of this version begins with the results that carry. What the version does not have is not told of."""
    try:
        kept = keeping.kept(run, version)
    except keeping.NotKept as wrong:
        return Told([], [], [], 0, str(wrong))
    ids = {step["id"] for step in walk(version.definition.get("steps") or [])}
    found = retries.forecast_below(run, kept.again)
    found.again = [row for row in found.again if row[0] in ids]
    found.kept = [row for row in found.kept if kept.keeps(row[2])]
    found.undone = [path for path in found.undone if step_of(path) in ids]
    words = {path: word for word, those in (("doubt", kept.doubts), ("repeat", kept.repeats), ("child", kept.children)) for path in those}
    found.effects = [
        replace(effect, outcome=words.get(effect.path, effect.outcome)) for effect in found.effects if step_of(effect.path) in ids
    ]
    made = _told(version.definition, found, new_run=True)
    stops = [(", ".join(filter(None, (name_at(version.definition, path), where(path)))), WHY[why]) for path, why in kept.stops]
    return replace(made, stops=stops)


@dataclass(frozen=True, slots=True)
class Continuation:
    """A new run can go on with what this one did, on `version`; `first` where that is what helps: the step that failed was
    changed in it."""

    version: Version
    first: bool


def continuation(run: Run, later: Collection[int]) -> Continuation | None:
    """Of a run that failed or was cancelled, unless a later one has it in hand. A failed one is requeued on its own version."""
    if run.state not in (RunState.FAILED, RunState.CANCELLED) or later:
        return None
    version = continued_on(run)
    if run.state == RunState.FAILED and version.pk == run.version_id:
        return None
    failed = str((run.error or {}).get("step") or "")
    before, now = (find(one.definition, failed) for one in (run.version, version))
    changed = before is not None and (now is None or keeping.own(now) != keeping.own(before))
    return Continuation(version, changed and run.state == RunState.FAILED)


def continued_on(run: Run) -> Version:
    """The live version; that of the run where nothing is live any more."""
    live = run.workflow.live_version if not run.workflow.deleted_at else None
    return live or run.version


def _ended(run: Run) -> str:
    ended = run.state in ("succeeded", "cancelled")
    return "The run has ended. Start it again with the same input instead." if ended else ""


def _step(definition: dict[str, Any], step: str, path: str, number: int, state: str) -> Step:
    found = find(definition, step) or {}
    return Step(step, label_of(found) or step, found.get("type", ""), number, state, where(path) if number == 1 else "")


def where(path: str) -> str:
    """`each[2]/add` -> `iteration 3`; nested ones from the outside in."""
    numbers = [int(number) + 1 for number in re.findall(r"\[(\d+)\]", path)]
    return f"iteration {', '.join(f'{number:,}' for number in numbers)}" if numbers else ""
