"""Killed anywhere, a run comes to the end that it would have come to, and no finished step runs again.

The flow has every step type. Whoever decides, calls back and moves the clock does so as soon as there is something
to do, whether the workers live or not.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any

import pytest

from runtime.credentials import seal
from runtime.definition import walk
from runtime.failpoints import NAMES
from runtime.models import Credential, OutboxMessage, Run, Team, Workflow
from runtime.steps import step_types
from tests.runtime.engine import eventually
from tests.servers.ai import AiServer

IN_OTHER_PROCESSES = {"decision.before", "decision.inside", "decision.after"}  # hit by whoever decides; see test_engine_races.py
BY_SCHEDULE = {"schedule.inside", "schedule.after"}  # see test_schedules.py
STEADY = {
    "decision": 1,
    "status": 1,
    "branch": 1,
    "count": 1,
    "results": 1,
    "subject": 1,
    "score": 1,
    "sum": 1,
    "note": 1,
    "lanes": 1,
    "state": 1,
}
BELOW = [
    {"id": "a", "type": "delay", "config": {"for": "1ms"}},
    {"id": "end", "type": "stop", "config": {"output": {"sum": "{{ trigger.body.n * 2 }}"}}},
]
"""The flow that the step `below` starts, and its runs."""
BELOW_ENDS = [("succeeded", {"sum": 42})]


@pytest.fixture(scope="module")
def ai():
    with AiServer() as server:
        yield server


def flow(crm, ai) -> list[dict[str, Any]]:
    def call(id: str, method: str, path: str) -> dict[str, Any]:
        config = {"method": method, "url": crm.url + "/{{ run.id }}/" + path, "json": {"size": 3}}
        return {"id": id, "type": "http", "config": config, "on_interrupted": "repeat"}

    schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    return [
        {
            "id": "score",
            "type": "ai",
            "config": {"task": "extract", "prompt": "Score it", "connection": "ai", "schema": schema},
        },
        {
            "id": "names",
            "type": "set",
            "config": {"values": {"sum": "{{ 40 + 2 }}", "note": "{{ string(steps.score.output.score) }}"}},
        },
        call("put", "PUT", "put"),
        {
            "id": "high",
            "type": "condition",
            "branches": [
                {"id": "yes", "when": "steps.names.output.sum == 42", "steps": [call("deal", "POST", "high/yes/deal")]},
                {"id": "no", "steps": []},
            ],
        },
        {
            "id": "both",
            "type": "parallel",
            "branches": [
                {
                    "id": "a",
                    "steps": [
                        {"id": "hour", "type": "delay", "config": {"for": "1h"}},
                        call("late", "PUT", "both/a/late"),
                    ],
                },
                {
                    "id": "b",
                    "steps": [
                        {
                            "id": "ok",
                            "type": "approval",
                            "config": {"approvers": ["dana@example.com"], "subject": "Go on?"},
                        }
                    ],
                },
            ],
        },
        {
            "id": "each",
            "type": "loop",
            "config": {"items": "[1, 2, 3, 4, 5]", "concurrency": 2, "collect": "steps.add.output.status"},
            "steps": [
                call("add", "POST", "each_{{ loop.index }}/add"),
                {"id": "mark", "type": "set", "config": {"values": {"note": "{{ loop.item }}"}}},
            ],
        },
        {"id": "moment", "type": "delay", "config": {"for": "1ms"}},  # is over before its run is let go
        {"id": "reply", "type": "callback"},
        {"id": "below", "type": "workflow", "config": {"flow": "Below", "input": {"n": 21}}},
        {
            "id": "gone",
            "type": "probe",
            "config": {"fail": 9, "retry": False},
            "on_error": {
                "steps": [
                    {"id": "mail", "type": "email", "config": {"to": ["lee@example.com"], "subject": "It failed"}}
                ]
            },
        },
        {"id": "end", "type": "stop", "config": {"message": "done", "output": {"sum": "{{ steps.names.output.sum }}"}}},
    ]


def steady(results: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """What must be the same in every run of the flow; a failure's words tell the attempt's number."""

    def kept(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"attempt \d+", "attempt", value)
        return {name: value[name] for name in value if name in STEADY} if isinstance(value, dict) else value

    return {path: (state, kept(value)) for path, (state, value) in results.items()}


def called(crm, run: int) -> list[tuple[str, bool]]:
    """(path of the step, whether it was an effect) of each call, in order."""
    rows = [row for row in crm.ledger() if row["path"].startswith(f"/{run}/")]
    return [(re.sub(r"_(\d)", r"[\1]", row["path"].removeprefix(f"/{run}/")), row["effect"]) for row in rows]


def effects_of(calls: list[tuple[str, bool]]) -> Counter:
    return Counter(path for path, effect in calls if effect)


def test_killed_at_every_failpoint_the_run_ends_as_if_nothing_had_happened(engine, clock, crm, ai):
    workflow = Workflow.objects.create(team=Team.objects.create(name="Engine"), name="Everything")
    row = Credential(
        team=workflow.team,
        name="ai",
        kind="openai",
        hosts=["127.0.0.1"],
        config={"base_url": ai.url + "/v1", "model": "m"},
    )
    seal(row, {"api_key": "key-of-the-test"})
    version = engine.publish(flow(crm, ai), workflow=workflow)
    assert {step["type"] for step in walk(version.definition["steps"])} == step_types().keys() - {"strange", "lethal", "slow_to_go"}
    below = Workflow.objects.create(team=workflow.team, name="Below")
    engine.publish(BELOW, workflow=below)

    undisturbed = engine.start(version)
    passed = engine.folder / "passed"
    healthy = engine.worker(env={"HOLDFAST_FAILPOINTS_PASSED": str(passed)})
    engine.drive(clock, [undisturbed], lambda: engine.state(undisturbed) != "open")
    engine.ends(undisturbed)
    expected = steady(engine.results(undisturbed))
    effects = effects_of(called(crm, undisturbed))
    assert len(effects) == effects.total() == 8 and len(expected) == 26, (effects, expected)
    mails = OutboxMessage.objects.filter(run_id=undisturbed).count()
    eventually(lambda: not OutboxMessage.objects.filter(run_id=undisturbed).exclude(state="sent").exists())
    healthy.kill()
    often = Counter(passed.read_text().splitlines())
    names = [name for name in NAMES if name not in IN_OTHER_PROCESSES | BY_SCHEDULE]
    assert set(names) <= {*often, "renew.before", "renew.after"}, "a place that the flow does not pass"
    first = [(name, 1) for name in names]
    last = [(name, often[name]) for name in names if often[name] > 1 and not name.startswith("renew")]

    wrong = {}
    every = [(name, n) for name in names for n in range(1, often[name] + 2)]
    for name, n in every if os.environ.get("CHAOS_FAILPOINTS") == "all" else first + last:
        run = engine.start(version)
        # Leases are renewed after a third. Batches come together otherwise each time: a last passing may not come.
        doomed = engine.worker(failpoint=f"{name}:{n}", lease_seconds=1.5 if name.startswith("renew") else 6)
        engine.drive(clock, [run], lambda: doomed.status() is not None or n > 1 and engine.state(run) != "open")
        if doomed.status() is None:
            doomed.kill()
        engine.leases_end()
        engine.sql("update outbox set due_at = clock_timestamp() where state = 'sending'")  # its lease is minutes long
        finished, before = set(engine.results(run)), called(crm, run)
        healthy = engine.worker()
        engine.drive(clock, [run], lambda: engine.state(run) != "open")
        eventually(lambda: not OutboxMessage.objects.filter(run_id=run).exclude(state="sent").exists())
        healthy.kill()
        calls = called(crm, run)
        told = {
            "death": doomed.status() != -9 and doomed.status(),
            "state": engine.state(run) != "succeeded" and engine.state(run),
            "results": steady(engine.results(run)) != expected and steady(engine.results(run)),
            "effects": effects_of(calls) != effects and calls,
            "finished steps ran again": finished & {path for path, _ in calls[len(before) :]},
            "more repeats than calls that were in flight": len(calls) - len(effects) > 2 and calls,
            "mails": OutboxMessage.objects.filter(run_id=run).count() != mails and "other mails",
            "runs below": (below := list(Run.objects.filter(parent_id=run).values_list("state", "output"))) != BELOW_ENDS and below,
            "open attempts": [attempt.path for attempt in engine.attempts(run) if attempt.outcome is None],
        }
        told = {what: value for what, value in told.items() if value}
        print(f"{name}:{n}", told or "as if nothing had happened", flush=True)
        if told:
            wrong[f"{name}:{n}"] = told
    assert not wrong, wrong
