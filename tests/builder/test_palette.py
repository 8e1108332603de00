"""Steps and triggers, told from their models: everything is there, and every example works."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from builder.editing import apply
from builder.forms.widgets import WIDGETS
from builder.palette import KINDS, sections
from runtime.definition import check
from runtime.steps import step_types
from runtime.triggers import trigger_kinds
from tests.builder import factories

ENTRIES = {entry.type: entry for part in sections() for entry in part.entries}


def test_every_type_and_trigger_is_there_in_words_for_people():
    assert set(ENTRIES) == set(step_types()) | set(trigger_kinds())
    for entry in ENTRIES.values():
        assert entry.about and entry.summary and all(setting.title for setting in entry.settings)
        assert {setting.kind for setting in entry.settings} <= set(KINDS.values())  # no type falls back to its kind's name
    assert set(KINDS) <= set(WIDGETS)


@pytest.mark.parametrize("type_", [name for name in ENTRIES if name in step_types()])
def test_every_example_can_be_pasted_and_published(type_):
    step = json.loads(ENTRIES[type_].example)
    made = apply({"format": 1, "name": "x", "triggers": [], "steps": []}, {"op": "paste", "steps": [step], "place": {"index": 0}})
    blocking = [problem for problem in check(made.definition) if not problem.warning]
    assert [problem.field for problem in blocking if not problem.field.startswith("branches")] == []


@pytest.mark.parametrize("type_", list(trigger_kinds()))
def test_every_trigger_example_stands_in_a_definition(type_):
    declared = json.loads(ENTRIES[type_].example)
    assert not check({"format": 1, "name": "x", "triggers": [declared], "steps": []})


@pytest.mark.django_db
def test_the_page_tells_all_of_it(client):
    assert client.get(reverse("palette")).status_code == 302
    client.force_login(factories.user("viewer"))
    page = client.get(reverse("palette")).content.decode()
    for entry in ENTRIES.values():
        assert f'id="{entry.type}"' in page
    assert "Who has to answer" in page and "One line after the other" in page and "Steps and triggers" in page
