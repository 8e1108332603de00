"""The hosted page of a form trigger: what it takes, what it refuses, and that sent twice is started once."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from runtime.acts import rerun
from runtime.models import Run, StepFile, Trigger, Workflow
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


OFFER = [*FIELDS[:1], {"id": "offer", "label": "Your offer", "type": "file", "required": True}]
PDF = b"%PDF-1.7\x00\xff" + bytes(range(256)) * 2000


def pdf(name: str = "offer.pdf", content: bytes = PDF, kind: str = "application/pdf") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content, kind)


def test_a_file_goes_along_with_the_run_once_however_often_it_is_sent(client, form):
    address = form(fields=OFFER)
    page = client.get(address)
    assert 'enctype="multipart/form-data"' in text(page) and 'type="file"' in text(page) and "At most 5.0 MB." in text(page)
    for _ in range(2):
        client.post(address, {"form.email": "a@b.example", "form.offer": pdf(), "page": "one-and-the-same-page"})
    run, kept = Run.objects.get(), StepFile.objects.get()
    about = {"filename": "offer.pdf", "type": "application/pdf", "size": len(PDF), "file": kept.key}
    assert run.input["body"] == {"email": "a@b.example", "offer": about}
    assert (kept.run_id, kept.path, bytes(kept.content)) == (run.pk, "trigger:offer", PDF)


def test_a_file_is_downloaded_by_those_who_may_read_the_run_and_by_nobody_else(client, form):
    client.post(form(fields=OFFER), {"form.email": "a@b.example", "form.offer": pdf("../../re\u202eport\x07.pdf", kind="Text/<b>")})
    run = Run.objects.get()
    assert run.input["body"]["offer"] | {"file": ""} == {"filename": "report.pdf", "type": "application/octet-stream", "size": len(PDF), "file": ""}
    address, asked = reverse("run_file", args=[run.pk]), {"step": "trigger:offer"}
    client.force_login(factories.user("viewer", of=factories.team("Others")))
    assert client.get(address, asked).status_code == 404
    client.force_login(factories.user("viewer"))
    assert f'href="{address}?step=trigger%3Aoffer&amp;take=1"' in text(client.get(reverse("run", args=[run.pk])))
    answer = client.get(address, asked)
    assert b"".join(answer.streaming_content) == PDF and answer["Content-Disposition"] == 'attachment; filename="report.pdf"'
    assert client.get(address, {"step": "trigger:email"}).status_code == 404


def test_an_input_that_names_thousands_of_files_costs_no_more_to_look_at(client, django_assert_max_num_queries):
    """Anybody may send such a one who has the address of a webhook."""
    run = factories.run(factories.version(), input={"body": {f"f{n}": {"file": "x", "filename": "a\r\nb"} for n in range(20_000)}})
    StepFile.objects.create(run_id=run.pk, path="trigger:f7", take=1, key="x", content=PDF)
    client.force_login(factories.user("viewer"))
    with django_assert_max_num_queries(60):
        page = text(client.get(reverse("run", args=[run.pk]), {"step": ""}))
    assert page.count("step=trigger%3Af") == 1
    assert client.get(reverse("run_file", args=[run.pk]), {"step": "trigger:f7"})["Content-Disposition"] == 'attachment; filename="ab"'


def test_a_body_may_be_as_large_as_the_files_that_the_form_asks_for(client, form):
    address = form(fields=OFFER)
    given = {"form.email": "a@b.example", "form.offer": pdf(content=b"x" * (5 << 20))}
    assert client.post(address, given).status_code == 302 and Run.objects.get().input["body"]["offer"]["size"] == 5 << 20
    assert client.post(address, {"form.email": "a@b.example", "form.offer": pdf(content=b"x" * (8 << 20))}).status_code == 413
    Trigger.objects.update(enabled=False)
    assert client.post(address, {"form.email": "a@b.example", "form.offer": pdf(content=b"x" * (3 << 20))}).status_code == 413


@pytest.mark.parametrize(("sent", "words"), [
    ({"form.offer": pdf(content=b"x" * (2 << 20))}, "At most 1.0 MB; this file has 2.0 MB."),
    ({"form.offer": pdf(content=b"")}, "This file is empty."),
    ({"form.offer": "a text in its place"}, "Choose a file."),
    ({}, "Choose a file."),
])  # fmt: skip
def test_a_file_that_is_not_taken_is_told_so_and_nothing_is_kept(client, form, sent, words):
    page = client.post(form(fields=OFFER, largest_mib=1), {"form.email": "a@b.example", **sent})
    assert page.status_code == 422 and words in text(page) and 'value="a@b.example"' in text(page)
    assert not Run.objects.exists() and not StepFile.objects.exists()


def test_what_is_wrong_beside_a_file_asks_for_the_file_once_more(client, form):
    page = client.post(form(fields=OFFER), {"form.email": "", "form.offer": pdf()})
    assert page.status_code == 422 and "Choose it once more" in text(page) and not StepFile.objects.exists()


def test_a_run_that_is_started_again_has_the_files_too(client, form):
    client.post(form(fields=OFFER), {"form.email": "a@b.example", "form.offer": pdf()})
    again = Run.objects.get(pk=rerun(Run.objects.get()))
    assert bytes(StepFile.objects.get(run_id=again.pk).content) == PDF
    assert StepFile.objects.get(run_id=again.pk).key == again.input["body"]["offer"]["file"]


def test_a_test_run_takes_a_file_or_the_one_of_a_run_before(client, form):
    address = form(fields=OFFER)
    flow = Workflow.objects.get()
    client.force_login(factories.user("builder"))
    client.get(reverse("flow", args=[flow.pk]))
    there = reverse("flow_test_run", args=[flow.pk])
    assert 'hx-encoding="multipart/form-data"' in text(client.get(there))
    assert client.post(there, {"trigger": "ask", "email": "a@b.example"}).status_code == 422
    assert client.post(there, {"trigger": "ask", "email": "a@b.example", "offer": pdf()}).status_code == 200
    first = Run.objects.get()
    assert "offer.pdf, as in run" in text(client.get(there, {"replay": first.pk}))
    client.post(there, {"trigger": "ask", "email": "c@d.example", "replay": first.pk})
    second = Run.objects.exclude(pk=first.pk).get()
    assert [bytes(one.content) for one in StepFile.objects.filter(run_id=second.pk)] == [PDF] and address
    assert second.input["body"]["offer"] == first.input["body"]["offer"]


def test_it_can_be_for_those_who_are_signed_in(client, form, settings):
    address = form(access="signed_in")
    assert client.get(address).url.startswith(reverse("login")) and client.post(address, {"form.email": "a"}).status_code == 302
    assert not Run.objects.exists()
    ann = factories.user(None, name="ann", email="ann@example.com")
    client.force_login(ann)
    client.post(address, {"form.email": "a@b.example"})
    run = Run.objects.get()
    assert run.started_by == ann and run.input["by"] == "ann@example.com"
    settings.HOLDFAST_REQUIRE_SECOND_FACTOR = True
    for answer in (client.get(address), client.post(address, {"form.email": "a@b.example"})):
        assert answer.url == reverse("mfa_index"), "as to every other page"
    assert Run.objects.count() == 1


def test_a_post_from_elsewhere_and_unknown_forms(form):
    address = form()
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(address, {"form.email": "a@b.example"}).status_code == 403
    for token in ("x", "A" * 32, "%F0%9F%8D%95"):
        assert strict.get(f"/forms/{token}/").status_code == 404
    Trigger.objects.update(enabled=False)
    assert strict.get(address).status_code == 404 and not Run.objects.exists()
