"""A step type with a fault of its own: what its call did is not known, and nothing is done twice for that."""

from __future__ import annotations

import pytest

from runtime import acts
from tests.runtime.engine import eventually


@pytest.mark.parametrize(("breaks", "told"), [("error", "KeyError"), ("cancelled", "CancelledError")])
def test_a_fault_after_the_call_began_is_a_call_that_may_have_happened(engine, breaks, told):
    step = {"id": "pay", "type": "probe", "config": {"breaks": breaks, "asks": True}, "on_error": "continue"}
    run = engine.start(engine.publish([step, {"id": "after", "type": "set", "config": {"values": {"done": True}}}]))
    engine.worker()
    wait = engine.wait(run, "pay", "person")
    assert engine.state(run) == "attention" and told in wait.data["error"]
    assert [attempt.outcome for attempt in engine.attempts(run, "pay")] == ["unknown"]
    assert acts.answer(wait.pk, "happened", output={"paid": True})
    engine.ends(run)
    assert len(engine.attempts(run, "pay")) == 1


def test_a_step_that_may_be_repeated_is_tried_again_after_a_fault(engine):
    run = engine.start(engine.publish([{"id": "put", "type": "probe", "config": {"breaks": "error"}, "retry": {"first": "1s"}}]))
    engine.worker()
    eventually(lambda: engine.attempts(run, "put"))
    (engine.folder / "healed").touch()
    engine.ends(run)
    assert {attempt.outcome for attempt in engine.attempts(run, "put")} <= {"unknown", "answered"}


def test_what_a_step_waited_for_and_was_cancelled_fails_the_step(engine):
    """Taken for the end of the worker, it would leave a run that nobody holds, and its call would be made again for ever."""
    step = {"id": "put", "type": "probe", "config": {"breaks": "cancelled"}, "retry": {"max_attempts": 3, "first": "1ms"}}
    run = engine.start(engine.publish([step]))
    engine.worker()
    assert "CancelledError" in engine.ends(run, "failed").error["message"]
    assert len(engine.ledger(run)) == 3
