"""The builder's page over HTTP: what an edit answers with, who may make one, and what happens when two edit at once."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from builder import drafts
from builder.board import Board
from builder.flowmaking import make_flow
from builder.missing import doubts
from builder.models import Pin
from runtime.definition import find
from runtime.models import Membership, Role, Team, Trigger
from runtime.publish import publish
from runtime.triggers.signatures import generated_secrets
from tests.builder.test_editing import LEAD

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return Team.objects.create(name="Sales")


@pytest.fixture
def flow(team):
    return make_flow(team, "Lead qualification", user=None, definition=LEAD)


def person(team, role, name="ines"):
    user = get_user_model().objects.create_user(name, first_name=name.capitalize())
    Membership.objects.create(user=user, team=team, role=role)
    client = Client(headers={"hx-request": "true"})
    client.force_login(user)
    return client


@pytest.fixture
def builder(team):
    return person(team, Role.BUILDER)


def send(client, flow, revision=1, **values):
    data = {name: json.dumps(value) if name == "operation" else value for name, value in values.items()}
    return client.post(reverse("flow_edit", args=[flow.pk]), {"revision": revision, **data})


def event(response, name="draft:saved"):
    return json.loads(response["HX-Trigger"])[name]


def test_the_page_draws_the_flow_and_opens_the_step_of_its_address(builder, flow):
    page = builder.get(reverse("flow", args=[flow.pk]), {"step": "call"})
    text = page.content.decode()
    assert page.status_code == 200
    assert 'id="step-call"' in text and "steps.call" in text and 'data-revision="1"' in text
    assert " style=" not in text and "onclick" not in text, "the content security policy forbids them"


@pytest.mark.fault(35)
def test_a_flow_of_300_steps_opens_with_the_queries_of_a_small_one_and_light_cards(team, builder):
    """What a step holds comes when its panel is opened."""
    asked, sizes = [], []
    for number in (1, 300):
        steps = [{"id": f"s{n}", "type": "email", "config": {"to": ["a@b.example"], "subject": "x" * 500, "body": "y" * 2000}} for n in range(number)]
        flow = make_flow(team, f"Of {number}", user=None, definition={"format": 1, "name": f"Of {number}", "steps": steps})
        with CaptureQueriesContext(connection) as queries:
            page = builder.get(reverse("flow", args=[flow.pk])).content.decode()
        asked.append(len(queries))
        sizes.append(len(page))
        assert f'data-step="s{number - 1}"' in page and "yyyy" not in page
    assert asked[0] == asked[1] and (sizes[1] - sizes[0]) / 299 < 5_000


def test_a_step_that_is_gone_leaves_the_page_without_a_panel(builder, flow):
    assert builder.get(reverse("flow", args=[flow.pk]), {"step": "gone"}).status_code == 200
    assert builder.get(reverse("flow_panel", args=[flow.pk]), {"step": "gone"}).status_code == 404


@pytest.mark.parametrize("owner", ["score", "hot", "call", "each", "add", "lead", ""])
def test_every_panel_can_be_opened(builder, flow, owner):
    query = {"step": owner, "tab": "safety"} if owner else {"settings": ""}
    assert builder.get(reverse("flow_panel", args=[flow.pk]), query).status_code == 200


def test_a_schedule_that_is_none_leaves_its_panel_open_for_who_puts_it_right(team, builder):
    clock = {"id": "clock", "type": "schedule", "config": {"cron": "1² 8 * * *"}}
    flow = make_flow(team, "Clock", user=None, definition={"format": 1, "name": "Clock", "steps": [], "triggers": [clock]})
    assert builder.get(reverse("flow", args=[flow.pk]), {"step": "clock"}).status_code == 200
    panel = builder.get(reverse("flow_panel", args=[flow.pk]), {"step": "clock"})
    assert panel.status_code == 200 and "1² 8 * * *" in panel.content.decode()


def test_an_edit_answers_with_the_parts_that_changed_and_the_new_revision(builder, flow):
    response = send(builder, flow, operation={"op": "insert", "type": "delay", "place": {"after": "score"}})
    text = response.content.decode()
    assert 'hx-swap-oob="afterend:#node-score"' in text and 'id="step-delay"' in text
    assert 'id="step-call"' not in text, "what did not change is not sent again"
    assert event(response) == {"revision": 2, "focus": "delay", "picked": [], "label": "Add Delay", "op": "insert", "announce": "Add Delay", "panel_gone": False, "was": "", "wrote": 2}


def test_a_field_of_the_panel_is_sent_as_it_was_typed(builder, flow):
    response = send(builder, flow, owner="add", field="config.for", number="3", unit="d", open="add", tab="setup", shape="")
    assert find(drafts.load(flow).definition, "add")["config"] == {"for": "3d"}
    assert event(response)["label"] == "Change “Wait for” in Delay"
    response = send(builder, flow, 2, owner="add", field="config.for", number="soon", unit="d")
    assert event(response, "draft:refused")["field"] == "config.for"
    assert drafts.load(flow).revision == 2


def test_a_field_that_only_changes_words_leaves_the_others_alone(builder, flow):
    shape = 'data-shape="'
    panel = builder.get(reverse("flow_panel", args=[flow.pk]), {"step": "call"}).content.decode()
    shape = panel.split('data-shape="')[1].split('"')[0]
    text = send(builder, flow, owner="call", field="config.url", value="https://a.example/", open="call", tab="setup", shape=shape).content.decode()
    assert 'id="f-config-url-foot"' in text and 'id="f-config-url"' not in text
    text = send(builder, flow, 2, owner="call", field="on_interrupted", value="check", open="call", tab="safety", shape=shape).content.decode()
    assert 'id="panel" hx-swap-oob="true"' in text, "other fields are shown now: the panel comes anew"


def test_a_new_name_takes_the_id_and_every_reference_along_until_it_is_published(builder, flow):
    send(builder, flow, operation={"op": "insert", "type": "set", "place": {"index": 0}})
    send(builder, flow, 2, owner="set_values", field="config.values", mode="rows", depth="0", key="a", kind="value", value="1")
    send(builder, flow, 3, owner="call", field="config.body", value="{{ steps.set_values.output.a }}")
    response = send(builder, flow, 4, owner="set_values", field="name", value="Facts", open="set_values", tab="setup", shape="")
    assert event(response)["focus"] == "facts" and 'data-owner="facts"' in response.content.decode()
    assert find(drafts.load(flow).definition, "call")["config"]["body"] == "{{ steps.facts.output.a }}"


@pytest.mark.fault(34)
def test_an_edit_that_came_second_is_told_who_was_faster_and_what_they_did(team, builder, flow):
    other = person(team, Role.BUILDER, "dana")
    send(other, flow, operation={"op": "rename", "step": "each", "id": "all"})
    send(other, flow, 2, operation={"op": "rename", "step": "all", "id": "each"})
    send(other, flow, 3, operation={"op": "configure", "step": "each", "set": {"name": "Everybody"}})
    response = send(builder, flow, operation={"op": "toggle", "step": "each"})
    text = response.content.decode()
    assert response.status_code == 409
    assert "Dana" in text and "Everybody" in text and 'data-revision="4"' in text and "data-reapply" in text
    assert "off" not in find(drafts.load(flow).definition, "each")
    assert send(builder, flow, 4, operation={"op": "toggle", "step": "each"}).status_code == 200


@pytest.mark.fault(34)
def test_what_came_second_and_touches_other_parts_is_saved_and_told(team, builder, flow):
    other = person(team, Role.BUILDER, "dana")
    send(other, flow, operation={"op": "remove", "step": "score"})
    send(other, flow, 2, operation={"op": "configure", "step": "call", "set": {"name": "Ring"}})
    response = send(builder, flow, operation={"op": "toggle", "step": "each"}, open="call", tab="setup", edit_key="mine")
    text, now = response.content.decode(), drafts.load(flow).definition
    assert response.status_code == 200 and event(response)["revision"] == 4
    assert event(response, "toast")["message"].startswith("Dana changed other parts of this flow")
    assert find(now, "each")["off"] and find(now, "call")["name"] == "Ring" and find(now, "score") is None
    assert 'hx-swap-oob="delete"' in text and text.count("Ring") > 1 and 'id="panel" hx-swap-oob="true"' in text
    send(other, flow, 4, operation={"op": "toggle", "step": "hot"})
    again = send(builder, flow, operation={"op": "toggle", "step": "each"}, edit_key="mine").content.decode()
    assert drafts.load(flow).revision == 5 and 'hx-swap-oob="delete"' in again, "its page is brought from what it saw to what stands"
    undone = builder.post(reverse("flow_undo", args=[flow.pk]), {"revision": 5})
    assert undone.status_code == 200 and find(drafts.load(flow).definition, "each")["off"]


def test_what_came_after_the_edit_was_made_is_not_taken_for_seen(team, builder, flow):
    """Two edits wait in a page; the answer to the first shows what another did, and the second was made before."""
    other = person(team, Role.BUILDER, "dana")
    send(other, flow, operation={"op": "configure", "step": "score", "set": {"note": "Dana's"}})
    assert send(builder, flow, operation={"op": "toggle", "step": "each"}).status_code == 200
    mine = {"op": "configure", "step": "score", "set": {"note": "Ines's"}}
    assert send(builder, flow, 1, operation=mine, shown="3").status_code == 409
    answer = send(builder, flow, 1, operation={"op": "toggle", "step": "call"}, shown="3")
    assert answer.status_code == 200 and "toast" not in json.loads(answer["HX-Trigger"]), "the page shows it already"
    assert "Dana" not in answer.content.decode() and find(drafts.load(flow).definition, "score")["note"] == "Dana's"


def test_ones_own_edits_between_are_no_others(team, builder, flow):
    other = person(team, Role.BUILDER, "dana")
    send(other, flow, operation={"op": "toggle", "step": "call"})
    assert event(send(builder, flow, operation={"op": "configure", "step": "score", "set": {"note": "one"}}))["wrote"] == 3
    further = {"op": "configure", "step": "score", "set": {"name": "two"}}
    asked = send(builder, flow, 3, operation=further, since="1", shown="3")
    assert asked.status_code == 409
    asked = send(builder, flow, 3, operation={"op": "toggle", "step": "call"}, since="1", own="2,3", shown="3")
    assert asked.status_code == 409 and "data-overwrite" not in asked.content.decode(), "what Dana did is not one's own for being called so"
    answer = send(builder, flow, 3, operation=further, since="1", own="3,x,,-1", shown="3")
    assert answer.status_code == 200 and "toast" not in json.loads(answer["HX-Trigger"])
    now = find(drafts.load(flow).definition, "score")
    assert (now["note"], now["name"]) == ("one", "two") and find(drafts.load(flow).definition, "call")["off"]


def test_the_answer_that_is_given_again_shows_the_step_that_it_was_about(builder, flow):
    send(builder, flow, operation={"op": "insert", "type": "set", "place": {"index": 0}})
    for _ in range(2):
        response = send(builder, flow, 2, owner="set_values", field="name", value="Facts", open="set_values", tab="setup", shape="", edit_key="one")
        assert (event(response)["was"], event(response)["focus"]) == ("set_values", "facts")
        assert 'data-owner="facts"' in response.content.decode()
    for _ in range(2):
        response = send(builder, flow, 3, owner="call", field="config.url", value="https://a.example/", open="call", edit_key="two")
        assert (event(response)["was"], event(response)["focus"], event(response)["panel_gone"]) == ("", "call", False)


def test_pins_follow_ones_own_edit_alone(team, builder, flow):
    other = person(team, Role.BUILDER, "dana")
    pins = [Pin.objects.create(workflow=flow, step=step, output={}) for step in ("score", "rating", "call")]
    send(other, flow, operation={"op": "insert", "type": "delay", "place": {"after": "hot"}})
    assert send(builder, flow, operation={"op": "rename", "step": "score", "id": "rating"}).status_code == 200
    assert set(Pin.objects.values_list("pk", "step")) == {(pins[0].pk, "rating"), (pins[2].pk, "call")}
    send(other, flow, 3, operation={"op": "remove", "step": "call"})
    assert send(builder, flow, 3, operation={"op": "insert", "type": "email", "place": {"index": 0}}).status_code == 200
    builder.get(reverse("flow_since", args=[flow.pk]), {"revision": 3})
    assert Pin.objects.get(pk=pins[2].pk).step == "call"


def test_a_reply_that_was_lost_does_not_make_the_edit_twice(builder, flow):
    for _ in range(2):
        assert send(builder, flow, operation={"op": "duplicate", "step": "score"}, edit_key="k\x00").status_code == 200
    assert len(drafts.load(flow).definition["steps"]) == 4


@pytest.mark.parametrize("operation", [
    {"op": "nonsense"}, {"op": "insert"}, {"op": "move", "step": "hot", "place": {"parent": "hot", "lane": "yes"}}, [], "x",
    {"op": []}, {"op": {}}, {"op": "configure", "step": "call", "set": 7}, {"op": "configure_workflow", "set": "name"},
])  # fmt: skip
def test_an_operation_that_makes_no_sense_is_refused_with_a_reason(builder, flow, operation):
    response = send(builder, flow, operation=operation)
    assert response.status_code == 422 and event(response, "draft:refused")["message"]
    assert builder.post(reverse("flow_edit", args=[flow.pk]), {"revision": 1, "operation": "{"}).status_code == 422


def test_undo_and_redo_answer_like_edits(builder, flow):
    send(builder, flow, operation={"op": "remove", "step": "score"})
    response = builder.post(reverse("flow_undo", args=[flow.pk]), {"revision": 2})
    assert 'id="step-score"' in response.content.decode() and event(response)["announce"] == "Undid: remove Set values"
    response = builder.post(reverse("flow_redo", args=[flow.pk]), {"revision": 3})
    assert 'hx-swap-oob="delete"' in response.content.decode()
    assert builder.post(reverse("flow_undo", args=[flow.pk]), {"revision": 1}).status_code == 409


def test_a_problem_offers_its_repair_and_the_repair_puts_it_right(builder, flow):
    response = send(builder, flow, owner="hot", field="branches.0.when", mode="expression", expression="steps.score.output.point > 70")
    text = response.content.decode()
    assert "Did you mean “points”?" in text and "Use points" in text
    offered = json.loads(html.unescape(re.search('data-fix="([^"]*)"', text)[1]))
    send(builder, flow, 2, operation=offered)
    assert find(drafts.load(flow).definition, "hot")["branches"][0]["when"] == "steps.score.output.points > 70"


def test_the_picker_suggests_by_what_stands_before_and_lists_all(builder, flow):
    text = builder.get(reverse("flow_picker", args=[flow.pk]), {"after": "add"}).content.decode()
    assert text.count('role="option"') == 3 + 12
    text = builder.get(reverse("flow_picker", args=[flow.pk]) + "?triggers").content.decode()
    assert text.count('role="option"') == 6


def test_a_copied_step_is_text_that_can_be_pasted_into_another_flow(team, builder, flow):
    text = builder.get(reverse("flow_copy", args=[flow.pk]), {"step": "hot"}).content.decode()
    other = make_flow(team, "Other", user=None)
    send(builder, other, operation={"op": "paste", "steps": json.loads(text)["steps"], "place": {"index": 0}})
    assert find(drafts.load(other).definition, "call") is not None


def test_the_page_learns_that_the_draft_has_moved(team, builder, flow):
    address = reverse("flow_status", args=[flow.pk])
    assert builder.get(address, {"revision": 1}).status_code == 204
    send(person(team, Role.BUILDER, "dana"), flow, operation={"op": "toggle", "step": "each"})
    assert "Dana" in builder.get(address, {"revision": 1}).content.decode()


def test_a_field_can_be_asked_for_as_it_is_saved_now(builder, flow):
    text = builder.get(reverse("flow_field", args=[flow.pk]), {"owner": "hot", "field": "branches.0.when"}).content.decode()
    assert "{{ steps.score.output.points }}" in text
    assert builder.get(reverse("flow_field", args=[flow.pk]), {"owner": "hot", "field": "x"}).status_code == 404


@pytest.mark.parametrize(("role", "sees", "edits"), [(Role.VIEWER, 200, 403), (Role.BUILDER, 200, 200), (Role.ADMIN, 200, 200)])
def test_viewers_look_and_builders_edit(team, flow, role, sees, edits):
    client = person(team, role, "somebody")
    page = client.get(reverse("flow", args=[flow.pk]))
    assert page.status_code == sees
    assert ('class="add"' in page.content.decode()) is (edits == 200)
    assert send(client, flow, operation={"op": "toggle", "step": "each"}).status_code == edits


def test_a_webhooks_address_and_the_secret_made_for_it_are_for_those_who_edit(team, builder, flow):
    signed = {"format": 1, "name": "Leads", "steps": [], "triggers": [{"id": "lead", "type": "webhook", "config": {"signature": {"kind": "github"}}}]}
    publish(flow, signed)
    token, panel = Trigger.objects.get(workflow=flow).token, reverse("flow_panel", args=[flow.pk])
    secret = generated_secrets(token)[0]
    looks = person(team, Role.VIEWER, "vic").get(panel, {"step": "lead"}).content.decode()
    assert token not in looks and secret not in looks
    assert token in builder.get(panel, {"step": "lead"}).content.decode()
    send(builder, flow, operation={"op": "configure_trigger", "trigger": "lead", "set": {"config": signed["triggers"][0]["config"]}})
    assert secret in builder.get(panel, {"step": "lead"}).content.decode()
    held = {"signature": {"kind": "github", "connection": "GitHub"}}
    send(builder, flow, revision=2, operation={"op": "configure_trigger", "trigger": "lead", "set": {"config": held}})
    assert secret not in builder.get(panel, {"step": "lead"}).content.decode()


def test_another_teams_flow_does_not_exist(flow):
    client = person(Team.objects.create(name="Other"), Role.ADMIN, "eve")
    for name in ("flow", "flow_panel", "flow_versions", "flow_export", "flow_publish"):
        assert client.get(reverse(name, args=[flow.pk])).status_code == 404
    assert send(client, flow, operation={"op": "toggle", "step": "each"}).status_code == 404


def test_a_hostile_name_is_shown_and_not_run(builder, flow):
    send(builder, flow, owner="call", field="name", value='<img src=x onerror="alert(1)">')
    text = builder.get(reverse("flow", args=[flow.pk])).content.decode()
    assert "<img" not in text and "&lt;img" in text


def test_the_drawer_names_the_field_that_is_missing(builder, flow):
    text = send(builder, flow, operation={"op": "insert", "type": "ai", "place": {"index": 0}}).content.decode()
    drawer = text.split('id="problems-list"')[1].split("</ul>")[0]
    assert "“Input” is missing: fill it in." in drawer and "This is missing" not in drawer


def test_the_panel_of_a_webhook_says_what_its_address_takes(team, builder):
    hook = {"id": "hook", "type": "webhook", "config": {"methods": ["PUT", "POST"], "format": "form"}}
    flow = make_flow(team, "Hooked", user=None, definition={"format": 1, "name": "Hooked", "triggers": [hook], "steps": []})
    publish(flow, drafts.load(flow).definition)
    assert "Send a PUT or POST with a form here." in builder.get(reverse("flow", args=[flow.pk]) + "?step=hook").content.decode()


def test_a_task_that_the_built_in_model_cannot_do_is_said_before_anything_runs(team, builder):
    ask = {"id": "ask", "type": "ai", "config": {"task": "generate", "prompt": "Write"}}
    flow = make_flow(team, "Writes", user=None, definition={"format": 1, "name": "Writes", "steps": [ask, ask | {"id": "quote", "config": {"task": "summarise", "prompt": "x"}}]})
    found = [(one.step, one.field, one.warning) for one in Board.of(flow).problems if "built-in" in one.message]
    assert found == [("ask", "config.connection", True)]


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({"type": "parallel", "config": {"join": "count", "needed": 3}, "branches": [{"id": "a", "steps": []}, {"id": "b", "steps": []}]}, "needed"),
        ({"type": "approval", "config": {"approvers": ["a@b.example"], "policy": "count", "needed": 2, "subject": "Go?"}}, "needed"),
        ({"type": "approval", "config": {"approvers": ["a@b.example"], "expires": "3d", "remind": "3d", "subject": "Go?"}}, "remind"),
        ({"type": "approval", "config": {"approvers": ["a@b.example"], "escalate_after": "8d", "escalate_to": ["c@b.example"], "subject": "Go?"}}, "escalate_after"),
        ({"type": "approval", "config": {"approvers": ["team:Sales"], "policy": "count", "needed": 2, "subject": "Go?", "remind": "{{ trigger.body.t }}"}}, ""),
        ({"type": "approval", "config": {"policy": "count"}}, ""),
        ({"type": "parallel", "config": {"join": "count"}, "branches": [{"id": "a", "steps": []}, {"id": "b", "steps": []}]}, ""),
    ],
)
def test_what_cannot_come_true_is_said_before_anything_runs(step, field):
    found = [one.field for one in doubts({"steps": [{"id": "one", **step}]})]
    assert found == ([f"config.{field}"] if field else [])


@pytest.mark.parametrize("request_", ["x", "{{ trigger.body }}", [[]], 5, True, {"url": 5, "method": [], "connection": {}}])
def test_a_check_that_asks_for_anything_opens_and_is_put_right(builder, flow, request_):
    """As an import may bring it."""
    rule = {"check": {"request": request_, "happened": "true"}}
    call = {"id": "call", "type": "http", "config": {"url": "https://a.example/x", "method": "POST"}, "on_interrupted": rule}
    drafts.save(flow, {"format": 1, "name": "Leads", "triggers": [], "steps": [call]}, revision=None)
    panel = builder.get(reverse("flow_panel", args=[flow.pk]), {"step": "call", "tab": "safety"})
    assert panel.status_code == 200 and 'name="value"' in panel.content.decode()
    for path in ("on_interrupted.check.request.url", "config.url.a.b", "config.url.0"):
        operation = {"op": "configure", "step": "call", "set": {path: None}}
        assert send(builder, flow, drafts.load(flow).revision, operation=operation).status_code < 500
