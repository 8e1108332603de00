"""Alert rules: told when it begins, again after the quiet time, and when it is over; once, whoever looks."""

from __future__ import annotations

from datetime import timedelta

import pytest
import standardwebhooks
from django.urls import reverse
from django.utils import timezone

from runtime import alerts, notices, outbox
from runtime.mail_addresses import check_line
from runtime.models import Alert, AuditEntry, Dispatch, OutboxMessage, Run, Worker
from runtime.states import AlertKind
from runtime.triggers import signatures
from tests.builder import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_connection(monkeypatch):
    monkeypatch.setattr(alerts, "close_old_connections", lambda: None)
    monkeypatch.setattr(alerts.connections, "close_all", lambda: None)


def rule(kind: str, threshold: float, **more) -> Alert:
    return Alert.objects.create(kind=kind, threshold=threshold, address="ops@example.com", **more)


def subjects() -> list[str]:
    return [mail.payload["subject"] for mail in OutboxMessage.objects.filter(recipient="ops@example.com").order_by("pk")]


def later(**how_far) -> None:
    """The rules were looked at that long ago."""
    for alert in Alert.objects.all():
        for name in ("looked_at", "told_at", "firing_since"):
            if moment := getattr(alert, name):
                setattr(alert, name, moment - timedelta(**how_far))
        alert.save()


def test_told_at_the_beginning_after_the_quiet_time_and_at_the_end():
    alert = rule("silent", 1, quiet_minutes=60)
    assert alerts.look() == 1 and alerts.look() == 0
    later(minutes=30)
    assert alerts.look() == 0, "quiet"
    later(minutes=31)
    assert alerts.look() == 1
    factories.worker()
    later(minutes=1)
    assert alerts.look() == 1
    later(minutes=1)
    assert alerts.look() == 0
    assert [subject.partition(":")[0] for subject in subjects()] == ["Alert", "Still so", "Resolved"]
    Worker.objects.all().delete()
    later(minutes=1)
    assert alerts.look() == 1, "it is new"
    alert.refresh_from_db()
    assert alert.firing_since and alert.value == 0


def test_every_rule_sees_what_it_is_about(monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))
    version, other = factories.version(), factories.version(of=factories.team("Finance"))
    for kind in AlertKind:
        assert alerts.value_of(Alert(kind=kind, threshold=0)) == 0, kind
    run = factories.run(version, dispatch="claimed", cost="2.5")
    factories.run(version, state="failed", ended=60)
    factories.run(version, state="attention")
    factories.run(version, dispatch="ready")
    factories.wait(run, "x", "timer", 0, due=600)
    factories.mail(run, created_at=timezone.now() - timedelta(minutes=7))
    factories.worker()
    expected = {"oldest": 30, "failed": 1, "stuck": 2, "overdue": 20, "silent": 1, "outbox": 7, "cost": 2.5}
    assert {kind: round(alerts.value_of(Alert(kind=kind, threshold=0)), 1) for kind in expected} == pytest.approx(expected, abs=0.2)
    ours = {kind: alerts.value_of(Alert(kind=kind, threshold=0, team=version.workflow.team)) for kind in expected}
    assert round(ours["oldest"]) == 30 and ours["failed"] == 1
    for kind in ("oldest", "failed", "stuck", "overdue", "cost"):
        assert alerts.value_of(Alert(kind=kind, threshold=0, team=other.workflow.team)) == 0, kind


def test_a_rate_is_one_of_ten_runs_at_least(monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))
    version, other = factories.version(), factories.version(of=factories.team("Finance"))
    rate = lambda **where: alerts.value_of(Alert(kind="rate", threshold=0, **where))  # noqa: E731
    for _ in range(3):
        factories.run(version, state="failed", ended=60)
    for _ in range(6):
        factories.run(version, state="succeeded", ended=60)
    factories.run(version, state="cancelled", ended=60)
    factories.run(version, state="failed", ended=60, test=True)
    factories.run(version)
    assert rate() == 0, "nine have ended"
    factories.run(version, state="failed", ended=60)
    assert rate() == rate(team=version.workflow.team) == rate(workflow=version.workflow) == 40
    factories.run(other, state="failed", ended=60)
    assert rate(team=other.workflow.team) == 0
    rule("rate", 20)
    assert alerts.look() == 1
    assert "45 percent" in OutboxMessage.objects.get(recipient="ops@example.com").payload["text"]


def test_rules_are_made_and_removed_by_operators(client):
    person = factories.user("operator")
    client.force_login(person)
    form = {"kind": "failed", "threshold": "3", "team": factories.team().pk, "address": "ops@example.com", "quiet_minutes": "30"}
    assert client.post(reverse("alerts"), form).status_code == 302
    alert = Alert.objects.get()
    assert (alert.threshold, alert.team, alert.created_by) == (3, factories.team(), person)
    assert "Runs that failed in the last hour" in client.get(reverse("alerts")).content.decode()
    for wrong in ({"kind": "silent"}, {"threshold": "-1"}, {"address": "nobody"}, {"team": ""}, {"team": factories.team("Finance").pk}):
        assert client.post(reverse("alerts"), form | wrong).status_code == 422, wrong
    client.force_login(factories.user("operator", of=factories.team("Finance")))
    assert client.post(reverse("alert_delete", args=[alert.pk])).status_code == 404
    client.force_login(person)
    client.post(reverse("alert_delete", args=[alert.pk]))
    assert not Alert.objects.exists() and set(AuditEntry.objects.values_list("action", flat=True)) == {"alert_add", "alert_remove"}


def test_workers_and_mails_are_the_installations_affair(client):
    client.force_login(factories.user(None, is_superuser=True))
    client.post(reverse("alerts"), {"kind": "silent", "threshold": "1", "team": factories.team().pk, "address": "a@example.com", "quiet_minutes": "5"})
    assert Alert.objects.get().team is None
    assert Run.objects.count() == 0


def test_test_runs_and_runs_of_other_flows_do_not_count(monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))
    version = factories.version()
    run = factories.run(version, dispatch="claimed", cost="2.5", test=True)
    factories.run(version, state="failed", ended=60, test=True)
    factories.run(version, state="attention", test=True)
    factories.run(version, dispatch="ready", test=True)
    factories.wait(run, "x", "timer", 0, due=600)
    for kind in ("oldest", "failed", "stuck", "overdue", "cost"):
        assert alerts.value_of(Alert(kind=kind, threshold=0)) == 0, kind
    queued = factories.run(version, dispatch="ready")
    Dispatch.objects.filter(run=queued).update(queued=True, slot_of=version.workflow_id)
    for kind in ("oldest", "stuck"):
        assert alerts.value_of(Alert(kind=kind, threshold=0)) == 0, f"{kind}: who queues for a slot is neither"
    factories.run(version, state="failed", ended=60)
    other = factories.version()
    assert alerts.value_of(Alert(kind="failed", threshold=0, workflow=version.workflow)) == 1
    assert alerts.value_of(Alert(kind="failed", threshold=0, workflow=other.workflow)) == 0


def test_a_webhook_is_told_as_well_and_signed_for_this_team_alone():
    rule("silent", 1, url="https://hooks.example/in")
    assert alerts.look() == 2
    mail, hook = OutboxMessage.objects.order_by("pk")
    assert (mail.kind, hook.kind, hook.recipient) == ("email", "webhook", "https://hooks.example/in")
    event = hook.payload["event"]
    assert event["type"] == "alert.begun" and event["data"]["rule"] == "silent" and "fewer" in event["text"]
    call = notices.call(hook.recipient, hook.message_id, hook.payload)
    headers = {name.lower(): value for name, value in call.headers.items()}
    [secret] = notices.secrets_for("alerts of team 0", hook.recipient)
    signatures.verify("standard", [secret], headers, call.body, timezone.now())
    standardwebhooks.Webhook(secret).verify(call.body, headers)
    with pytest.raises(signatures.NotSigned):
        others = notices.secrets_for("alerts of team 1", hook.recipient)
        signatures.verify("standard", others, headers, call.body, timezone.now())


def test_a_flow_s_name_breaks_no_mail():
    """Else whoever names a flow could keep its failures from being told."""
    version = factories.version()
    version.workflow.name = "Leads\r\nBcc: evil@example.com\u2028x\x07"
    version.workflow.save()
    run = factories.run(version, state="failed")
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now())
    rule("failed", 0, team=version.workflow.team, workflow=version.workflow)
    assert alerts.look() == 1
    subject = outbox.preview(OutboxMessage.objects.get().pk).subject
    assert check_line(subject, "subject") and "Leads  Bcc: evil" in subject


def test_a_rule_tells_somebody_by_mail_or_by_webhook(client):
    client.force_login(factories.user("operator"))
    form = {"kind": "failed", "threshold": "3", "team": factories.team().pk, "quiet_minutes": "30"}
    for wrong in ({}, {"url": "ftp://hooks.example"}, {"url": "hooks.example"}):
        assert client.post(reverse("alerts"), form | wrong).status_code == 422, wrong
    assert client.post(reverse("alerts"), form | {"url": "https://hooks.example/in"}).status_code == 302
    page = client.get(reverse("alerts")).content.decode()
    assert "https://hooks.example/in" in page and "whsec_" in page


def test_failed_runs_of_a_flow_are_told_as_its_settings_say(client, monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=30))
    version = factories.version()
    client.force_login(factories.user("builder"))
    address = reverse("flow_failures", args=[version.workflow_id])
    assert client.post(address, {"address": "ops@example.com"}).status_code == 403
    client.force_login(factories.user("operator"))
    assert "Write one address" in client.post(address, {"address": "ops"}).content.decode()
    assert "Saved." in client.post(address, {"address": "ops@example.com"}).content.decode()
    panel = client.get(reverse("flow_panel", args=[version.workflow_id]), {"settings": ""})
    assert "ops@example.com" in panel.content.decode()
    assert alerts.look() == 0
    failed = factories.run(version, state="failed", ended=60, title="Halden", error={"message": "503 from the CRM"})
    later(minutes=1)
    assert alerts.look() == 1
    [mail] = OutboxMessage.objects.all()
    assert "Halden: 503 from the CRM" in mail.payload["text"] and f"/runs/{failed.pk}/" in mail.payload["text"]
    assert version.workflow.name in mail.payload["subject"]
    client.post(address, {"address": ""})
    assert not Alert.objects.exists()
