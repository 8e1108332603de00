"""Random flows, run to the end under workers that are killed, give what they give undisturbed."""

from __future__ import annotations

import os
import random
import re
from typing import Any

from runtime.failpoints import NAMES

PLACES = [name for name in NAMES if name.split(".")[0] in ("claim", "attempt", "call", "journal", "wait", "release")]
SEED = int(os.environ.get("HOLDFAST_TEST_SEED", "20270115"))


class Flow:
    """A definition whose results do not depend on timing: what fails is handled where nothing goes on beside it."""

    def __init__(self, seed: int):
        self.random, self.count = random.Random(seed), 0
        self.seen: list[str] = []

    def steps(self, depth: int = 0, beside: bool = False) -> list[dict[str, Any]]:
        known = len(self.seen)
        steps = [self.step(depth, beside) for _ in range(self.random.randint(1, 4 if depth == 0 else 2))]
        if depth:
            del self.seen[known:]  # lanes may not have been taken
        return steps

    def step(self, depth: int, beside: bool) -> dict[str, Any]:
        self.count += 1
        leaves = [self.probe, self.probe, self.set, self.delay, self.callback, self.failing]
        boxes = [self.condition, self.parallel, self.loop] + ([] if beside else [self.failing_box])
        return self.random.choice(leaves + (boxes * 2 if depth < 3 else []))(f"s{self.count}", depth, beside)

    def value(self) -> Any:
        if self.seen and self.random.random() < 0.6:
            return f"{{{{ steps.{self.random.choice(self.seen)}.output }}}}"
        return self.random.choice([1, "text", [1, 2], {"a": {"b": None}}, "{{ trigger.body.n + 1 }}", "{{ run.test }}"])

    def probe(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        step = {
            "id": id,
            "type": "probe",
            "config": {"value": self.value(), "fail": self.random.choice([0, 0, 1])},
            "retry": {"first": "1ms"},
        }
        self.seen.append(id)
        return step

    def set(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        step = {"id": id, "type": "set", "config": {"values": {"v": self.value()}}}
        self.seen.append(id)
        return step

    def delay(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        return {"id": id, "type": "delay", "config": {"for": self.random.choice(["1ms", "1h", "3d"])}}

    def callback(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        self.seen.append(id)
        return {"id": id, "type": "callback", "config": {"expires": "100w"}}

    def failing(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        lane = {
            "steps": [{"id": f"{id}r", "type": "probe", "config": {"value": f"{{{{ steps.{id}.error.message }}}}"}}]
        }
        config = {"fail": 99, "retry": False, "outcome": "answered"}
        return {"id": id, "type": "probe", "config": config, "on_error": self.random.choice(["continue", lane])}

    def condition(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        when = self.random.choice(["trigger.body.n > 1", "trigger.body.n > 5", "true"])
        lanes = [
            {"id": "a", "when": when, "steps": self.steps(depth + 1, beside)},
            {"id": "b", "steps": self.steps(depth + 1, beside)},
        ]
        return {"id": id, "type": "condition", "branches": lanes}

    def parallel(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        lanes = [{"id": f"l{n}", "steps": self.steps(depth + 1, True)} for n in range(self.random.randint(2, 3))]
        return {"id": id, "type": "parallel", "branches": lanes}

    def loop(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        width = self.random.choice([1, 2, 3])
        config = {
            "items": self.random.choice(["[1, 2, 3]", "trigger.body.list", "[]"]),
            "concurrency": width,
            "collect": "loop.item",
        }
        step = {"id": id, "type": "loop", "config": config, "steps": self.steps(depth + 1, beside or width > 1)}
        self.seen.append(id)
        return step

    def failing_box(self, id: str, depth: int, beside: bool) -> dict[str, Any]:
        bad = {"id": f"{id}f", "type": "probe", "config": {"fail": 99, "retry": False, "outcome": "answered"}}
        steps = [*self.steps(depth + 1, beside), bad]
        rescue = {
            "steps": [
                {"id": f"{id}r", "type": "set", "config": {"values": {"why": f"{{{{ steps.{id}.error.step }}}}"}}}
            ]
        }
        return {"id": id, "type": "loop", "config": {"items": "[1, 2]"}, "steps": steps, "on_error": rescue}


def told(engine, run: int) -> dict[str, Any]:
    """The results, without what may differ: the time that was waited until, and which attempt it was that failed."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: kept(one) for name, one in value.items() if name != "waited_until"}
        return re.sub(r"attempt \d+", "attempt", value) if isinstance(value, str) else value

    return {path: (state, kept(value)) for path, (state, value) in engine.results(run).items()}


def test_random_flows_give_under_kills_what_they_give_undisturbed(engine, clock):
    versions = [engine.publish(Flow(SEED + n).steps()) for n in range(12)]
    body = {"n": 3, "list": ["x", {"y": 1}, None]}

    def all_ended(runs: list[int]) -> bool:
        return not engine.sql("select 1 from dispatch where run_id = any(%s) limit 1", runs)

    undisturbed = [engine.start(version, body) for version in versions]
    healthy = engine.worker()
    engine.drive(clock, undisturbed, lambda: all_ended(undisturbed))
    healthy.kill()
    for run in undisturbed:
        engine.ends(run)

    disturbed = [engine.start(version, body) for version in versions]
    chance, deaths = random.Random(SEED), []
    for _ in range(4):
        place = f"{chance.choice(PLACES)}:{chance.randint(1, 12)}"
        doomed = engine.worker(failpoint=place)
        engine.drive(clock, disturbed, lambda doomed=doomed: doomed.status() is not None or all_ended(disturbed))
        doomed.kill()
        engine.leases_end()
        deaths.append((place, {(run, path) for run in disturbed for path in engine.results(run)}, len(engine.ledger())))
    engine.worker()
    engine.drive(clock, disturbed, lambda: all_ended(disturbed))
    for place, finished, calls in deaths:
        again = finished.intersection((line["run"], line["path"]) for line in engine.ledger()[calls:])
        assert not again, f"finished steps ran again after a death at {place}"
    for version, first, second in zip(versions, undisturbed, disturbed, strict=True):
        engine.ends(second)
        assert told(engine, second) == told(engine, first), (version.definition["steps"], engine.told(second))
        keys = {(line["path"], line["take"], line["key"]) for line in engine.ledger(second)}
        assert len(keys) == len({path for path, _, _ in keys}), "a repeat without its key"
