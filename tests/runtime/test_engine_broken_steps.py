"""A step type with a fault of its own: what its call did is not known, and nothing is done twice for that."""

from __future__ import annotations

from runtime import acts
from tests.runtime.engine import eventually


def test_a_fault_after_the_call_began_is_a_call_that_may_have_happened(engine):
    step = {"id": "pay", "type": "probe", "config": {"breaks": True, "asks": True}, "on_error": "continue"}
    run = engine.start(engine.publish([step, {"id": "after", "type": "set", "config": {"values": {"done": True}}}]))
    engine.worker()
    wait = engine.wait(run, "pay", "person")
    assert engine.state(run) == "attention" and "KeyError" in wait.data["error"]
    assert [attempt.outcome for attempt in engine.attempts(run, "pay")] == ["unknown"]
    assert acts.answer(wait.pk, "happened", output={"paid": True})
    engine.ends(run)
    assert len(engine.attempts(run, "pay")) == 1


def test_a_step_that_may_be_repeated_is_tried_again_after_a_fault(engine):
    run = engine.start(engine.publish([{"id": "put", "type": "probe", "config": {"breaks": True}, "retry": {"first": "1s"}}]))
    engine.worker()
    eventually(lambda: engine.attempts(run, "put"))
    (engine.folder / "healed").touch()
    engine.ends(run)
    assert {attempt.outcome for attempt in engine.attempts(run, "put")} <= {"unknown", "answered"}
