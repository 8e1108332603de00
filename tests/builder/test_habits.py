"""What people write who come from another product is named in plain words, and one press makes it what it was meant to be."""

from __future__ import annotations

from copy import deepcopy

import pytest

from builder.board import problems_of
from builder.dataflow import Known, Samples
from builder.editing import apply
from runtime.definition import find

SENT = {"email": "p@h.example", "people": [{"id": 7, "mail": "a@b.example"}], "note": "it is = and | or"}
FLOW = {
    "format": 1,
    "name": "Leads",
    "triggers": [{"id": "lead", "type": "webhook", "name": "New lead", "config": {"sample": SENT}}],
    "steps": [
        {"id": "qualify", "type": "ai", "name": "Qualify lead", "config": {"connection": "AI", "prompt": "x", "schema": {"type": "object", "properties": {"score": {"type": "integer"}, "tier": {"type": "string"}}}}},
        {"id": "call", "type": "http", "name": "Call", "config": {"url": "https://a.example/"}},
        {"id": "each", "type": "loop", "name": "Each", "config": {"items": "trigger.body.people"}, "steps": [{"id": "add", "type": "set", "config": {"values": {"v": "x"}}}]},
        {"id": "last", "type": "set", "config": {"values": {"v": "x"}}},
        {"id": "pages", "type": "http", "config": {"url": "https://a.example/", "pages": "cursor", "page_items": "response.body"}},
    ],
}  # fmt: skip
SAMPLES = Samples(steps={"call": {"status": 200, "headers": {}, "body": {"id": 5}}}, trigger={"body": SENT, "headers": {}, "query": {}, "method": "POST"})

READABLE = [
    # In a loop
    ("add", "{{ item.mail }}", "inside a loop it is loop.item", "{{ loop.item.mail }}"),
    ("add", "{{ item.json.mail }}", "loop.item", "{{ loop.item.mail }}"),
    ("add", "{{ flow_input.iter.value.mail }}", "loop.item", "{{ loop.item.mail }}"),
    ("add", "{{ flow_input.iter.index }}", "loop.index", "{{ loop.index }}"),
    ("add", "{{ index + 1 }}", "loop.index", "{{ loop.index + 1 }}"),
    ("add", "{{ loop.mail }}", "it is loop.item.mail", "{{ loop.item.mail }}"),
    ("add", "{{ loop.value.mail }}", "it is loop.item", "{{ loop.item.mail }}"),
    ("add", "{{ steps.each.output.item.mail }}", "its item is loop.item", "{{ loop.item.mail }}"),
    ("add", "{{ json.mail }}", "here it is loop.item", "{{ loop.item.mail }}"),
    ("last", "{{ item.mail }}", "no loop around this step", None),
    # What a step gives
    ("last", "{{ steps.qualify.score }}", "stands in its output: steps.qualify.output.score", "{{ steps.qualify.output.score }}"),
    ("last", "{{ steps.qualify.outputs.score }}", "steps.qualify.output", "{{ steps.qualify.output.score }}"),
    ("last", "{{ steps.qualify.json.score }}", "steps.qualify.output", "{{ steps.qualify.output.score }}"),
    ("last", "{{ qualify.score }}", "what “Qualify lead” gives is steps.qualify.output", "{{ steps.qualify.output.score }}"),
    ("last", "{{ qualify.output.score }}", "steps.qualify.output", "{{ steps.qualify.output.score }}"),
    ("last", "{{ results.qualify.score }}", "steps.qualify.output", "{{ steps.qualify.output.score }}"),
    ("last", "{{ previous_result.id }}", "here it is steps.call.output.body", "{{ steps.call.output.body.id }}"),
    ("last", "{{ data.tier }}", "here it is steps.qualify.output", "{{ steps.qualify.output.tier }}"),
    ("last", "{{ json.email }}", "here it is trigger.body", "{{ trigger.body.email }}"),
    # What was sent
    ("last", "{{ trigger.email }}", "stands in its body, trigger.body.email", "{{ trigger.body.email }}"),
    ("last", "{{ trigger.data.email }}", "trigger.body.email", "{{ trigger.body.email }}"),
    ("last", "{{ trigger['email'] }}", "stands in its body, trigger.body.email", "{{ trigger.body.email }}"),
    ("last", '{{ trigger["data"]["email"] + "trigger.email" }}', "trigger.body.email", '{{ trigger.body.email + "trigger.email" }}'),
    ("last", "{{ steps['qualify']['score'] }}", "steps.qualify.output.score", "{{ steps.qualify.output.score }}"),
    ("add", "{{ loop['mail'] }}", "it is loop.item.mail", "{{ loop.item.mail }}"),
    ("last", "{{ input.email }}", "here it is trigger.body", "{{ trigger.body.email }}"),
    ("last", "{{ body.email }}", "here it is trigger.body", "{{ trigger.body.email }}"),
    ("last", "{{ flow_input.email }}", "here it is trigger.body", "{{ trigger.body.email }}"),
    ("last", "{{ request.body.email }}", "here it is trigger", "{{ trigger.body.email }}"),
    ("last", "{{ headers['x-id'] }}", "here it is trigger.headers", "{{ trigger.headers['x-id'] }}"),
    ("last", "body {{ body.email }} \"body\" {{ 'body' }}", "trigger.body", "body {{ trigger.body.email }} \"body\" {{ 'body' }}"),
    # Other
    ("last", "{{ True }}", "here it is true", "{{ true }}"),
    ("last", "{{ env.TOKEN }}", "do not see secrets", None),
    ("last", "{{ trigger.body.people.length }}", "How many there are is size(trigger.body.people)", "{{ size(trigger.body.people) }}"),
]  # fmt: skip
UNREADABLE = [
    ("{{ $json.email }}", "Names have no $ here", "{{ trigger.body.email }}"),
    ("{{ $json.tier }}", "Names have no $", "{{ steps.qualify.output.tier }}"),
    ("{{ $input.first().json.email }}", "Names have no $", "{{ trigger.body.email }}"),
    ("{{ $('Qualify lead').item.json.score }}", "Names have no $", "{{ steps.qualify.output.score }}"),
    ('{{ $node["New lead"].json.email }}', "Names have no $", "{{ trigger.body.email }}"),
    ("{{ $now }}", "Names have no $", "{{ run.started_at }}"),
    ("{{ 12345__email }}", "not expected", "{{ trigger.body.email }}"),
    ("{{ trigger.body.email = 'x' }}", "Write == to compare", "{{ trigger.body.email == 'x' }}"),
    ("{{ trigger.body.email === 'x' }}", "Write == to compare", "{{ trigger.body.email == 'x' }}"),
    ("{{ trigger.body.email <> 'x' }}", "not expected", "{{ trigger.body.email != 'x' }}"),
    ("{{ true and trigger.body.note == 'this and that' }}", "Write && for and", "{{ true && trigger.body.note == 'this and that' }}"),
    ("{{ true OR false }}", "Write || for OR", "{{ true || false }}"),
    ("{{ not trigger.body.people }}", "Write ! for not", "{{ !trigger.body.people }}"),
    ("{{ true & false | true }}", "Write && for and", "{{ true && false || true }}"),
    ("{{ trigger.body.email == “p@h.example” }}", "Write plain quotes", '{{ trigger.body.email == "p@h.example" }}'),
    ("{{ trigger?.body.email }}", "missing", "{{ trigger.?body.email }}"),
    ("{{ trigger.body.email.toLowerCase() }}", "toLowerCase", "{{ trigger.body.email.lower() }}"),
    ("{{ trigger.body.email.includes('@') }}", "includes", "{{ trigger.body.email.contains('@') }}"),
    ("{{ len(trigger.body.people) }}", "len", "{{ size(trigger.body.people) }}"),
    ("{{ (1 + }}", "", None),
]  # fmt: skip


def problem_of(flow, step):
    found = [one for one in problems_of(Known(flow, SAMPLES), {"AI"}) if one.step == step]
    assert len(found) == 1, found
    return found[0]


def press(flow, problem):
    return apply(flow, problem.fix["operation"]).definition


def with_text(step, text):
    flow = deepcopy(FLOW)
    find(flow, step)["config"]["values"]["v"] = text
    return flow


def test_the_flow_is_sound_without_them():
    assert problems_of(Known(FLOW, SAMPLES), {"AI"}) == []


@pytest.mark.parametrize(("step", "text", "words", "right"), READABLE, ids=lambda value: str(value)[:40])
def test_a_name_from_elsewhere_is_told_what_it_is_here(step, text, words, right):
    flow = with_text(step, text)
    problem = problem_of(flow, step)
    assert words in problem.message
    if right is None:
        assert problem.fix is None
        return
    fixed = press(flow, problem)
    assert find(fixed, step)["config"]["values"]["v"] == right
    assert problems_of(Known(fixed, SAMPLES), {"AI"}) == []


@pytest.mark.parametrize(("text", "words", "right"), UNREADABLE, ids=lambda value: str(value)[:40])
def test_a_spelling_from_elsewhere_is_put_right_at_one_press(text, words, right):
    flow = with_text("last", text)
    problem = problem_of(flow, "last")
    assert words in problem.message
    if right is None:
        assert problem.fix is None
        return
    fixed = press(flow, problem)
    assert find(fixed, "last")["config"]["values"]["v"] == right
    assert problems_of(Known(fixed, SAMPLES), {"AI"}) == []


def test_what_an_answer_is_called_where_its_pages_are_followed():
    flow = deepcopy(FLOW)
    find(flow, "pages")["config"]["page_items"] = "body.items"
    problem = problem_of(flow, "pages")
    assert "here it is response.body" in problem.message
    assert find(press(flow, problem), "pages")["config"]["page_items"] == "response.body.items"


def test_a_step_that_runs_later_is_not_offered():
    problem = problem_of(with_text("add", "{{ last.v }}"), "add")
    assert problem.fix is None or "steps.last" not in problem.fix["new"]


def test_prose_around_the_code_stays_and_what_is_left_is_told_next():
    flow = with_text("last", "and, or = {{ item.mail and $json.email }}")
    fixed = press(flow, problem_of(flow, "last"))
    assert find(fixed, "last")["config"]["values"]["v"] == "and, or = {{ item.mail && trigger.body.email }}"
    assert "no loop around this step" in problem_of(fixed, "last").message
