"""Every example flow, run to its end by real workers: with mails, approvals, delays, the built-in model and a server."""

from __future__ import annotations

import socket
from html import unescape

import pytest
from django.urls import reverse

from builder import dataflow
from builder.examples import MADE_AT_START, example, examples, load
from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from runtime import approvals
from runtime.definition import check, find
from runtime.models import OutboxMessage, Recipient, Run, StepResult, Workflow
from runtime.publish import publish
from runtime.starts import start
from tests.builder import factories
from tests.runtime.conftest import crm, crm_server, engine, zygote  # noqa: F401 - fixtures

NAMES = [one.name for one in examples()]
HEADERS = {"headers": {"webhook-id": "evt_1"}, "query": {}, "method": "POST"}
SCHEDULED = {"scheduled_at": "2027-01-04T08:00:00+00:00", "occurrence": "monday@2027-01-04"}
ADA = {"name": "Ada", "email": "ada@example.com", "first_day": "2031-02-03", "laptop": "Linux"}


def test_there_are_eight_and_none_has_a_problem():
    assert len(NAMES) >= 8 and set(MADE_AT_START) < set(NAMES)
    for one in examples():
        found = [*check(one.definition), *dataflow.problems(dataflow.Known(one.definition))]
        assert found == [], one.name
        assert one.about and one.more and one.icons


@pytest.fixture
def run(engine, clock):  # noqa: F811
    """Publish an example, start it with this input, and do what it waits for until it has ended."""

    def run(name: str, input: dict, change=lambda definition: None) -> Run:
        team = ensure_default_team(factories.user(None, is_superuser=True))
        definition = example(name)
        change(definition)
        flow = Workflow.objects.create(team=team, name=definition["name"])
        version = publish(flow, definition)
        started = start(version, trigger_key=definition["triggers"][0]["id"], input=input).run_id
        engine.worker()
        engine.drive(clock, [started], lambda: everybody_approves(started) or engine.state(started) != "open")
        return engine.ends(started)

    return run


def everybody_approves(run_id: int) -> None:
    for recipient in Recipient.objects.filter(approval__run_id=run_id, approval__wait__state="open"):
        approvals.decide(recipient.approval, "approve", recipient=recipient)


def mails() -> dict[str, str]:
    """Recipient -> subject of what the steps sent."""
    return {one.recipient: one.payload["subject"] for one in OutboxMessage.objects.filter(kind="email").order_by("pk")}


def taken(run: Run) -> set[str]:
    return set(StepResult.objects.filter(run_id=run.pk, state="succeeded").values_list("step", flat=True))


def test_a_hot_lead_is_approved_and_a_cold_one_hears_from_us_later(run):
    sample = example("lead_qualification")["triggers"][0]["config"]["sample"]
    done = run("lead_qualification", {"body": sample, **HEADERS})
    assert {"qualify", "approve_outreach", "send_intro", "invite"} <= taken(done)
    assert mails()["priya.raman@halden.example"] and done.title == "Halden Robotics"


@pytest.mark.parametrize(("amount", "step"), [(900, "ask_one"), (5000, "ask_stages")])
def test_an_invoice_is_approved_in_one_stage_or_in_two(run, amount, step):
    body = {"supplier": "Acme", "amount": amount, "purpose": "Paper", "requested_by": "kim@example.com"}
    done = run("invoice_approval", {"body": body})
    assert step in taken(done) and mails()["kim@example.com"] == "Invoice of Acme: approved"


def test_a_new_colleague_is_prepared_for_and_welcomed_on_the_day(run):
    done = run("new_starter", {"body": ADA})
    assert {"order_laptop", "order_desk", "ready", "until_first_day", "welcome"} <= taken(done)
    assert mails()["ada@example.com"] == "Good morning, Ada"


def test_a_ticket_is_read_by_the_built_in_model_and_reaches_its_team(run):
    sample = example("support_triage")["triggers"][0]["config"]["sample"]
    run("support_triage", {"body": sample, **HEADERS})
    assert mails()["support@example.com"] == "[Technical] Cannot sign in"


def test_every_page_is_asked_and_only_the_silent_one_is_told_of(run, crm):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as taken_port:
        silent = f"http://127.0.0.1:{taken_port.getsockname()[1]}/"

    def change(definition: dict) -> None:
        find(definition, "watch")["config"]["values"]["addresses"] = [f"{crm.url}/up", silent]

    done = run("uptime_check", SCHEDULED, change)
    assert mails() == {"ops@example.com": f"{silent} does not answer"}
    assert StepResult.objects.get(run_id=done.pk, step="each_page").output["results"] == [200, 0]


def test_the_weekly_report_reaches_every_address(run):
    run("weekly_report", SCHEDULED)
    assert mails() and all(subject.startswith("Your week") for subject in mails().values())


def test_every_contact_is_enriched_and_the_list_comes_back(run):
    sample = example("data_enrichment")["triggers"][0]["config"]["sample"]
    done = run("data_enrichment", {"body": sample, **HEADERS})
    results = StepResult.objects.get(run_id=done.pk, step="each_contact").output["results"]
    assert [one["trade"] for one in results] == ["industry", "shops", "health"]
    assert results[0]["domain"] == "halden.example" and mails()["sales@example.com"] == "3 contacts, enriched"


def test_an_event_is_passed_on_once_and_told_by_mail_without_an_address(run, crm):  # noqa: F811
    def change(definition: dict) -> None:
        find(definition, "target")["config"]["values"]["address"] = f"{crm.url}/relayed"

    sample = example("webhook_relay")["triggers"][0]["config"]["sample"]
    run("webhook_relay", {"body": sample, **HEADERS}, change)
    [sent] = [one for one in crm.requests() if one["path"] == "/relayed"]
    assert sent["body"] == sample and sent["headers"]["x-relayed-event"] == "evt_1"
    assert sent["headers"]["idempotency-key"] and mails() == {}
    run("webhook_relay", {"body": sample, **HEADERS})
    assert mails() == {"ops@example.com": "An event came: invoice.paid"}


@pytest.mark.django_db
def test_a_new_installation_has_the_first_of_them_and_the_gallery_shows_all(client):
    admin = factories.user(None, is_superuser=True)
    load(ensure_default_team(admin))
    assert Workflow.objects.count() == len(MADE_AT_START)
    client.force_login(admin, "django.contrib.auth.backends.ModelBackend")
    page = unescape(client.get(reverse("examples")).content.decode())
    for one in examples():
        assert one.title in page and one.about in page
    client.post(reverse("flow_new"), {"example": "webhook_relay"})
    made = Workflow.objects.latest("pk")
    assert made.name == "Webhook relay" and made.live_version is None


@pytest.mark.django_db
@pytest.mark.parametrize("name", NAMES)
def test_what_is_exported_is_imported_as_it_was(client, name, tmp_path):
    admin = factories.user(None, is_superuser=True)
    flow = make_flow(ensure_default_team(admin), "", user=admin, definition=example(name))
    client.force_login(admin, "django.contrib.auth.backends.ModelBackend")
    file = tmp_path / "flow.json"
    file.write_bytes(client.get(reverse("flow_export", args=[flow.pk])).content)
    with file.open("rb") as opened:
        client.post(reverse("flow_import"), {"file": opened})
    copy = Workflow.objects.latest("pk")
    assert copy.pk != flow.pk
    assert client.get(reverse("flow_export", args=[copy.pk])).content == file.read_bytes()
