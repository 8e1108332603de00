"""Random programs. A seed gives the same ones each time; see `steps.py` for what they are made of."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

from runtime.paths import step_of
from tests.chaos import steps as kinds
from tests.chaos.steps import Below, Here, Play, Step, Sum, played, written

DEEPEST = 3
DEEPEST_FLOW = 2
HOWS = ("repeat", "repeat", "repeat", "ask", "ask", "check")
SURPRISES = ("die", "reset", "fail", "lose")
"""What the receiver does to a call that may have happened; see `receiver.py`."""


@dataclass
class Program:
    name: str
    steps: list[Any]
    play: Play = field(default_factory=Play)
    flows: list[Below] = field(default_factory=list)
    """Those that its steps run, and that those run."""
    hows: dict[str, str] = field(default_factory=dict)
    """Step id -> on_interrupted, of calls."""
    ignoring: set[str] = field(default_factory=set)
    """Places whose receiver ignores keys."""
    refused: set[str] = field(default_factory=set)
    """Steps whose first call is refused for good, which fails the run."""

    @classmethod
    def of(cls, name: str, steps: list[Any], play: Play, calls: list[kinds.Call]) -> Program:
        made = cls(name, steps, play, hows={call.id: call.how for call in calls})
        ignoring = {call.static for call in calls if call.trouble.get("ignore_keys")}
        made.refused = {call.id for call in calls if call.trouble.get("reject_first")}
        made.ignoring = {place for place in play.effects if place.partition("@")[0] in ignoring}
        return made

    def definitions(self) -> list[dict[str, Any]]:
        """Its own last."""
        flows = [(flow.flow, flow.steps) for flow in self.flows] + [(self.name, self.steps)]
        return [{"format": 1, "name": name, "steps": written(steps)} for name, steps in flows]

    def below(self, place: str) -> Program | None:
        """What the run must come to that is started at this place."""
        if place not in self.play.below:
            return None
        step, play = self.play.below[place]
        return Program.of(step.flow, step.steps, play, step.calls)

    @property
    def callbacks(self) -> dict[str, int]:
        """Path -> answer of the callbacks that people answer and whose path has no iteration in it."""
        found = (re.fullmatch(r"(?:.*/)?people\d+", path) and path for path in self.play.results)
        return {path: self.play.results[path][1] for path in found if path and "[" not in path}

    def may_fail(self, path: str) -> bool:
        """Whether a call whose first is refused is at this path or inside it."""
        refused = (one for one in self.play.results if step_of(one) in self.refused)
        return any(one == path or one.startswith((f"{path}/", f"{path}[")) for one in refused)


def program(seed: str, number: int, url: str) -> Program:
    """The program of this number."""
    name, play = f"Program {number}", Play()
    maker = Maker(random.Random(f"{seed}/{number}"), url, name)
    steps = maker.whole()
    played(steps, play, Here("", {}))
    made = Program.of(name, steps, play, maker.calls)
    made.flows = maker.flows
    return made


@dataclass
class Spot:
    """Where a sequence stands: its static path, the tag of its loop, what may be read, and what surrounds it."""

    static: str = ""
    tag: str = ""
    seen: list[Step] = field(default_factory=list)
    depth: int = 0
    boxed: bool = False
    beside: bool = False

    def inner(self, part: str, tag: str | None = None, **more: Any) -> Spot:
        given = {"boxed": self.boxed, "beside": self.beside, **more}
        return Spot(f"{self.static}{part}/", self.tag if tag is None else tag, list(self.seen), self.depth + 1, **given)


class Maker:
    def __init__(self, chance: random.Random, url: str, name: str, deep: int = 0):
        self.random, self.url, self.name, self.deep, self.count = chance, url, name, deep, 0
        self.calls: list[kinds.Call] = []
        self.flows: list[Below] = []

    def whole(self) -> list[Any]:
        spot = Spot()
        steps = [step for _ in range(self.random.randint(3, 6)) for step in self.some(spot)]
        if self.random.random() < 0.3:
            steps.append(kinds.Stop(*self.named("stop", spot), sum=self.sum(spot)))
        return steps

    def below(self, spot: Spot) -> list[Any]:
        """Nothing in it is refused for good, or answered by people who know its program."""
        step = kinds.Below(*self.named("below", spot), sum=self.sum(spot), waits=self.random.random() < 0.8)
        step.flow, inner = f"{self.name}, {step.id}", Spot(boxed=True)
        maker = Maker(self.random, self.url, step.flow, self.deep + 1)
        step.given = kinds.Given("given", "given")
        inner.seen.append(step.given)
        step.steps = [step for _ in range(self.random.randint(1, 3)) for step in maker.some(inner)]
        step.steps.append(kinds.Stop(*maker.named("stop", inner), sum=maker.sum(inner)))
        step.calls = maker.calls
        self.flows += [*maker.flows, step]
        return self.seen(spot, step) if step.waits else [step]

    def sequence(self, spot: Spot) -> list[Any]:
        return [step for _ in range(self.random.randint(1, 2)) for step in self.some(spot)]

    def some(self, spot: Spot) -> list[Any]:
        """One step, or two that belong together."""
        leaves = [self.call] * 5 + [self.keep, self.delay, self.people, self.approval, self.bad, self.mail, self.rung]
        leaves += [self.rung, self.rung_beside]
        if self.deep:
            leaves.remove(self.people)
        if self.deep < DEEPEST_FLOW:
            leaves += [self.below]
        boxes = [self.condition, self.parallel, self.loop, self.loop] + ([] if spot.beside else [self.box])
        return self.random.choice(leaves + (boxes * 2 if spot.depth < DEEPEST else []))(spot)

    def named(self, kind: str, spot: Spot) -> tuple[str, str, str]:
        self.count += 1
        return f"{kind}{self.count}", f"{spot.static}{kind}{self.count}", spot.tag

    def sum(self, spot: Spot) -> Sum:
        readable = spot.seen[-6:]
        chosen = self.random.choice(readable) if readable and self.random.random() < 0.8 else None
        return Sum(chosen, self.random.randint(1, 9))

    def seen(self, spot: Spot, step: Step) -> list[Any]:
        spot.seen.append(step)
        return [step]

    # Leaves

    def call(self, spot: Spot) -> list[Any]:
        step = kinds.Call(*self.named("call", spot), sum=self.sum(spot), url=self.url)
        step.how, step.method = self.random.choice(HOWS), self.random.choice(["POST", "PUT", "PATCH"])
        step.trouble = self.trouble(spot, step.how)
        self.calls.append(step)
        return self.seen(spot, step)

    def trouble(self, spot: Spot, how: str) -> dict[str, Any]:
        trouble: dict[str, Any] = {"slow": round(self.random.choice([0, 0, 0.01, 0.1, 0.4]), 3)}
        if self.random.random() < 0.15:
            trouble["refuse"] = self.random.randint(1, 2)
        if self.random.random() < 0.12:
            trouble[self.random.choice(SURPRISES)] = 1
        if how == "repeat" and self.random.random() < 0.25:
            trouble["ignore_keys"] = True
        if how == "repeat" and not spot.boxed and self.random.random() < 0.05:
            trouble["reject_first"] = True
        return trouble

    def keep(self, spot: Spot) -> list[Any]:
        return self.seen(spot, kinds.Keep(*self.named("keep", spot), sum=self.sum(spot)))

    def delay(self, spot: Spot) -> list[Any]:
        return [kinds.Delay(*self.named("delay", spot), length=self.random.choice(["1ms", "800ms", "2s", "1h", "2h"]))]

    def mail(self, spot: Spot) -> list[Any]:
        return [kinds.Mail(*self.named("mail", spot))]

    def people(self, spot: Spot) -> list[Any]:
        """A callback that people answer, some of them before it is asked for."""
        return self.seen(spot, kinds.Callback(*self.named("people", spot), answer=self.random.randint(1, 99)))

    def approval(self, spot: Spot) -> list[Any]:
        approve, everybody = self.random.random() < 0.7, self.random.random() < 0.4
        return [kinds.Approval(*self.named("approval", spot), approve=approve, everybody=everybody)]

    def bad(self, spot: Spot) -> list[Any]:
        return [kinds.Bad(*self.named("bad", spot), lane=self.random.random() < 0.5, url=self.url)]

    def rung(self, spot: Spot) -> list[Any]:
        """A call whose receiver calls back, about when the answer is there."""
        (call,) = self.call(spot)
        (callback,) = self.seen(spot, kinds.Callback(*self.named("rung", spot), answer=self.random.randint(1, 99)))
        call.rings, call.method = callback, "POST"
        return [call, callback]

    def rung_beside(self, spot: Spot) -> list[Any]:
        """As `rung`, while the callback is waited for already in another lane."""
        call, callback = self.rung(spot.inner("x"))
        step = kinds.Parallel(*self.named("parallel", spot), lanes=[[callback], [call]])
        for n, inner in enumerate((callback, call)):
            inner.static = f"{step.static}/l{n}/{inner.id}"
        return [step]

    # Containers

    def condition(self, spot: Spot) -> list[Any]:
        step = kinds.Condition(*self.named("condition", spot), sum=self.sum(spot), limit=self.random.randint(0, 30))
        step.yes = self.sequence(spot.inner(f"{step.id}/yes"))
        step.no = self.sequence(spot.inner(f"{step.id}/no")) if self.random.random() < 0.7 else []
        return [step]

    def parallel(self, spot: Spot) -> list[Any]:
        step = kinds.Parallel(*self.named("parallel", spot))
        lanes = range(self.random.randint(2, 3))
        step.lanes = [self.sequence(spot.inner(f"{step.id}/l{n}", beside=True)) for n in lanes]
        return [step]

    def loop(self, spot: Spot) -> list[Any]:
        step = kinds.Loop(*self.named("loop", spot), count=self.random.randint(0, 3))
        step.whiles = not spot.tag and self.random.random() < 0.25
        step.width = 1 if step.whiles else self.random.choice([1, 2, 3])
        inner = spot.inner(step.id, tag=step.inner_tag, beside=spot.beside or step.width > 1)
        step.body = self.sequence(inner)
        known = set(map(id, spot.seen))
        step.last = next((one for one in reversed(inner.seen) if id(one) not in known), None)
        return self.seen(spot, step)

    def box(self, spot: Spot) -> list[Any]:
        step = kinds.Box(*self.named("box", spot))
        inner = spot.inner(step.id, tag=step.inner_tag, boxed=True)
        step.body = self.sequence(inner)
        step.bad = kinds.Bad(*self.named("bad", inner), url=self.url)
        return [step]
