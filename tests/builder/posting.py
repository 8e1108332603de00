"""A flow with a webhook, and whoever posts to it."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from runtime.models import Dispatch, Run, Team, Trigger, Workflow
from runtime.publish import publish

JSON = "application/json"


@pytest.fixture
def team() -> Team:
    return Team.objects.create(name="Sales")


@pytest.fixture
def hook(team):
    """Publishes a workflow with one webhook and returns its trigger."""

    def make(**config) -> Trigger:
        workflow = Workflow.objects.create(team=team, name="Leads")
        step = {"id": "keep", "type": "set", "config": {"values": {"seen": "{{ trigger.body }}"}}}
        trigger = {"id": "lead", "type": "webhook", "config": config}
        publish(workflow, {"format": 1, "name": "Leads", "triggers": [trigger], "steps": [step]})
        return Trigger.objects.get(workflow=workflow)

    return make


def post(trigger: Trigger | str, body="{}", content_type: str | None = JSON, query: str = "", **headers):
    token = trigger if isinstance(trigger, str) else trigger.token
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    given = {"HTTP_" + name.upper(): value for name, value in headers.items()}
    return Client(enforce_csrf_checks=True).post(
        f"/hooks/{token}/{query}", data, content_type=content_type or "", **given
    )


def message(response) -> str:
    return response.json()["error"]["message"]


def no_run_was_started() -> bool:
    return not Run.objects.exists() and not Dispatch.objects.exists()
