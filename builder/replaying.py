"""Finished runs on another definition of their flow: where they would go another way, step by step. Nothing is done."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from runtime.definition import find, walk
from runtime.models import Run, Workflow
from runtime.paths import step_of
from runtime.replay import EVALUATED, Evaluated, Key, Walked, remembered, replayed
from runtime.steps import step_types
from runtime.tokens import without_signatures

from .diff import differences
from .editing.places import label_of

LANE, OUTPUT, INPUT, FAILS, NEW, GONE, UNKNOWN, END, TITLE = (
    "lane", "output", "input", "failure", "new step", "step not reached", "nothing remembered", "end", "title",
)  # fmt: skip

WORDS = {
    LANE: "takes another lane", OUTPUT: "gives something else", INPUT: "is given something else", FAILS: "ends otherwise",
    NEW: "is new", GONE: "is not reached", UNKNOWN: "is new, and what comes after it cannot be told", END: "ends otherwise",
    TITLE: "is called otherwise",
}  # fmt: skip

WAYS = tuple(WORDS)
_COUNTED = re.compile(r"(\d{1,6})\.(\d{1,2}):(\d{1,6})(?:,|$)")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the other definition does otherwise. `path` is where; empty for the run as a whole. `field` is
    dotted, within an output or an input."""

    run: int
    path: str
    step: str
    what: str
    field: str
    was: Any
    now: Any

    @property
    def words(self) -> str:
        return WORDS[self.what]


def finished(workflow: Workflow, number: int, most: int, *, upto: int = 0, only: list[int] | None = None) -> list[int]:
    """Finished runs of a version, the newest first; none newer than `upto`, and of some only those."""
    found = Run.objects.filter(workflow=workflow, version__number=number).exclude(ended_at=None)
    found = found.filter(pk__lte=upto) if upto else found
    found = found.filter(pk__in=only) if only else found
    return list(found.order_by("-pk").values_list("pk", flat=True)[:most])


def names_of(before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    """Step id -> its name, of `after` where both definitions have the step. Steps that would have one name, as those do that
    were given none, have their ids beside it."""
    named = {step["id"]: label_of(step) for one in (before, after) for step in walk(one.get("steps") or [])}
    shared = Counter(named.values())
    return {id: name if shared[name] == 1 else f"{name} ({id})" for id, name in named.items()}


def compared(run: Run, definition: dict[str, Any]) -> list[Difference]:
    """In the order in which the run went, then what is new, then its end. Raises PlanError.

    What is evaluated is compared with what the run has stored, so that other code shows, too. What a call was given is
    not stored as it was filled in; so the run's own version is walked beside."""
    memo = remembered(run)
    before, after = replayed(run, run.version.definition, memo), replayed(run, definition, memo)
    told = _Told(run, definition)
    stuck = [path for path in after.missing if path not in before.missing] if after.state is None else []
    for key, was in before.results.items():
        now = after.results.get(key)
        if now is not None or not stuck:  # what comes after a place of which nothing is remembered cannot be told
            told.step(key, _as_stored(was, memo.get(key)), was, now)
    for key, now in after.results.items():
        if key not in before.results:
            told.add(now.path, NEW, None, now.output)
    for path in stuck:
        told.add(path, UNKNOWN, None, "it would run here, which it never did")
    told.end(before, after)
    return told.found


class Tally:
    """How many runs differ in what way at which step, in the order of the flow. Kept as text between the turns of a replay:
    `PLACE.WAY:RUNS`, by commas, where place 0 is the run as a whole."""

    def __init__(self, before: dict[str, Any], after: dict[str, Any], text: str = ""):
        names = names_of(before, after)
        self.places, self.names = ["", *names], {"": "The run", **names}
        self.runs: Counter[tuple[int, int]] = Counter()
        for found in _COUNTED.finditer(text):
            place, way, number = map(int, found.groups())
            if place < len(self.places) and way < len(WAYS):
                self.runs[place, way] += number

    def add(self, differences: list[Difference]) -> None:
        """What one run does otherwise."""
        place = {id: number for number, id in enumerate(self.places)}
        self.runs.update({(place.get(step_of(one.path), 0), WAYS.index(one.what)) for one in differences})

    @property
    def text(self) -> str:
        return ",".join(f"{place}.{way}:{number}" for (place, way), number in self.runs.items())

    @property
    def rows(self) -> list[dict[str, Any]]:
        """`{"step": its id, "name", "words", "runs"}`."""
        return [
            {"step": self.places[place], "name": self.names[self.places[place]], "words": WORDS[WAYS[way]], "runs": number}
            for (place, way), number in sorted(self.runs.items(), key=lambda one: (one[0][0] or len(self.places), one[0][1]))
        ]


class _Told:
    def __init__(self, run: Run, definition: dict[str, Any]):
        self.run, self.definition = run, definition
        self.names = names_of(run.version.definition, definition)
        self.found: list[Difference] = []

    def add(self, path: str, what: str, was: Any, now: Any, field: str = "") -> None:
        name = self.names.get(step_of(path), "")
        self.found.append(Difference(self.run.pk, path, name, what, field, *without_signatures((was, now))))

    def fields(self, path: str, what: str, was: Any, now: Any) -> None:
        for change in differences(was, now, ""):
            self.add(path, what, change.before, change.after, change.field)

    def step(self, key: Key, stored: Evaluated, was: Evaluated, now: Evaluated | None) -> None:
        if now is None:
            self.add(was.path, GONE, stored.output, None)
        elif stored.state != now.state or _message(stored.error) != _message(now.error):
            self.add(now.path, FAILS, _message(stored.error) or stored.state, _message(now.error) or now.state)
        elif _lane(stored) is not None or _lane(now) is not None:
            if _lane(stored) != _lane(now):
                self.add(now.path, LANE, _lane(stored), _lane(now))
        elif self._evaluated(key[0]):
            self.fields(now.path, OUTPUT, stored.output, now.output)
        else:
            self.fields(now.path, INPUT, was.input, now.input)

    def end(self, before: Walked, after: Walked) -> None:
        """A run that a person ended is compared with how far its own version goes."""
        was = before if before.state is None else Walked(
            state=self.run.state, output=self.run.output, error=self.run.error, title=self.run.title
        )  # fmt: skip
        if was.state != after.state or _message(was.error) != _message(after.error):
            words = [one.state and (_message(one.error) or one.state) or "waits" for one in (was, after)]
            self.add("", END, *words)
        if was.state and after.state:
            self.fields("", OUTPUT, was.output, after.output)
            self.fields("", TITLE, was.title, after.title)

    def _evaluated(self, step_id: str) -> bool:
        step = find(self.definition, step_id) or {}
        kind = step_types().get(step.get("type", ""))
        return kind is not None and (bool(kind.children) or kind.type in EVALUATED)


def _as_stored(was: Evaluated, row: Any) -> Evaluated:
    return Evaluated(was.path, row.state, row.input, row.value, row.error) if row else was


def _lane(result: Evaluated) -> str | None:
    output = result.output
    return output["branch"] if isinstance(output, dict) and set(output) == {"branch"} else None


def _message(error: dict[str, Any] | None) -> str:
    return str((error or {}).get("message", ""))
