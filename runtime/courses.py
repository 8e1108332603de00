"""pure: what runs again when a step is retried. What stands before it, the lanes beside it and the other iterations of its
loops keep their results; the step, and whatever comes after it in the order of the flow, does not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .definition import children

_SEGMENT = re.compile(r"([^\[\]/]+)(?:\[(\d{1,9})\])?")


class NoSuchStep(ValueError):
    """The path leads to no step of this version."""


@dataclass(slots=True)
class Course:
    """`roots` are paths that run again with everything below them. `parallels` and `loops` hold the step and go on: of a
    loop one iteration is opened again; `lanes` are those of each parallel. `boxes` hold it by something else than their error lane."""

    step: dict[str, Any] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    parallels: list[str] = field(default_factory=list)
    lanes: dict[str, list[str]] = field(default_factory=dict)
    loops: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)


def course_of(definition: dict[str, Any], path: str) -> Course:
    """The course of a step, or of a whole iteration (`each[3]`). Raises NoSuchStep."""
    course, steps, prefix = Course(), definition.get("steps") or [], ""
    parts = path.split("/")
    while parts:
        name, index = _segment(parts.pop(0))
        at = next((n for n, step in enumerate(steps) if step["id"] == name), None)
        if at is None:
            raise NoSuchStep(f"This version has no step at “{path}”.")
        step, place = steps[at], prefix + name
        course.step = step
        course.roots += [prefix + later["id"] for later in steps[at + 1 :]]
        if index is None and not parts:
            course.roots.append(place)
            return course
        lane = "" if index is not None else parts.pop(0)
        _enter(course, step, place, lane, index)
        steps = dict(children(step)).get(lane)
        if steps is None or (index is not None) != (step["type"] == "loop" and not lane):
            raise NoSuchStep(f"This version has no step at “{path}”.")
        prefix = f"{place}[{index}]/" if index is not None else f"{place}/{lane}/"
    course.roots.append(prefix.rstrip("/"))
    return course


def _enter(course: Course, step: dict[str, Any], place: str, lane: str, index: int | None) -> None:
    if lane == "on_error":
        return
    course.boxes.append(place)
    if index is not None:
        course.loops.append((place, index, step))
    elif step["type"] == "parallel":
        course.parallels.append(place)
        course.lanes[place] = [branch["id"] for branch in step.get("branches") or []]


def _segment(text: str) -> tuple[str, int | None]:
    found = _SEGMENT.fullmatch(text)
    if found is None:
        raise NoSuchStep(f"“{text}” is no step of a path.")
    return found[1], int(found[2]) if found[2] else None
