"""Steps and triggers, told from their models: everything is there, and every example works."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.urls import reverse
from django.utils.html import conditional_escape

from builder import drafts
from builder.changewords import told
from builder.diff import changes
from builder.editing import apply
from builder.forms.widgets import WIDGETS
from builder.functionhelp import functions
from builder.palette import KINDS, sections
from runtime.definition import check
from runtime.expressions import compile_template
from runtime.models import Workflow
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
def test_every_trigger_example_can_be_pasted_and_published(type_):
    declared = json.loads(ENTRIES[type_].example)
    made = apply({"format": 1, "name": "x", "triggers": [], "steps": []}, {"op": "paste", "steps": [declared], "place": {"index": 0}})
    assert made.definition["triggers"][0]["config"] == declared["config"] and not check(made.definition)


def test_what_set_values_shows_can_be_computed():
    names = {
        "trigger": {"body": {"orders": [{"id": 1, "total": 30, "country": "DE"}, {"id": 2, "total": 200, "country": "US"}]}},
        "run": {"started_at": "2027-01-15T09:00:00Z"},
    }
    shown = re.findall(r"<code>(\{\{.+?\}\})</code>", "".join(item for part in ENTRIES["set"].about for item in part.items))
    given = [compile_template(unescape(one)).render(names) for one in shown]
    assert len(given) == 7 and given[1][0]["id"] == 2 and given[3][0]["id"] == 2 and given[4:] == [230, {"DE": [names["trigger"]["body"]["orders"][0]],
        "US": [names["trigger"]["body"]["orders"][1]]}, "15 January 2027"]  # fmt: skip


@pytest.mark.django_db
def test_the_page_tells_all_of_it(client):
    assert client.get(reverse("palette")).status_code == 302
    client.force_login(factories.user("viewer"))
    page = client.get(reverse("palette")).content.decode()
    for entry in ENTRIES.values():
        assert f'id="{entry.type}"' in page
    assert "Who has to answer" in page and "One line after the other" in page and "Steps and triggers" in page
    assert "<li>Everybody: all have to approve.</li>" in page and "such as <code>steps.qualify.output.score</code>" in page and "A mail cannot start a flow" in page
    for one in functions():
        assert conditional_escape(one.signature) in page


@pytest.mark.django_db
@pytest.mark.parametrize(("word", "type_"), [("if", "condition"), ("filter", "set"), ("gmail", "email"), ("sleep", "delay"), ("for each", "loop"), ("cron", "schedule")])
def test_the_picker_knows_what_other_products_call_it(client, word, type_):
    workflow = Workflow.objects.create(team=factories.team(), name="Found")
    drafts.begin(workflow, {"format": 1, "name": "Found", "triggers": [], "steps": []})
    client.force_login(factories.user("builder"))
    asked = {"triggers": "1"} if type_ in trigger_kinds() else {}
    page = client.get(reverse("flow_picker", args=[workflow.pk]), asked).content.decode()
    [known] = set(re.findall(rf'data-type="{type_}"[^>]*data-words="([^"]*)"', page))
    assert word in known


def test_options_are_called_as_their_own_field_says():
    def words(type_, name):
        return {value: word for setting in ENTRIES[type_].settings if setting.name == name for value, word in setting.choices}

    assert words("http", "pages")["none"] == "No" and words("webhook", "signature.kind")["none"] == "Not signed"
    assert words("parallel", "join")["all"] == "All lanes" and words("approval", "policy")["all"] == "Everybody"
    before = {"format": 1, "name": "x", "steps": [{"id": "a", "type": "http", "config": {"url": "https://a.example/", "pages": "none"}}]}
    after = {**before, "steps": [{**before["steps"][0], "config": {"url": "https://a.example/", "pages": "cursor"}}]}
    [change] = changes(before, after)
    assert [(one.field, one.before, one.after) for one in told(change)] == [("Follow pages", "No", "By a cursor")]
