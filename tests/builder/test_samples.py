"""Sample data: where it comes from, what is pinned, what is caught; and test runs that live figures never see."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from builder import drafts, operations, samples
from builder.board import Board
from builder.flowmaking import make_flow
from builder.metrics import exposition
from builder.models import Listener, Pin
from builder.testshape import up_to, with_pins
from runtime import credentials
from runtime.definition import check, find, walk
from runtime.models import Credential, Run
from tests.builder import factories

pytestmark = pytest.mark.django_db

FLOW = {
    "format": 1, "name": "Orders",
    "triggers": [{"id": "order", "type": "webhook", "config": {"sample": {"id": 1}}}],
    "steps": [
        {"id": "look", "type": "http", "config": {"method": "GET", "url": "https://crm.example/{{ trigger.body.id }}"}},
        {"id": "big", "type": "condition", "branches": [
            {"id": "yes", "label": "Yes", "when": "steps.look.output.status == 200", "steps": [
                {"id": "each", "type": "loop", "config": {"items": "[1, 2]", "collect": "steps.after.output.y"}, "steps": [
                    {"id": "inner", "type": "set", "config": {"values": {"x": 1}}},
                    {"id": "after", "type": "set", "config": {"values": {"y": 2}}}]},
                {"id": "late", "type": "delay", "config": {"for": "1d"}}]},
            {"id": "no", "label": "No", "steps": [{"id": "other", "type": "set", "config": {"values": {"z": 3}}}]}]},
        {"id": "both", "type": "parallel", "branches": [
            {"id": "a", "label": "A", "steps": [{"id": "one", "type": "set", "config": {"values": {"x": 1}}}]},
            {"id": "b", "label": "B", "steps": [{"id": "two", "type": "set", "config": {"values": {"x": 1}}}]}]},
    ],
}  # fmt: skip


@pytest.fixture
def flow():
    team = factories.team()
    return make_flow(team, "Orders", user=factories.user("builder", of=team), definition=FLOW)


@pytest.fixture
def builder(flow, client):
    client.force_login(factories.user("builder", of=flow.team), "django.contrib.auth.backends.ModelBackend")
    return client


def ids(definition):
    return [step["id"] for step in walk(definition["steps"])]


def test_a_run_to_a_step_holds_only_the_way_to_it():
    assert ids(up_to(FLOW, "look")) == ["look"]
    inside = up_to(FLOW, "inner")
    assert ids(inside) == ["look", "big", "each", "inner", "other"], "the other lane of a condition may be the one taken"
    assert "collect" not in find(inside, "each")["config"]
    assert ids(up_to(FLOW, "two")) == [*ids(FLOW)[:-3], "both", "two"], "the other lane of a parallel is no part of the way"
    assert up_to(FLOW, "no_such") == FLOW and ids(FLOW)[0] == "look"
    for step in ids(FLOW):
        assert [one for one in check(up_to(FLOW, step)) if not one.warning] == []


def test_a_pinned_step_gives_its_output_as_it_stands_and_does_nothing():
    pinned = with_pins(FLOW, {"look": {"status": 200, "body": "{{ 1 + 1 }}"}, "each": {"count": 0}})
    assert find(pinned, "look")["type"] == "set" and "steps" not in find(pinned, "each")
    assert find(FLOW, "look")["type"] == "http"
    assert [one for one in check(pinned) if not one.warning] == []


def test_the_newest_run_is_the_sample_and_a_test_of_one_step_only_adds_to_it(flow):
    version = factories.version(FLOW, of=flow.team)
    run = factories.run(version, state="succeeded", input={"body": {"id": 7}})
    Run.objects.filter(pk=run.pk).update(workflow=flow)
    factories.result(run, "look", 1, 2, output={"status": 200})
    alone = factories.run(version, state="succeeded", trigger_key="test", test=True, input={"body": {"id": 9}})
    Run.objects.filter(pk=alone.pk).update(workflow=flow)
    factories.result(alone, "other", 3, 4, output={"z": 4})
    found = samples.samples_of(flow)
    assert found.trigger == {"body": {"id": 7}} and found.source == f"run {run.pk:,}"
    assert found.steps == {"look": {"status": 200}, "other": {"z": 4}}


def test_a_pasted_payload_or_a_chosen_run_is_the_sample_until_another_is_chosen(flow, builder):
    address = reverse("flow_samples", args=[flow.pk])
    version = factories.version(FLOW, of=flow.team)
    first, second = (factories.run(version, input={"body": {"id": n}}) for n in (1, 2))
    Run.objects.filter(pk__in=[first.pk, second.pk]).update(workflow=flow)
    assert f"Run {first.pk:,}" in builder.get(address).content.decode()
    builder.post(address, {"from": "run", "run": first.pk, "open": "look"})
    assert samples.samples_of(flow).trigger == {"body": {"id": 1}}
    text = builder.post(address, {"from": "pasted", "body": '{"id": 55}', "open": "look", "tab": "setup"}).content.decode()
    assert "55" in text and "pasted" in text, "the open panel is drawn anew"
    assert samples.samples_of(flow).trigger["body"] == {"id": 55}
    builder.post(address, {"from": "newest"})
    assert samples.samples_of(flow).trigger == {"body": {"id": 2}}
    assert builder.post(address, {"from": "pasted", "body": "{"}).status_code == 422
    foreign = factories.run(factories.version(of=factories.team("Other")))
    assert builder.post(address, {"from": "run", "run": foreign.pk}).status_code == 404


def test_a_pin_is_shown_on_its_card_and_follows_its_step(flow, builder):
    address = reverse("flow_pin", args=[flow.pk])
    text = builder.post(address, {"step": "look", "output": '{"status": 200}', "open": "look"}).content.decode()
    assert 'id="step-look"' in text and "pinned for tests" in text
    assert samples.samples_of(flow).steps["look"] == {"status": 200}
    sent = {"operation": json.dumps({"op": "rename", "step": "look", "id": "look_up"}), "revision": 1, "key": "a"}
    assert builder.post(reverse("flow_edit", args=[flow.pk]), sent).status_code == 200
    assert Pin.objects.get().step == "look_up"
    builder.post(reverse("flow_undo", args=[flow.pk]), {"revision": 2})
    assert Pin.objects.get().step == "look"
    assert "pinned for tests" not in builder.post(address, {"step": "look", "unpin": "yes"}).content.decode()
    assert builder.post(address, {"step": "look", "output": "[1]"}).status_code == 422
    assert builder.post(address, {"step": "big", "output": "{}"}).status_code == 404


def test_a_pin_is_used_in_test_runs_and_never_in_live_ones(flow, builder):
    samples.pin(flow, "look", {"status": 204}, user=None)
    builder.post(reverse("flow_test_run", args=[flow.pk]), {"trigger": "order", "body": "{}"})
    assert find(Run.objects.get().version.definition, "look")["type"] == "set"
    builder.post(reverse("flow_publish", args=[flow.pk]), {"revision": 1})
    flow.refresh_from_db()
    assert flow.live_version.definition == drafts.load(flow).definition == FLOW
    copy = builder.get(reverse("flow_export", args=[flow.pk])).json()
    assert copy == FLOW, "and no export tells of it"


def test_one_call_to_the_test_address_becomes_the_sample_and_starts_nothing(flow, builder, clock):
    address = reverse("flow_listen", args=[flow.pk])
    text = builder.post(address).content.decode()
    token = Listener.objects.get().token
    hook = reverse("hook_test", args=[token])
    assert hook in text and builder.get(address).status_code == 204, "nothing has come yet"
    outside = Client()
    assert outside.get(hook).status_code == 405
    assert outside.post(hook, "{", content_type="application/json").status_code == 400
    sent = outside.post(f"{hook}?page=2", {"id": 99}, content_type="application/json", headers={"Authorization": "secret"})
    assert sent.json() == {"sample": True}
    found = samples.samples_of(flow).trigger
    assert found["body"] == {"id": 99} and found["query"] == {"page": "2"} and "authorization" not in found["headers"]
    assert outside.post(hook, {"id": 100}, content_type="application/json").status_code == 404, "one call only"
    assert "A call came" in builder.get(address).content.decode()
    assert not Run.objects.exists()
    builder.post(address)
    assert Listener.objects.get().token == token, "the address stays"
    clock.advance(minutes=6)
    assert outside.post(hook, {"id": 100}, content_type="application/json").status_code == 404
    assert "Nobody called" in builder.get(address).content.decode()
    builder.post(address, {"stop": "yes"})
    assert not samples.listening(flow)


@pytest.mark.parametrize(("kind", "header"), [("header", "x-shop-key"), ("basic", "authorization")])
def test_a_caught_call_is_kept_without_the_header_that_is_the_secret(flow, builder, kind, header):
    credentials.seal(
        Credential(team=flow.team, name="shop", kind=kind, hosts=[], config={"header": "X-Shop-Key", "username": "u"}),
        {"value": "hush-hush", "password": "hush-hush"},
    )
    trigger = FLOW["triggers"][0] | {"config": {"signature": {"kind": kind, "connection": "shop"}}}
    drafts.save(flow, {**FLOW, "triggers": [trigger]}, revision=None)
    builder.post(reverse("flow_listen", args=[flow.pk]))
    hook = reverse("hook_test", args=[Listener.objects.get().token])
    sent = Client().post(hook, {"id": 1}, content_type="application/json", headers={header: "hush-hush", "x-other": "kept"})
    assert sent.json() == {"sample": True}
    kept = samples.samples_of(flow).trigger["headers"]
    assert kept["x-other"] == "kept" and "hush-hush" not in str(kept)


def test_test_addresses_are_not_guessed_fast(flow, settings):
    settings.HOLDFAST_MISSES_PER_MINUTE = 3
    wrong = [Client().post(reverse("hook_test", args=[f"{n:043}"])).status_code for n in range(4)]
    assert wrong == [404, 404, 404, 429]


def test_a_past_input_is_replayed_whole_on_the_draft(flow, builder):
    version = factories.version(FLOW, of=flow.team)
    event = {"body": {"id": 3}, "headers": {"x-shop": "north"}, "query": {}, "method": "POST"}
    past = factories.run(version, input=event, trigger_key="order")
    Run.objects.filter(pk=past.pk).update(workflow=flow)
    address = reverse("flow_test_run", args=[flow.pk])
    assert "&quot;id&quot;: 3" in builder.get(address, {"replay": past.pk}).content.decode()
    builder.post(address, {"replay": past.pk, "trigger": "order", "body": '{"id": 4}', "to": "look"})
    run = Run.objects.get(test=True)
    assert run.input == {**event, "body": {"id": 4}} and ids(run.version.definition) == ["look"]
    assert builder.get(address, {"replay": 10**9}).status_code == 404


def test_problems_behind_the_step_do_not_keep_a_run_from_coming_that_far(flow, builder):
    drafts.save(flow, {**FLOW, "steps": [*FLOW["steps"], {"id": "bad", "type": "delay", "config": {}}]}, revision=None)
    address = reverse("flow_test_run", args=[flow.pk])
    assert "must be fixed" in builder.get(address).content.decode()
    assert "must be fixed" not in builder.get(address, {"to": "look"}).content.decode()
    builder.post(address, {"trigger": "order", "body": "{}", "to": "look"})
    assert Run.objects.get().test


def test_figures_of_operations_count_live_runs_only():
    person = factories.user("operator")
    version = factories.version()
    for test in (False, True):
        failed = factories.run(version, state="failed", test=test, error={"message": f"Boom {test}", "step": "x"})
        waiting = factories.run(version, test=test)
        factories.wait(waiting, "two_days", "timer", 1, due=10)
        Run.objects.filter(pk=failed.pk).update(ended_at=operations.business_now())
    by_state = {row["state"]: row["number"] for row in operations.everywhere(person)}
    assert by_state["failed"] == 1 and by_state["waiting"] == 1
    assert [group.message for group in operations.failing(person)] == ["Boom False"]
    assert [row["number"] for row in operations.waiting(person)] == [1]
    assert 'holdfast_runs_ended_last_hour{state="failed"} 1\n' in exposition()


def test_problems_that_were_found_are_looked_for_again_when_anything_they_rest_on_has_changed(flow):
    reads = {"id": "reads", "type": "set", "config": {"values": {"x": "{{ steps.look.output.body.name }}"}}}
    look = {"id": "look", "type": "http", "config": {"url": "https://crm.example/", "connection": "CRM"}}
    drafts.save(flow, {**FLOW, "steps": [look, reads]}, revision=None)

    def told():
        return [problem.step for problem in Board.of(flow).problems]

    assert told() == ["look"], "there is no such connection"
    Credential.objects.create(team=flow.team, name="CRM", kind="bearer")
    assert told() == []
    version = factories.version(FLOW, of=flow.team)
    run, alone = (factories.run(version, state="succeeded", trigger_key=key, test=True) for key in ("a", "test"))
    Run.objects.filter(pk__in=[run.pk, alone.pk]).update(workflow=flow)
    assert told() == []
    factories.result(run, "look", 1, 2, output={"status": 200, "body": {"id": 1}})
    assert told() == ["reads"], "what the run gave since has no name"
    factories.result(alone, "look", 3, 4, output={"status": 200, "body": {"name": "Priya"}})
    assert told() == []
    samples.pin(flow, "look", {"status": 200, "body": {"id": 1}}, user=None)
    assert told() == ["reads"]


def test_a_board_knows_its_pins(flow):
    samples.pin(flow, "look", {"status": 1}, user=None)
    [look, *_] = Board.of(flow).drawing.flow.nodes
    assert look.card.pinned
