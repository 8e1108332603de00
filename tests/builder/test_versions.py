"""Publishing what was shown, and the versions that were published; trying things out; starting by hand."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.urls import reverse

from builder import drafts
from builder.flowmaking import make_flow
from runtime.models import Attempt, Blob, Credential, Dispatch, Role, Run, StepResult, Team, Version
from runtime.publish import publish
from runtime.starts import start
from tests.builder.test_canvas import person, send
from tests.builder.test_flows import SMALL

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return Team.objects.create(name="Sales")


@pytest.fixture
def builder(team):
    return person(team, Role.BUILDER)


@pytest.fixture
def flow(team):
    return make_flow(team, "Small", user=None, definition=SMALL)


def test_publishing_asks_first_and_then_makes_a_version_with_its_note(builder, flow):
    address = reverse("flow_publish", args=[flow.pk])
    assert "Publish v1 of Small?" in builder.get(address).content.decode()
    response = builder.post(address, {"revision": 1, "note": "The first\x00"})
    version = Version.objects.get()
    assert response["HX-Redirect"] == reverse("flow", args=[flow.pk])
    assert (version.number, version.note, version.created_by.username) == (1, "The first\ufffd", "ines")


def test_the_dialog_tells_the_changes_and_what_happens_to_runs_in_flight(builder, flow):
    start(publish(flow, SMALL), trigger_key="hand", input={})
    send(builder, flow, owner="wait", field="config.for", number="2", unit="d")
    text = builder.get(reverse("flow_publish", args=[flow.pk])).content.decode()
    assert "1 run in flight stays on its" in " ".join(text.split())
    assert "<del>1h</del>" in text and "<ins>2d</ins>" in text


def test_nobody_publishes_a_draft_that_they_have_not_seen(builder, flow):
    send(builder, flow, operation={"op": "toggle", "step": "wait"})
    response = builder.post(reverse("flow_publish", args=[flow.pk]), {"revision": 1})
    assert response.status_code == 409 and "has changed since you opened this" in response.content.decode()
    assert not Version.objects.exists()


def test_a_draft_with_problems_is_not_published_and_the_button_leads_to_them(builder, flow):
    send(builder, flow, operation={"op": "insert", "type": "condition", "place": {"index": 0}})
    assert builder.post(reverse("flow_publish", args=[flow.pk]), {"revision": 2}).status_code == 422
    assert "data-show-problems" in builder.get(reverse("flow", args=[flow.pk])).content.decode()
    assert not Version.objects.exists()


def test_what_is_live_and_unchanged_is_not_published_again(builder, flow):
    publish(flow, SMALL)
    page = " ".join(builder.get(reverse("flow", args=[flow.pk])).content.decode().split())
    assert "Publish v2" not in page and "Published</button>" in page
    address = reverse("flow_publish", args=[flow.pk])
    assert "Everything is published" in builder.get(address).content.decode()
    assert builder.post(address, {"revision": 1}).status_code == 422 and Version.objects.count() == 1
    send(builder, flow, operation={"op": "toggle", "step": "wait"})
    assert "Publish v2 of Small?" in builder.get(address).content.decode()


def test_two_versions_stand_side_by_side_with_what_differs_marked_on_both(builder, flow):
    publish(flow, SMALL, note="one")
    publish(flow, {**SMALL, "steps": [{"id": "tell", "type": "delay", "config": {"for": "1h"}}]}, note="two")
    address = reverse("flow_compare", args=[flow.pk])
    text = builder.get(address, {"to": "2"}).content.decode()
    before, after = text.split('aria-label="v2"')
    assert 'id="before-step-wait"' in before and "Removed" in before and "one" in before
    assert 'id="after-step-tell"' in after and "New" in after
    draft = builder.get(address).content.decode()
    assert 'aria-label="v2"' in draft and 'aria-label="Draft"' in draft
    assert "are the same, step by step" in builder.get(address, {"from": "1", "to": "1"}).content.decode()
    for wrong in ({"to": "9"}, {"from": "x"}, {"from": "9" * 30}):
        assert builder.get(address, wrong).status_code == 404


def test_versions_are_listed_seen_restored_and_made_live_again(builder, flow):
    publish(flow, SMALL, note="one")
    publish(flow, {**SMALL, "steps": []}, note="two")
    text = builder.get(reverse("flow_versions", args=[flow.pk])).content.decode()
    assert "one" in text and "two" in text and text.index("<b>v2<") < text.index("<b>v1<")
    text = builder.get(reverse("flow_version", args=[flow.pk, 2])).content.decode()
    assert "Removed" in text and 'class="add"' not in text
    builder.post(reverse("flow_version_live", args=[flow.pk, 1]))
    flow.refresh_from_db()
    assert flow.live_version.number == 1
    send(builder, flow, operation={"op": "remove", "step": "wait"})
    builder.post(reverse("flow_version_restore", args=[flow.pk, 1]))
    assert drafts.load(flow).definition == SMALL and drafts.history(drafts.load(flow)).undo == "Restore v1"
    assert builder.get(reverse("flow_version", args=[flow.pk, 9])).status_code == 404
    assert builder.get(reverse("flow_export", args=[flow.pk]), {"version": "2"}).json()["steps"] == []


def test_offline_means_that_nothing_starts(builder, flow):
    publish(flow, SMALL)
    builder.post(reverse("flow_offline", args=[flow.pk]))
    flow.refresh_from_db()
    assert flow.live_version is None


def test_a_test_run_is_one_of_the_draft_and_marked(builder, flow):
    address = reverse("flow_test_run", args=[flow.pk])
    assert "Test run of the draft" in builder.get(address).content.decode()
    response = builder.post(address, {"trigger": "hand"})
    run = Run.objects.get()
    assert f'data-run="{run.pk}"' in response.content.decode(), "the canvas follows it"
    assert run.test and run.version.number is None and run.version.definition == SMALL and run.input == {"body": {}}
    for _ in range(2):
        builder.post(address, {"trigger": "hand", "_once": "a-form-that-is-sent-twice"})
    assert Run.objects.count() == 2


def test_a_manual_flow_is_started_through_the_form_of_its_fields(team, flow):
    fields = [{"id": "amount", "label": "Amount", "type": "number", "required": True}]
    publish(flow, {**SMALL, "triggers": [{"id": "hand", "type": "manual", "config": {"fields": fields}}]})
    operator, address = person(team, Role.OPERATOR, "olga"), reverse("flow_run_now", args=[flow.pk])
    assert 'name="amount"' in operator.get(address).content.decode()
    response = operator.post(address, {"trigger": "hand", "amount": "many"})
    assert response.status_code == 422 and "Write a number" in response.content.decode()
    once = re.search(r'name="_once" value="([^"]+)"', response.content.decode())[1]
    sent = [operator.post(address, {"trigger": "hand", "amount": "12.5", "_once": once})["HX-Redirect"] for _ in range(2)]
    run = Run.objects.get()
    assert sent == [reverse("run", args=[run.pk])] * 2, "two presses of the button start one run"
    assert run.input == {"body": {"amount": 12.5}} and not run.test and run.started_by.username == "olga"
    assert person(team, Role.BUILDER, "bea").get(address).status_code == 403


@pytest.mark.parametrize("body", ["{", "[1e999]", '{"a": 1, "a": 2}'])
def test_input_that_no_run_could_hold_is_refused(builder, flow, body):
    send(builder, flow, operation={"op": "remove_trigger", "trigger": "hand"})
    send(builder, flow, 2, operation={"op": "add_trigger", "type": "webhook"})
    assert builder.post(reverse("flow_test_run", args=[flow.pk]), {"body": body}).status_code == 422
    assert not Run.objects.exists()


STEPS = [
    {"id": "facts", "type": "set", "config": {"values": {"n": "{{ trigger.body.n + 1 }}"}}},
    {"id": "call", "type": "http", "config": {"method": "POST", "url": "https://crm.example/x", "connection": "CRM", "json": {"n": "{{ steps.facts.output.n }}", "raw": "{{ trigger.body.raw }}"}}},
    {"id": "mail", "type": "email", "config": {"to": ["{{ trigger.body.to }}"], "subject": "{{ steps.facts.output.n }} things", "body": "x"}},
    {"id": "ask", "type": "approval", "config": {"approvers": ["a@example.com"], "subject": "Ok?", "expires": "1d"}},
    {"id": "wait", "type": "delay", "config": {"for": "2d"}},
    {"id": "end", "type": "stop", "config": {"outcome": "failed", "message": "Too small"}},
    {"id": "off", "type": "set", "config": {"values": {"x": "{{ trigger.body.nothing.deep }}"}}},
]
SAMPLE = {"n": 41, "to": "p@example.com", "raw": "{{ 1 + 1 }}"}


@pytest.fixture
def rich(team):
    Credential.objects.create(team=team, name="CRM", kind="bearer", hosts=["crm.example"], secret=b"x")
    definition = {"format": 1, "name": "Rich", "triggers": [{"id": "h", "type": "webhook", "config": {"sample": SAMPLE}}], "steps": STEPS}
    return make_flow(team, "Rich", user=None, definition=definition)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("facts", ["It gives this", "42"]),
        ("call", ["Nothing was sent", "https://crm.example/x", "42", "CRM"]),
        ("mail", ["p@example.com", "42 things"]),
        ("ask", ["wait for the answer", "Ok?"]),
        ("wait", ["would wait for 2 days"]),
        ("end", ["as a failure. Too small"]),
        ("off", ["sample data does not reach"]),
    ],
)
def test_one_step_is_tried_on_sample_data_without_an_effect(builder, rich, step, words):
    text = builder.post(reverse("flow_test_step", args=[rich.pk]), {"step": step}).content.decode()
    for word in words:
        assert word in text
    assert not Run.objects.exists()


@pytest.mark.parametrize("real", ["", "yes"])
@pytest.mark.parametrize(("config", "words"), [({}, "to: this is missing"), ({"to": [], "subject": "x"}, "to: this is missing"), ({"to": 7, "subject": {}}, "to: ")])
def test_a_step_that_is_not_finished_is_not_tried_and_says_why(builder, rich, config, words, real):
    steps = [{"id": "mail", "type": "email", "config": config}]
    drafts.save(rich, {"format": 1, "name": "Rich", "triggers": [], "steps": steps}, revision=None)
    answer = builder.post(reverse("flow_test_step", args=[rich.pk]), {"step": "mail", "real": real})
    text = answer.content.decode()
    assert answer.status_code == 200 and words in text.lower()
    assert '<button type="button" data-to-field="config.to">Go to To</button>' in text
    assert not Run.objects.exists()


def test_what_the_sample_data_does_not_reach_is_told_with_the_way_to_its_field(builder, rich):
    text = builder.post(reverse("flow_test_step", args=[rich.pk]), {"step": "off"}).content.decode()
    assert '<button type="button" data-to-field="config.values.x">Go to Values: x</button>' in text


def test_one_step_is_sent_for_real_as_a_test_run_of_its_own(builder, rich):
    response = builder.post(reverse("flow_test_step", args=[rich.pk]), {"step": "call", "real": "yes"})
    run = Run.objects.get()
    [alone] = run.version.definition["steps"]
    assert run.test and alone["retry"] == {"max_attempts": 1} and alone["config"]["json"]["n"] == 42
    assert alone["config"]["json"]["raw"] == '{{ "{{" }} 1 + 1 }}', "sample data must not be evaluated a second time"
    assert f"run={run.pk}" in response.content.decode()
    Dispatch.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(state="failed", ended_at=run.created_at, error={"message": "No such host", "field": "url"})
    text = builder.get(reverse("flow_test_result", args=[rich.pk]), {"run": run.pk, "step": "call"}).content.decode()
    assert "No such host" in text and "hx-trigger" not in text
    assert '<button type="button" data-to-field="url">Go to Address</button>' in text


def test_a_test_that_was_refused_shows_what_the_other_system_answered(builder, rich):
    builder.post(reverse("flow_test_step", args=[rich.pk]), {"step": "call", "real": "yes"})
    run = Run.objects.get()
    Dispatch.objects.filter(run=run).delete()
    error = {"step": "call", "field": "", "message": "crm.example answered 422."}
    Run.objects.filter(pk=run.pk).update(state="failed", ended_at=run.created_at, error=error)
    row = {"run_id": run.pk, "scope": "", "path": "call", "take": 1, "token": 1, "started_at": run.created_at}
    StepResult.objects.create(**row, step="call", state="failed", error=error, finished_at=run.created_at)
    later = row | {"path": "each[1]/call"}
    StepResult.objects.create(**later, step="call", state="succeeded", output=1, finished_at=run.created_at + timedelta(seconds=1))
    answer = {"status": 422, "body": {"reason": "no such customer"}, "timings": {"total": 3}}
    Attempt.objects.create(**row, n=1, outcome="answered", response=answer, ended_at=run.created_at)
    text = builder.get(reverse("flow_test_result", args=[rich.pk]), {"run": run.pk, "step": "call"}).content.decode()
    assert "answered 422" in text and "no such customer" in text and "timings" not in text


def test_a_large_output_of_a_test_is_shown_in_parts(builder, rich):
    builder.post(reverse("flow_test_step", args=[rich.pk]), {"step": "facts", "real": "yes"})
    run, content = Run.objects.get(), json.dumps({"rows": "x" * 300_000})
    Dispatch.objects.filter(run=run).delete()
    Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=run.created_at)
    row = {"run_id": run.pk, "path": "facts", "take": 1}
    Blob.objects.create(**row, content=content)
    StepResult.objects.create(
        **row, scope="", step="facts", state="succeeded", output_size=len(content), token=1, started_at=run.created_at, finished_at=run.created_at
    )
    text = builder.get(reverse("flow_test_result", args=[rich.pk]), {"run": run.pk, "step": "facts"}).content.decode()
    assert "xxx" in text and "in parts" in text and "Show more" in text and "too large to be pinned" in text
    assert len(text) < 30_000
