"""The steps of random programs: how each is written in a definition, and what it must come to.

`written` gives the JSON that Holdfast gets. `play` is a model of the step that shares nothing with the interpreter: it
notes in a `Play` what the results, the effects at the receiver and the mails of one run must be. Values are whole
numbers that flow from step to step, so that a step that was skipped, or fed with another's output, shows in a sum.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

PATIENT = {"max_attempts": 90, "first": "20ms", "longest": "1s", "total": "520w"}
TIMEOUT_SECONDS = 6
FOR_EVER = "520w"
EMPTY = {"v": 0}


@dataclass
class Play:
    """What one run must come to: `results` path -> (state, value), `effects` place -> value,
    `mails` and `delays` (seconds at least) by path, `below` place -> (the step, what the run that it starts must come to)."""

    results: dict[str, tuple[str, Any]] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)
    mails: Counter = field(default_factory=Counter)
    delays: dict[str, float] = field(default_factory=dict)
    below: dict[str, tuple[Below, Play]] = field(default_factory=dict)
    output: Any = None

    def gives(self, path: str, value: Any, state: str = "succeeded") -> None:
        self.results[path] = (state, value)


@dataclass
class Here:
    """Where a step is played: the path before it, the values of earlier steps, and what tells iterations apart."""

    prefix: str
    values: dict[str, int]
    tag: int | None = None


@dataclass
class Step:
    id: str
    static: str
    """Its path without iterations."""
    tag: str = ""
    """The expression that tells iterations apart, inside loops."""

    reads = ""
    """How the output is read as a whole number, after `steps.<id>.output`."""

    @property
    def place(self) -> str:
        """How the receiver knows this step's effects, as a template."""
        return f"{self.static}@{{{{ {self.tag} }}}}" if self.tag else self.static

    def placed(self, here: Here) -> str:
        return f"{self.static}@{here.tag}" if self.tag else self.static

    @property
    def ref(self) -> str:
        return f"steps.{self.id}.output{self.reads}"


@dataclass
class Sum:
    """`{{ an earlier step's value + a number }}`."""

    step: Step | None
    add: int

    @property
    def expression(self) -> str:
        return f"{self.step.ref} + {self.add}" if self.step else str(self.add)

    @property
    def template(self) -> Any:
        return f"{{{{ {self.expression} }}}}" if self.step else self.add

    def played(self, here: Here) -> int:
        return self.add + (here.values[self.step.id] if self.step else 0)


@dataclass
class Call(Step):
    """A call with an effect. `trouble` tells the receiver what to do before it behaves: see `receiver.py`."""

    sum: Sum = None
    how: str = "repeat"
    trouble: dict[str, Any] = field(default_factory=dict)
    rings: Callback | None = None
    url: str = ""
    method: str = "POST"
    reads = ".body.v"

    def written(self) -> dict[str, Any]:
        body = {"run": "{{ run.id }}", "place": self.place, "v": self.sum.template}
        body |= {"trouble": self.trouble, "how": self.how}
        if self.rings:
            body |= {"call": f"{{{{ callbacks.{self.rings.id} }}}}", "answer": self.rings.answer}
        config = {"method": self.method, "url": f"{self.url}/effect", "json": body}
        step = {"id": self.id, "type": "http", "config": config, "retry": PATIENT, "timeout": f"{TIMEOUT_SECONDS}s"}
        return step | {"on_interrupted": self._check() if self.how == "check" else self.how}

    def _check(self) -> dict[str, Any]:
        query = {"run": "{{ string(run.id) }}", "place": self.place}
        request = {"method": "GET", "url": f"{self.url}/happened", "query": query}
        return {"check": {"request": request, "happened": "response.body.seen", "after": "1s"}}

    def play(self, play: Play, here: Here) -> None:
        value = here.values[self.id] = self.sum.played(here)
        play.effects[self.placed(here)] = value
        play.gives(here.prefix + self.id, value)


@dataclass
class Bad(Step):
    """A call that the receiver refuses for good, handled by going on or by an error lane."""

    lane: bool = False
    url: str = ""

    def written(self) -> dict[str, Any]:
        body = {"run": "{{ run.id }}", "place": self.place, "v": 0, "trouble": {"reject": True}}
        step = {
            "id": self.id,
            "type": "http",
            "config": {"method": "POST", "url": f"{self.url}/effect", "json": body},
            "retry": PATIENT,
            "on_interrupted": "repeat",
        }
        after = {"id": f"{self.id}_after", "type": "set", "config": {"values": EMPTY}}
        return step | {"on_error": {"steps": [after]} if self.lane else "continue"}

    def play(self, play: Play, here: Here) -> None:
        path = here.prefix + self.id
        play.gives(path, None, "failed")
        if self.lane:
            play.gives(f"{path}/on_error/{self.id}_after", 0)


@dataclass
class Keep(Step):
    sum: Sum = None
    reads = ".v"

    def written(self) -> dict[str, Any]:
        return {"id": self.id, "type": "set", "config": {"values": {"v": self.sum.template}}}

    def play(self, play: Play, here: Here) -> None:
        here.values[self.id] = self.sum.played(here)
        play.gives(here.prefix + self.id, here.values[self.id])


@dataclass
class Delay(Step):
    length: str = "1ms"

    def written(self) -> dict[str, Any]:
        return {"id": self.id, "type": "delay", "config": {"for": self.length}}

    def play(self, play: Play, here: Here) -> None:
        play.gives(here.prefix + self.id, None)
        play.delays[here.prefix + self.id] = {"ms": 0.001, "s": 1, "h": 3600}[self.length.lstrip("0123456789")] * int(
            re.match(r"\d+", self.length)[0]
        )


@dataclass
class Mail(Step):
    def written(self) -> dict[str, Any]:
        return {"id": self.id, "type": "email", "config": {"to": ["lee@example.com"], "subject": "Chaos {{ run.id }}"}}

    def play(self, play: Play, here: Here) -> None:
        play.gives(here.prefix + self.id, None)
        play.mails[here.prefix + self.id] += 1


@dataclass
class Callback(Step):
    """Whoever calls back answers with `answer`: the receiver, when a call handed it the address, else `people.py`."""

    answer: int = 0
    reads = ".v"

    def written(self) -> dict[str, Any]:
        return {"id": self.id, "type": "callback", "config": {"expires": FOR_EVER}}

    def play(self, play: Play, here: Here) -> None:
        here.values[self.id] = self.answer
        play.gives(here.prefix + self.id, self.answer)


@dataclass
class Approval(Step):
    approve: bool = True
    everybody: bool = False

    def written(self) -> dict[str, Any]:
        config = {
            "approvers": ["dana@example.com", "lee@example.com"],
            "policy": "all" if self.everybody else "any",
            "subject": "approve" if self.approve else "reject",
            "expires": FOR_EVER,
            "on_rejected": "go_on",
        }
        return {"id": self.id, "type": "approval", "config": config}

    def play(self, play: Play, here: Here) -> None:
        play.gives(here.prefix + self.id, "approved" if self.approve else "rejected")


@dataclass
class Condition(Step):
    sum: Sum = None
    limit: int = 0
    yes: list[Any] = field(default_factory=list)
    no: list[Any] = field(default_factory=list)

    def written(self) -> dict[str, Any]:
        when = f"{self.sum.expression} > {self.limit}"
        lanes = [{"id": "yes", "when": when, "steps": written(self.yes)}, {"id": "no", "steps": written(self.no)}]
        return {"id": self.id, "type": "condition", "branches": lanes}

    def play(self, play: Play, here: Here) -> None:
        lane = "yes" if self.sum.played(here) > self.limit else "no"
        play.gives(here.prefix + self.id, lane)
        inner = Here(f"{here.prefix}{self.id}/{lane}/", here.values, here.tag)
        played(self.yes if lane == "yes" else self.no, play, inner)


@dataclass
class Parallel(Step):
    lanes: list[list[Any]] = field(default_factory=list)

    def written(self) -> dict[str, Any]:
        lanes = [{"id": f"l{n}", "steps": written(lane)} for n, lane in enumerate(self.lanes)]
        return {"id": self.id, "type": "parallel", "branches": lanes}

    def play(self, play: Play, here: Here) -> None:
        for n, lane in enumerate(self.lanes):
            played(lane, play, Here(f"{here.prefix}{self.id}/l{n}/", here.values, here.tag))
        play.gives(here.prefix + self.id, len(self.lanes))


@dataclass
class Loop(Step):
    """For each of `count` items, `width` at a time, or a while loop. It collects what `last` gave, else the items."""

    count: int = 2
    width: int = 1
    whiles: bool = False
    body: list[Any] = field(default_factory=list)
    last: Step | None = None
    reads = ".count"

    @property
    def inner_tag(self) -> str:
        return "loop.index" if self.whiles else "loop.item"

    def written(self) -> dict[str, Any]:
        collect = self.last.ref if self.last else self.inner_tag
        if self.whiles:
            config = {"while": f"loop.index < {self.count}", "max": 50, "collect": collect}
        else:
            items = [f"{self.tag} * 10 + {n}" if self.tag else str(n) for n in range(1, self.count + 1)]
            config = {"items": f"[{', '.join(items)}]", "concurrency": self.width, "collect": collect}
        return {"id": self.id, "type": "loop", "config": config, "steps": written(self.body)}

    def play(self, play: Play, here: Here) -> None:
        results = []
        for index in range(self.count):
            inner = Here(f"{here.prefix}{self.id}[{index}]/", dict(here.values), self._tag(here, index))
            played(self.body, play, inner)
            results.append(inner.values[self.last.id] if self.last else inner.tag)
        here.values[self.id] = self.count
        play.gives(here.prefix + self.id, (self.count, results))

    def _tag(self, here: Here, index: int) -> int:
        return index if self.whiles else (here.tag * 10 if self.tag else 0) + index + 1


@dataclass
class Box(Step):
    """A loop whose first iteration ends in a failure, which an error lane takes care of."""

    body: list[Any] = field(default_factory=list)
    bad: Bad | None = None
    inner_tag = "loop.item"

    def written(self) -> dict[str, Any]:
        bad = {name: value for name, value in self.bad.written().items() if name != "on_error"}
        rescue = {"id": f"{self.id}_rescue", "type": "set", "config": {"values": EMPTY}}
        items = f"[{self.tag} * 10 + 1, {self.tag} * 10 + 2]" if self.tag else "[1, 2]"
        steps = [*written(self.body), bad]
        return {
            "id": self.id, "type": "loop", "config": {"items": items}, "steps": steps, "on_error": {"steps": [rescue]}
        }  # fmt: skip

    def play(self, play: Play, here: Here) -> None:
        path = here.prefix + self.id
        inner = Here(f"{path}[0]/", dict(here.values), (here.tag * 10 if self.tag else 0) + 1)
        played(self.body, play, inner)
        play.gives(f"{path}[0]/{self.bad.id}", None, "failed")
        play.gives(f"{path}/on_error", None, "failed")
        play.gives(f"{path}/on_error/{self.id}_rescue", 0)


@dataclass
class Given(Step):
    """What a flow was given by the one that runs it."""

    @property
    def ref(self) -> str:
        return "trigger.body.v"


@dataclass
class Below(Step):
    """Runs another flow, whose steps begin with what it is given, and waits for its end or goes on at once."""

    sum: Sum = None
    flow: str = ""
    waits: bool = True
    given: Given | None = None
    steps: list[Any] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    reads = ".output.v"

    def written(self) -> dict[str, Any]:
        config = {"flow": self.flow, "input": {"v": self.sum.template, "at": self.place}, "wait": self.waits}
        return {"id": self.id, "type": "workflow", "config": config}

    def play(self, play: Play, here: Here) -> None:
        below = Play()
        played(self.steps, below, Here("", {self.given.id: self.sum.played(here)}))
        play.below[self.placed(here)] = self, below
        if self.waits:
            here.values[self.id] = below.output["v"]
        play.gives(here.prefix + self.id, below.output["v"] if self.waits else None)


@dataclass
class Stop(Step):
    sum: Sum = None

    def written(self) -> dict[str, Any]:
        return {"id": self.id, "type": "stop", "config": {"message": "done", "output": {"v": self.sum.template}}}

    def play(self, play: Play, here: Here) -> None:
        play.output = {"v": self.sum.played(here)}
        play.gives(here.prefix + self.id, play.output["v"])


def written(steps: list[Any]) -> list[dict[str, Any]]:
    return [step.written() for step in steps]


def played(steps: list[Any], play: Play, here: Here) -> None:
    for step in steps:
        step.play(play, here)
