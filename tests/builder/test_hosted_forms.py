"""The hosted page of a form trigger: what it takes, what it refuses, and that sent twice is started once."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from runtime.models import Run, Trigger, Workflow
from runtime.publish import publish
from tests.builder import factories

pytestmark = pytest.mark.django_db

FIELDS = [
    {"id": "email", "label": "Your address", "type": "text", "required": True},
    {"id": "seats", "label": "Seats", "type": "number"},
    {"id": "plan", "label": "Plan", "type": "choice", "options": ["Small", "Large"]},
]


@pytest.fixture
def form():
    def make(**config) -> str:
        workflow = Workflow.objects.create(team=factories.team(), name="Quotes")
        declared = [{"id": "ask", "type": "form", "config": {"fields": FIELDS, "title": "Get a <quote>"} | config}]
        publish(workflow, {"format": 1, "name": "Quotes", "triggers": declared, "steps": []})
        return reverse("form_page", args=[Trigger.objects.get(workflow=workflow, key="ask").token])

    return make


def text(answer) -> str:
    return " ".join(answer.content.decode().split())


def number_of(client: Client, address: str) -> str:
    return re.search(r'name="page" value="([^"]+)"', text(client.get(address)))[1]


def test_an_answer_starts_one_run_however_often_it_is_sent(client, form):
    address = form(thanks="We call you.")
    given = {"form.email": "a@b.example", "form.seats": "40", "form.plan": "Large", "page": number_of(client, address)}
    for _ in range(3):
        told = client.post(address, given, follow=True)
    assert "We call you." in text(told) and "<script" not in text(told)
    run = Run.objects.get()
    assert run.input["body"] == {"email": "a@b.example", "seats": 40, "plan": "Large"} and run.input["by"] == ""
    given["page"] = number_of(client, address)
    client.post(address, given)
    assert Run.objects.count() == 2


def test_long_texts_and_addresses_are_asked_for_as_such(client, form):
    fields = [{"id": "story", "label": "What happened", "type": "long_text"}, {"id": "reply", "label": "Your address", "type": "email"}]
    address = form(fields=fields)
    shown = client.post(address, {"form.story": "\nfirst line <b>\nsecond", "form.reply": "nobody", "page": number_of(client, address)})
    assert "\n\nfirst line &lt;b&gt;\nsecond</textarea>" in shown.content.decode() and "Write an e-mail address" in text(shown)
    client.post(address, {"form.story": "ok", "form.reply": "a@b.example", "page": number_of(client, address)})
    assert Run.objects.get().input["body"] == {"story": "ok", "reply": "a@b.example"}


def test_what_is_wrong_is_said_and_what_was_typed_stays(client, form):
    answer = client.post(form(), {"form.email": "", "form.seats": "many", "page": "x" * 24})
    shown = text(answer)
    assert answer.status_code == 422 and "Fill this in." in shown and 'value="many"' in shown and "Get a &lt;quote&gt;" in shown
    answer = client.post(form(), {"form.email": "a@b.example", "form.seats": "1e9999999"})
    assert answer.status_code == 422 and "too large" in text(answer), "which not even its absolute value could be told of"
    assert not Run.objects.exists()


def test_a_machine_that_fills_in_everything_starts_nothing(client, form):
    answer = client.post(form(), {"form.email": "a@b.example", "website": "http://spam.example"}, follow=True)
    assert "Thank you" in text(answer) and not Run.objects.exists()


def test_one_address_cannot_flood_it(client, form):
    address = form(per_minute=20)
    states = [client.post(address, {"form.email": "a@b.example"}).status_code for _ in range(3)]
    assert states == [302, 302, 429] and Run.objects.count() == 2
    assert Client(REMOTE_ADDR="192.0.2.7").post(address, {"form.email": "a@b.example"}).status_code == 302


def test_an_answer_that_is_too_large_is_told_so(client, form):
    page = client.post(form(), {"form.email": "x" * 3_000_000})
    assert page.status_code == 413 and "too large" in text(page) and not Run.objects.exists()


def test_it_can_be_for_those_who_are_signed_in(client, form):
    address = form(access="signed_in")
    assert client.get(address).url.startswith(reverse("login")) and client.post(address, {"form.email": "a"}).status_code == 302
    assert not Run.objects.exists()
    ann = factories.user(None, name="ann", email="ann@example.com")
    client.force_login(ann)
    client.post(address, {"form.email": "a@b.example"})
    run = Run.objects.get()
    assert run.started_by == ann and run.input["by"] == "ann@example.com"


def test_a_post_from_elsewhere_and_unknown_forms(form):
    address = form()
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(address, {"form.email": "a@b.example"}).status_code == 403
    for token in ("x", "A" * 32, "%F0%9F%8D%95"):
        assert strict.get(f"/forms/{token}/").status_code == 404
    Trigger.objects.update(enabled=False)
    assert strict.get(address).status_code == 404 and not Run.objects.exists()
