"""Callbacks: which run they wake, what is kept, and that only the signed place of the signed run is reached."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from runtime import tokens
from runtime.jsonvalues import MIB
from runtime.models import Dispatch, Run, Signal, Wait, Workflow
from runtime.publish import publish
from tests.builder.posting import JSON, team  # noqa: F401 - one is a fixture

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting_run(team) -> Run:
    workflow = Workflow.objects.create(team=team, name="Asks back")
    step = {"id": "reply", "type": "callback", "config": {"expires": "1d"}}
    version = publish(workflow, {"format": 1, "name": "Asks back", "steps": [step]})
    run = Run.objects.create(workflow=workflow, version=version, trigger_key="api")
    Dispatch.objects.create(run=run, version_id=version.pk, state="waiting", due_at=run.created_at + timedelta(days=1))
    return run


def open_wait(run: Run, path: str = "reply") -> Wait:
    return Wait.objects.create(
        run_id=run.pk, path=path, scope="", kind="callback", due_at=run.created_at + timedelta(days=1)
    )


def call_back(url: str, body: str = "{}", **headers):
    given = {"HTTP_" + name.upper(): value for name, value in headers.items()}
    return Client(enforce_csrf_checks=True).post(
        url.replace("http://127.0.0.1:8000", ""), body, content_type=JSON, **given
    )


def test_a_callback_wakes_the_run_that_waits_for_it(waiting_run):
    wait = open_wait(waiting_run)
    response = call_back(tokens.callback_url(waiting_run.pk, "reply"), '{"ok": true}')
    assert response.status_code == 202
    wait.refresh_from_db()
    assert (wait.state, wait.outcome) == ("resolved", {"by": "signal", "payload": {"ok": True}})
    assert Dispatch.objects.get(run=waiting_run).state == "ready"


def test_a_callback_that_comes_before_the_wait_is_kept(waiting_run):
    assert call_back(tokens.callback_url(waiting_run.pk, "reply"), '{"early": 1}').status_code == 202
    kept = Signal.objects.get(run_id=waiting_run.pk, path="reply")
    assert (kept.payload, kept.wait) == ({"early": 1}, None)


def test_the_same_callback_twice_is_one(waiting_run):
    open_wait(waiting_run)
    url = tokens.callback_url(waiting_run.pk, "reply")
    assert [call_back(url, '{"a":1}').status_code for _ in range(2)] == [202, 200]
    assert [call_back(url, body, idempotency_key="k").status_code for body in ('{"b":1}', '{"b":2}')] == [202, 200]
    assert Signal.objects.count() == 2


def test_paths_inside_loops_survive_the_address(waiting_run):
    assert call_back(tokens.callback_url(waiting_run.pk, "each[3]/hot/yes/call")).status_code == 202
    assert Signal.objects.get().path == "each[3]/hot/yes/call"


def test_a_callback_may_come_without_a_body(waiting_run):
    assert call_back(tokens.callback_url(waiting_run.pk, "reply"), "").status_code == 202
    assert Signal.objects.get().payload is None


def test_only_the_signed_place_of_the_signed_run_can_be_called_back(waiting_run):
    good = tokens.callback_signature(waiting_run.pk, "reply")
    for run_id, signature, path in [
        (waiting_run.pk, good, "other"), (waiting_run.pk + 1, good, "reply"), (waiting_run.pk, "x", "reply"),
        (waiting_run.pk, good[:-1] + "é", "reply"), (10**30, good, "reply"), (waiting_run.pk, good, "reply%00"),
    ]:  # fmt: skip
        assert Client().post(f"/callbacks/{run_id}/{signature}/{path}/", "{}", content_type=JSON).status_code == 404
    assert not Signal.objects.exists()


def test_a_callback_for_a_run_that_has_ended_changes_nothing(waiting_run):
    Dispatch.objects.filter(run=waiting_run).delete()
    assert call_back(tokens.callback_url(waiting_run.pk, "reply")).status_code == 200
    assert not Signal.objects.exists()


def test_looking_at_a_callbacks_address_does_nothing(waiting_run):
    open_wait(waiting_run)
    assert (
        Client().get(tokens.callback_url(waiting_run.pk, "reply").replace("http://127.0.0.1:8000", "")).status_code
        == 405
    )
    assert Wait.objects.get().state == "open"


@pytest.mark.parametrize(("body", "status"), [("{", 400), ('{"a": "\\u0000"}', 400), ('"' + "x" * MIB + '"', 413)])
def test_callbacks_are_read_as_strictly_as_webhooks(waiting_run, body, status):
    assert call_back(tokens.callback_url(waiting_run.pk, "reply"), body).status_code == status
    assert not Signal.objects.exists()
