"""Finding a step, and containers that one person has collapsed."""

from __future__ import annotations

import pytest
from django.urls import reverse

from builder.finding import found, outline
from builder.flowmaking import make_flow
from builder.models import Fold
from runtime.models import Role, Team
from tests.builder.test_canvas import person
from tests.builder.test_editing import LEAD


@pytest.mark.parametrize(("query", "expected"), [
    ("DELAY", [("add", "", "Delay")]),
    ("SET", [("score", "", "Set values")]),
    ("http", [("call", "Type", "API call (http)")]),
    ("points", [("score", "Values: points", "points"), ("hot", "Rule", "steps.score.output.points > 70"), ("call", "Address", "…m.example/{{ steps.score.output.points }}")]),
    ("hot", [("hot", "Id", "hot")]),
    ("  ", []),
    ("nowhere", []),
])  # fmt: skip
def test_a_step_is_found_by_name_id_type_and_settings(query, expected):
    assert [(hit.step, hit.where, hit.excerpt) for hit in found(LEAD, query)] == expected


def test_names_come_before_ids_and_these_before_texts():
    flow = {"steps": [
        {"id": "a", "type": "set", "config": {"values": {"x": "a mail"}}}, {"id": "mail", "type": "set", "name": "Tell"},
        {"id": "b", "type": "set", "name": "Mail Dana", "note": "mail"}, {"id": "c", "type": "email", "name": "Write"},
    ]}  # fmt: skip
    assert [(hit.step, hit.where) for hit in found(flow, "mail")] == [("b", ""), ("mail", "Id"), ("c", "Type"), ("a", "Values: x")]


def test_the_outline_is_every_step_in_the_order_of_the_page():
    inner = [{"id": "c", "type": "set", "on_error": {"steps": [{"id": "d", "type": "email", "name": "Tell"}]}}]
    flow = {"triggers": [{"id": "t", "type": "manual"}], "steps": [
        {"id": "a", "type": "condition", "branches": [{"id": "yes", "steps": [{"id": "b", "type": "loop", "steps": inner}]}, {"id": "no"}]},
        {"id": "e", "type": "delay", "name": "Wait"},
    ]}  # fmt: skip
    assert [(hit.depth, hit.step) for hit in outline(flow)] == [(0, "t"), (0, "a"), (1, "b"), (2, "c"), (3, "d"), (0, "e")]
    assert [hit.name for hit in outline(flow)] == ["Manual", "Condition", "Loop", "Set values", "Tell", "Wait"]


@pytest.mark.django_db
def test_what_somebody_collapses_stays_so_for_them_alone():
    team = Team.objects.create(name="Sales")
    flow = make_flow(team, "Lead", user=None, definition=LEAD)
    ines, vera = person(team, Role.BUILDER), person(team, Role.VIEWER, "vera")
    address = reverse("flow_fold", args=[flow.pk])
    for _ in range(2):
        assert vera.post(address, {"step": "hot", "folded": "yes"}).status_code == 204
    assert vera.post(address, {"step": "gone\x00", "folded": "yes"}).status_code == 204
    assert Fold.objects.count() == 1
    page = reverse("flow", args=[flow.pk])
    assert 'class="node is-folded" id="node-hot"' in vera.get(page).content.decode()
    assert "is-folded" not in ines.get(page).content.decode()
    vera.post(address, {"step": "hot", "folded": "no"})
    assert "is-folded" not in vera.get(page).content.decode()


@pytest.mark.django_db
def test_what_was_found_is_told_with_where_it_stands():
    team = Team.objects.create(name="Sales")
    flow = make_flow(team, "Lead", user=None, definition=LEAD)
    viewer = person(team, Role.VIEWER)
    text = viewer.get(reverse("flow_find", args=[flow.pk]), {"q": "crm.example"}).content.decode()
    assert 'data-step="call"' in text and 'data-to="config.url"' in text
    assert "No step has “&lt;b&gt;”" in viewer.get(reverse("flow_find", args=[flow.pk]), {"q": "<b>"}).content.decode()
