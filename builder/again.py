"""What an act on a run repeats, in the words of its version: which steps run again, what is reused, what happens once more
outside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runtime import acts, retries
from runtime.courses import Course, NoSuchStep, course_of
from runtime.definition import find, walk
from runtime.models import Run
from runtime.paths import step_of

from .editing.places import label_of, name_at

MOST_NAMED = 40
OUTCOMES = {
    "answered": "was answered",
    "unknown": "may have happened",
    "open": "was under way",
    "run": "starts its run again, as a new one",
    "refused": "was refused",
    "not_sent": "was not sent",
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


def told(run: Run, course: Course | None, refused: str = "", new_run: bool = False) -> Told:
    """For a retry of this course, a requeue (None), or a new run, whose keys are not known before it has a number."""
    definition = run.version.definition
    found = retries.forecast(run, course)
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
    except (NoSuchStep, acts.NotPossible) as wrong:
        return Told([], [], [], 0, str(wrong))
    return told(run, course, _ended(run))


def for_requeue(run: Run) -> Told:
    return told(run, None, "" if run.state == "failed" else "Only a failed run can be requeued.")


def for_rerun(run: Run) -> Told:
    """A new run does all of it again."""
    everything = Course(roots=[step["id"] for step in run.version.definition.get("steps") or []])
    return told(run, everything, new_run=True)


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
