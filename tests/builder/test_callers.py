"""Who uses a flow is known before it is changed, taken offline or deleted."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from builder.callers import callers_of
from builder.flowmaking import make_flow
from runtime.models import Workflow
from runtime.publish import publish
from tests.builder import factories

pytestmark = pytest.mark.django_db


def flow(name: str, *runs: str, after: str = "") -> dict[str, Any]:
    """It runs others in its steps, the last inside a loop; `after`: it begins when that one ends."""
    steps = [{"id": f"s{n}", "type": "workflow", "name": f"Ask {one}", "config": {"flow": one}} for n, one in enumerate(runs)]
    inner = [{"id": "each", "type": "loop", "config": {"items": "[1]"}, "steps": steps[-1:]}] if steps else []
    triggers = [{"id": "end", "type": "ended", "config": {"flow": after}}] if after else []
    return {"format": 1, "name": name, "triggers": triggers, "steps": [*steps[:-1], *inner]}


@pytest.fixture
def team():
    return factories.team()


def live(team, definition: dict[str, Any]) -> Workflow:
    made = make_flow(team, definition["name"], user=None, definition=definition)
    publish(made, definition)
    return made


def ways(workflow: Workflow) -> dict[str, str]:
    return {one.name: one.how for one in callers_of(workflow)}


def test_live_versions_and_drafts_use_it(team):
    used = live(team, flow("Price"))
    live(team, flow("Quote", "Other", "Price"))
    live(team, flow("Watch", after="Price"))
    make_flow(team, "Planned", user=None, definition=flow("Planned", "Price", "Price"))
    live(team, flow("Bystander", "Other", after="Other"))
    assert ways(used) == {
        "Quote": "runs it in “Ask Price”",
        "Watch": "begins when it ends",
        "Planned": "runs it in “Ask Price”, in its draft",
    }


def test_by_its_former_name_too_and_by_no_other_team(team):
    used = live(team, flow("Price"))
    live(team, flow("Quote", "Price"))
    live(factories.team("Theirs"), flow("Foreign", "Price"))
    publish(used, flow("List price"))
    assert ways(used) == {"Quote": "runs it in “Ask Price”"}


def test_a_step_without_a_name_is_called_by_its_type(team):
    used, caller = live(team, flow("Price")), flow("Quote", "Price")
    del caller["steps"][0]["steps"][0]["name"]
    live(team, caller)
    assert ways(used) == {"Quote": "runs it in “Sub-flow”"}


def test_one_that_was_deleted_uses_nothing(team, ines):
    used, gone = live(team, flow("Price")), live(team, flow("Quote", "Price"))
    ines.post(reverse("flow_delete", args=[gone.pk]))
    assert ways(used) == {}


def test_its_settings_and_the_question_before_its_end_name_them(team, ines):
    used, other = live(team, flow("Price")), live(team, flow("Alone"))
    quote = live(team, flow("Quote", "Price"))
    settings = ines.get(reverse("flow_panel", args=[used.pk]), {"settings": "", "tab": "setup"}).content.decode()
    assert "Used by 1 flow<" in settings and reverse("flow", args=[quote.pk]) in settings
    assert "Used by" not in ines.get(reverse("flow_panel", args=[other.pk]), {"settings": ""}).content.decode()
    asked = ines.post(reverse("flow_callers", args=[used.pk])).content.decode()
    assert "<b>Quote</b> runs it in “Ask Price”" in asked
    assert "No other flow uses it." in ines.post(reverse("flow_callers", args=[other.pk])).content.decode()


def test_the_step_leads_to_the_flow_that_it_runs(team, ines):
    make_flow(team, "Price", user=None)
    used = live(team, flow("Price"))
    caller = make_flow(team, "Quote", user=None, definition=flow("Quote", "Price", "Nowhere"))
    way = f'<a href="{reverse("flow", args=[used.pk])}">Open '
    panel = ines.get(reverse("flow_panel", args=[caller.pk]), {"step": "s0"}).content.decode()
    assert f"{way}Price</a>" in panel  # of two by this name the live one
    assert "Open " not in ines.get(reverse("flow_panel", args=[caller.pk]), {"step": "s1"}).content.decode()


def test_the_step_tells_what_the_flow_that_it_runs_wants_to_be_given(team, ines):
    price = flow("Price", "{{ trigger.body.region }}")
    price["steps"].append({"id": "x", "type": "set", "config": {"values": {"a": "{{ trigger.body.count * trigger.body.?rate.orValue(1) }}", "b": "{{ trigger.body.count }}"}}})
    live(team, price)
    caller = make_flow(team, "Quote", user=None, definition=flow("Quote", "Price"))
    panel = ines.get(reverse("flow_panel", args=[caller.pk]), {"step": "s0"}).content.decode()
    assert "Open Price</a>, which reads region, count, rate of what it is given<" in panel


def test_and_does_so_after_that_got_another_name(team, ines):
    used = live(team, flow("Price"))
    caller = make_flow(team, "Quote", user=None, definition=flow("Quote", "Price"))
    publish(used, flow("List price"))
    panel = ines.get(reverse("flow_panel", args=[caller.pk]), {"step": "s0"}).content.decode()
    assert f'<a href="{reverse("flow", args=[used.pk])}">Open List price</a>' in panel
