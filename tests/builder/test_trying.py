"""What is told while an expression is typed: the functions, and what the field gives with the sample data."""

from __future__ import annotations

import json

import pytest

from builder import drafts
from builder.board import Board
from builder.dataflow import Known, names_at
from builder.dataflow.samples import Samples, output_shapes
from builder.examples import example
from builder.flowmaking import make_flow
from builder.functionhelp import functions
from builder.teams import ensure_default_team
from builder.trying import EXPRESSION, JSON, TEMPLATE, tried
from runtime.expressions import compile
from runtime.expressions.functions import FUNCTIONS
from runtime.expressions.functions.registry import NAMESPACES
from runtime.expressions.parser import MACROS
from tests.builder import factories


@pytest.mark.parametrize("one", functions(), ids=lambda one: one.signature)
def test_every_example_of_a_function_works(one):
    assert one.name in one.example
    compile(one.example).evaluate({})


def test_every_function_of_the_language_is_told():
    told = {one.name for one in functions()}
    there = {f"{style}.{name}" if style in NAMESPACES else name for style, name in FUNCTIONS} | set(MACROS) | {"has"}
    assert there - told == {"existsOne"}, "which is exists_one by another name"
    assert told - there == set()


@pytest.fixture
def board(db):
    admin = factories.user("builder", of=ensure_default_team(factories.user(None, is_superuser=True)))
    flow = make_flow(ensure_default_team(admin), "Leads", user=admin, definition=example("lead_qualification"))
    return Board.of(flow)


def test_a_field_gives_its_value_with_the_sample_data(board):
    whole = tried(board, "qualify", "config.prompt", "{{ trigger.body.company }} has {{ trigger.body.employees }}", TEMPLATE)
    assert whole.value == "Halden Robotics has 480" and whole.type == "text"
    assert tried(board, "qualify", "config.prompt", "{{ trigger.body.employees }}", TEMPLATE).type == "number"
    assert tried(board, "qualify", "config.prompt", "no braces", TEMPLATE) == tried(board, "", "", " ", EXPRESSION)
    found = tried(board, "hot", "x", '{"n": "{{ trigger.body.employees }}"}', JSON)
    assert json.loads(found.value) == {"n": 480}


def test_a_mistake_is_told_with_its_column_and_a_missing_sample_by_the_name_of_the_step(board):
    found = tried(board, "hot_lead", "branches.0.when", "trigger.body.employees >", EXPRESSION)
    assert found.error and found.column
    missing = tried(board, "hot_lead", "branches.0.when", "steps.qualify.output.score > 0.5", EXPRESSION)
    assert "no sample of “" in missing.error and "pin an output" in missing.error


def test_a_webhooks_own_rule_sees_the_request(board):
    assert tried(board, "new_lead", "config.dedupe", "body.id", EXPRESSION).value


def test_a_loops_own_fields_see_its_inside():
    loop = {"id": "each", "type": "loop", "config": {"items": "trigger.body.items"}, "steps": [{"id": "a", "type": "set", "config": {"values": {"x": "{{ loop.item * 2 }}"}}}]}
    flow = {"format": 1, "name": "x", "triggers": [], "steps": [loop]}
    samples = Samples(trigger={"body": {"items": [3]}}, steps={"a": {"x": 6}})
    assert "loop" not in names_at(Known(flow, samples), "each")
    at_end = names_at(Known(flow, samples), "each", field="config.collect")
    assert at_end["loop"]["item"] == 3 and at_end["steps"]["a"]["output"] == {"x": 6}


def test_what_approvers_fill_in_is_known():
    form = [{"id": "limit", "label": "Limit", "type": "number"}]
    flow = {"format": 1, "name": "x", "triggers": [], "steps": [{"id": "ok", "type": "approval", "config": {"form": form}}]}
    shape = output_shapes(flow, Samples())["ok"]
    assert shape.fields["form"].fields["limit"].type == "number"


def test_the_field_is_answered_over_http_and_only_to_builders(board, client):
    person = factories.user("builder", of=board.workflow.team)
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    asked = {"owner": "qualify", "field": "config.prompt", "text": "{{ trigger.body.company }}!", "kind": "template"}
    answer = client.post(f"/flows/{board.workflow.pk}/try/", asked)
    assert answer.json()["value"] == "Halden Robotics!"
    assert client.get("/expressions/functions/").json()["functions"][0]["signature"]
    assert drafts.load(board.workflow).revision == 1
