"""A run held by a long call hears what happens to its other lanes; a resume costs the same wherever it is."""

from __future__ import annotations

import asyncio

import psycopg

from runtime import approvals, memory, waits
from runtime.database import connect
from runtime.models import Approval, Dispatch
from tests.runtime.engine import eventually


def test_what_is_resolved_while_another_lane_calls_goes_on(engine, clock, crm):
    """The call takes as long as it likes; the other lanes' delay, approval and callback go on beside it."""
    crm.control(after_commit="hang", after_commit_times=1)
    call = {
        "id": "long",
        "type": "http",
        "timeout": "2m",
        "config": {"method": "PUT", "url": crm.url + "/{{ run.id }}/long"},
    }
    lanes = {
        "b": [call],
        "timer": [{"id": "hour", "type": "delay", "config": {"for": "1h"}}, {"id": "after_hour", "type": "probe"}],
        "person": [
            {"id": "ok", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "?"}},
            {"id": "after_ok", "type": "probe"},
        ],
        "other": [{"id": "reply", "type": "callback"}, {"id": "after_reply", "type": "probe"}],
    }
    steps = [
        {"id": "all", "type": "parallel", "branches": [{"id": lane, "steps": inner} for lane, inner in lanes.items()]}
    ]
    run = engine.start(engine.publish(steps))
    engine.worker()
    for path in ("all/timer/hour", "all/person/ok", "all/other/reply"):
        engine.wait(run, path)
    eventually(lambda: [row for row in crm.requests() if row["path"] == f"/{run}/long"])
    token = Dispatch.objects.get(run_id=run).token
    for name, act in {
        "after_hour": lambda: clock.advance(hours=1),
        "after_ok": lambda: approvals.decide(
            Approval.objects.get(run_id=run), "approve", recipient=Approval.objects.get(run_id=run).recipients.get()
        ),
        "after_reply": lambda: waits.signal(run, "all/other/reply", None, "1"),
    }.items():
        act()
        eventually(lambda name=name: any(line["path"].endswith(name) for line in engine.ledger(run)), what=name)
    assert engine.state(run) == "open" and Dispatch.objects.get(run_id=run).token == token, "the run changed hands"
    assert len([row for row in crm.ledger() if row["path"] == f"/{run}/long"]) == 1
    crm.release()
    engine.ends(run)


def test_a_resume_costs_the_same_at_any_iteration(engine, database_url):
    """Iterations give 1 KB each. What the next owner reads, and what each further iteration reads and writes, stays."""
    body = [
        {
            "id": "fill",
            "type": "set",
            "config": {"values": {"text": "{{ trigger.body.text }}", "i": "{{ loop.index }}"}},
        },
        {
            "id": "stop_here",
            "type": "condition",
            "branches": [
                {
                    "id": "yes",
                    "when": "loop.index == 10 || loop.index == 10000",
                    "steps": [{"id": "reply", "type": "callback"}],
                },
                {"id": "no", "steps": []},
            ],
        },
    ]
    steps = [
        {"id": "first", "type": "probe"},
        {"id": "each", "type": "loop", "steps": body, "config": {"while": "loop.index < 10005", "max": 20000}},
    ]
    version = engine.publish(steps)
    early, late = (engine.start(version, {"text": "x" * 1000}) for _ in range(2))
    engine.worker()
    for run in (early, late):
        engine.wait(run, "each[10]/stop_here/yes/reply")
    waits.signal(late, "each[10]/stop_here/yes/reply", None, "go")
    engine.wait(late, "each[10000]/stop_here/yes/reply")
    eventually(lambda: Dispatch.objects.filter(state="waiting").count() == 2)
    at_10, at_10_000 = _loaded(database_url, early), _loaded(database_url, late)
    assert at_10["rows"] == 5  # the first step, the iteration's two, its wait, the frame
    for what in at_10:
        assert at_10_000[what] <= 1.2 * at_10[what], (what, at_10, at_10_000)
    waits.signal(late, "each[10000]/stop_here/yes/reply", None, "go")
    engine.ends(late)


def _loaded(url: str, run: int) -> dict[str, int]:
    """What a claim loads of the run: rows that come over the wire, their bytes, and pages that the server reads."""

    async def read() -> tuple[int, int]:
        async with await connect("holdfast test") as connection:
            found = (await memory.load(connection, [run], ["fill"], ["stop_here"]))[run]
            rows = [*found.results.values(), *found.places.values(), *found.frames.values()]
            return len(rows), len(repr(rows))

    rows, size = asyncio.run(read())
    pages = 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("analyze")
        for query in (memory.FRAMES, memory.RESULTS, memory.ATTEMPTS, memory.WAITS):
            given = {"runs": [run], "referenced": ["fill"], "always": ["stop_here"]}
            for _ in range(2):
                plan = connection.execute("explain (analyze, buffers, format json) " + query, given).fetchone()[0][0][
                    "Plan"
                ]
            pages += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return {"rows": rows, "bytes": size, "pages": pages}
