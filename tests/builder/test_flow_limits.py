"""Limits of flows, as people and programs meet them: in the form, in answers, in the list and on the run's page."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from builder.diff import changes
from builder.editing.settings import configure_workflow
from builder.fieldedits import field_operation
from builder.forms.base import Offer
from builder.forms.workflow import workflow_fields
from builder.tokens import make_token
from builder.views.runs.page import shown_as
from runtime.models import Dispatch, Run, Trigger, Workflow
from runtime.publish import publish
from runtime.starts import start
from tests.builder import factories

pytestmark = pytest.mark.django_db

FIELDS = [{"id": "email", "label": "Your address", "type": "text"}]


def flow(*, of=None, **limits):
    workflow = Workflow.objects.create(team=of or factories.team(), name="Leads")
    declared = [{"id": "hook", "type": "webhook", "config": {}}, {"id": "api", "type": "api", "config": {}},
                {"id": "form", "type": "form", "config": {"fields": FIELDS}}]
    step = {"id": "wait", "type": "delay", "config": {"for": "1d"}}
    return publish(workflow, {"format": 1, "name": "Leads", "limits": limits, "triggers": declared, "steps": [step]})


def begin(version) -> int:
    return start(version, trigger_key="api", input={"body": {}}).run_id


def admit(version) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select holdfast_admit(%s)", [version.workflow_id])


def test_callers_are_told_what_is_dropped_and_people_see_it(client):
    version = flow(at_most=1, more="drop")
    begin(version)
    hook = Trigger.objects.get(workflow=version.workflow, key="hook")
    answer = client.post(f"/hooks/{hook.token}/", "{}", content_type="application/json")
    told = answer.json()
    assert answer.status_code == 409 and told["dropped"] and "At most 1 of this flow's runs" in told["error"]["message"]
    client.force_login(factories.user("operator"))
    assert "Dropped: At most 1" in client.get(reverse("run", args=[told["run"]])).content.decode()
    assert "Dropped: At most 1" in client.get(reverse("runs")).content.decode()


def test_the_api_tells_what_is_dropped_and_where_a_run_stands():
    person = factories.user("operator")
    given = {"Authorization": f"Bearer {make_token(person, 'test')[1]}"}
    version = flow(at_most=1, more="drop")
    begin(version)
    answer = Client().post(f"/api/v1/workflows/{version.workflow_id}/runs", "{}", content_type="application/json", headers=given)
    assert answer.status_code == 409 and answer.json()["dropped"] and "At most 1" in answer.json()["error"]["message"]
    queueing = flow(at_most=1)
    runs = [begin(queueing) for _ in range(3)]
    admit(queueing)
    told = Client().get(f"/api/v1/runs/{runs[2]}", headers=given).json()
    assert told["queued"]["before"] == 1 and "At most 1" in told["queued"]["why"]
    assert Client().get(f"/api/v1/runs/{runs[0]}", headers=given).json()["queued"] is None


def test_a_form_that_is_dropped_says_that_nothing_was_taken(client):
    version = flow(at_most=1, more="drop")
    begin(version)
    page = reverse("form_page", args=[Trigger.objects.get(workflow=version.workflow, key="form").token])
    answer = client.post(page, {"form.email": "a@b.example"})
    assert answer.status_code == 409 and "was not taken" in answer.content.decode()


def test_a_queued_run_says_behind_how_many_and_why(client):
    version = flow(at_most=1)
    runs = [begin(version) for _ in range(3)]
    admit(version)
    client.force_login(factories.user("operator"))
    page = client.get(reverse("run", args=[runs[2]])).content.decode()
    assert "Queued" in page and "behind 1. At most 1 of this flow" in page
    assert "next in turn." in client.get(reverse("run", args=[runs[1]])).content.decode()
    assert "behind 1. At most 1 of this flow" in client.get(reverse("runs")).content.decode()


@pytest.mark.parametrize("yields,words", [(False, "keeps its slot"), (True, "gave its slot up")])
def test_a_waiting_run_says_whether_it_holds_its_slot(yields, words):
    run = factories.run()
    Dispatch.objects.filter(pk=run.pk).update(slot_of=run.workflow_id, slot_key="", yields=yields, queued=yields)
    assert words in shown_as(Run.objects.get(pk=run.pk), Dispatch.objects.get(pk=run.pk))["slot"]


def test_limits_are_set_in_the_flows_settings_and_compared():
    before = {"format": 1, "name": "Leads", "steps": []}

    def set_to(definition, field, **typed):
        post = QueryDict(mutable=True)
        post.update({"owner": "", "field": field, **typed})
        return configure_workflow(definition, field_operation(definition, None, post)).definition

    after = set_to(before, "limits.at_most", value="3")
    after = set_to(after, "limits.more", value="drop")
    after = set_to(after, "limits.priority", value="5")
    after = set_to(after, "limits.max_age", number="7", unit="d")
    after = set_to(after, "limits.waiting_holds")
    assert after["limits"] == {"at_most": 3, "more": "drop", "priority": "5", "max_age": "7d", "waiting_holds": False}
    shown = {one.name: one for one in workflow_fields({**after, "limits": {"priority": 5}}, Offer())}
    assert not shown["limits.priority"].more and shown["limits.at_most"].more
    [change] = changes(before, after)
    assert [one.field for one in change.fields] == ["limits"]
    [change] = changes(after, set_to(after, "limits.at_most", value="4"))
    assert [(one.field, one.before, one.after) for one in change.fields] == [("limits.at_most", 3, 4)]


def test_an_empty_limits_map_is_no_limit():
    assert Dispatch.objects.get(pk=begin(flow())).slot_of is None
    assert json.dumps(flow().definition["limits"]) == "{}"
