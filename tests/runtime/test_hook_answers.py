"""A webhook that answers when its run ends, with real workers."""

from __future__ import annotations

import pytest
from django.test import Client

from runtime.models import Run, Trigger

HOOK = [{"id": "lead", "type": "webhook", "config": {"respond": "at_end", "respond_within": 60, "dedupe": "body.id"}}]


def ends(outcome: str) -> list[dict]:
    config = {"outcome": outcome, "message": "no stock", "output": {"twice": "{{ trigger.body.n * 2 }}"}}
    return [{"id": "end", "type": "stop", "config": config}]


@pytest.mark.parametrize(("outcome", "status"), [("succeeded", 200), ("failed", 500)])
def test_it_answers_with_what_the_run_gave(engine, outcome, status):
    version = engine.publish(ends(outcome), triggers=HOOK)
    address = f"/hooks/{Trigger.objects.get(workflow=version.workflow).token}/"
    engine.worker()
    for _ in range(2):  # the same event again: the same run, and the same answer
        answer = Client().post(address, {"n": 21, "id": "a"}, content_type="application/json")
        told = answer.json()
        assert (answer.status_code, told["state"], told["output"]) == (status, outcome, {"twice": 42})
    assert Run.objects.count() == 1 and (outcome == "succeeded" or told["error"]["message"] == "no stock")
