"""What a step was given can be read afterwards: from its attempt where it called the outside, else from its result."""

from __future__ import annotations

from runtime.models import StepResult


def test_a_step_without_a_call_keeps_its_config_as_it_was_filled_in(engine):
    mail = {"to": ["{{ trigger.body.email }}"], "subject": "For {{ trigger.body.name }}", "body": "Hello"}
    steps = [{"id": "greet", "type": "email", "config": mail}, {"id": "call", "type": "probe", "config": {"note": "n"}}]
    run = engine.start(engine.publish(steps), {"email": "a@b.example", "name": "Ada"})
    engine.worker()
    engine.ends(run)
    greet, call = StepResult.objects.filter(run_id=run).order_by("finished_at", "path")
    assert greet.input["to"] == ["a@b.example"] and greet.input["subject"] == "For Ada"
    assert call.input is None and engine.attempts(run, "call")[0].request == {"note": "n"}
