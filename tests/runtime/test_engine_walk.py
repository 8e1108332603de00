"""The engine walks a run: sequences, lanes, loops, failures and stops end as the definition says."""

from __future__ import annotations


def test_a_run_of_three_calls_succeeds(engine):
    run = engine.start(engine.publish([{"id": f"s{n}", "type": "probe", "config": {"value": n}} for n in range(3)]))
    engine.worker()
    engine.ends(run)
    assert engine.results(run) == {f"s{n}": ("succeeded", n) for n in range(3)}
    assert [attempt.outcome for attempt in engine.attempts(run)] == ["answered"] * 3


def test_a_stop_inside_lanes_ends_the_run(engine):
    lanes = [
        {"id": "a", "steps": [{"id": "quit", "type": "stop", "config": {"message": "enough", "output": {"x": 1}}}]},
        {"id": "b", "steps": [{"id": "hour", "type": "delay", "config": {"for": "1h"}}]},
    ]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}, {"id": "never", "type": "probe"}]))
    engine.worker()
    row = engine.ends(run)
    assert row.output == {"x": 1}
    assert "never" not in engine.results(run)
