"""Connections: secrets go in and never come out, and never to a host that nobody allowed."""

from __future__ import annotations

import json
import urllib.request

import pytest
from django.test import Client
from django.urls import reverse

from builder.tokens import make_token
from runtime import credentials
from runtime.models import AuditEntry, Credential
from tests.builder import factories
from tests.servers.crm import Crm
from tests.servers.misbehaving import Misbehaving

pytestmark = pytest.mark.django_db

SECRET = "s3cr3t-value-that-must-not-show"
HEADER = {"name": "CRM", "header": "X-API-Key", "value": SECRET, "hosts": "crm.example"}


@pytest.fixture
def administrator(client):
    person = factories.user("admin")
    client.force_login(person)
    return person


@pytest.fixture
def crm() -> Credential:
    row = Credential(team=factories.team(), name="CRM", kind="header", hosts=["crm.example"], config={"header": "X-API-Key"})
    return credentials.seal(row, {"value": SECRET})


def create(client, kind: str = "header", **changed):
    return client.post(f"{reverse('connection_create')}?kind={kind}", HEADER | changed)


def change(client, row: Credential, **changed):
    given = {"header": "X-API-Key", "value": "", "hosts": "crm.example", "base_url": ""} | changed
    return client.post(reverse("connection", args=[row.pk]), given)


def secret_of(row: Credential) -> dict[str, str]:
    row.refresh_from_db()
    return dict(credentials.open_row(row).secret)


@pytest.mark.parametrize("kind", credentials.KINDS)
def test_every_kind_has_a_form(client, administrator, kind):
    fields = credentials.KINDS[kind].fields
    page = client.get(f"{reverse('connection_create')}?kind={kind}").content.decode()
    assert all(f'name="{field.name}"' in page for field in fields)
    special = {"per_minute": "60", "token_url": "https://login.example.com/token"}
    given = {field.name: field.default or special.get(field.name, "value-of-it") for field in fields if field.name != "base_url"}
    base = {"base_url": "https://api.example.com/v1"} if any(field.name == "base_url" for field in fields) else {}
    answer = client.post(f"{reverse('connection_create')}?kind={kind}", {"name": f"C {kind}", "hosts": "", **given, **base})
    assert answer.status_code == 302
    row = Credential.objects.get(kind=kind)
    assert set(secret_of(row)) == {field.name for field in fields if field.secret}
    assert credentials.bound_hosts(row.hosts, row.config) == (("api.example.com",) if base else ())


def test_a_secret_is_stored_sealed_and_shown_nowhere(client, administrator):
    assert create(client).status_code == 302
    row = Credential.objects.get()
    assert SECRET.encode() not in bytes(row.secret) and secret_of(row) == {"value": SECRET}
    for url in (reverse("connections"), reverse("connection", args=[row.pk])):
        assert SECRET not in client.get(url).content.decode()
    assert SECRET not in str(list(AuditEntry.objects.values_list("detail", flat=True)))


def test_a_wrong_form_does_not_send_the_secret_back(client, administrator):
    answer = create(client, hosts="")
    assert answer.status_code == 422 and SECRET not in answer.content.decode()
    assert "Name the hosts" in answer.content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("name", " " * 3), ("hosts", "https://crm.example"), ("hosts", "crm.example/path"), ("hosts", "a b$"),
     ("base_url", "ftp://x"), ("base_url", "https://user:pw@crm.example"), ("header", "X Y"), ("header", "X\r\nHost: evil"),
     ("value", "a\nb"), ("value", "")],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_words(client, administrator, field, value):
    answer = create(client, **{field: value})
    assert answer.status_code == 422 and 'aria-invalid="true"' in answer.content.decode()
    assert not Credential.objects.exists()


def test_a_name_is_taken_once_per_team(client, administrator, crm):
    assert create(client).status_code == 422
    other = factories.team("Finance")
    factories.Membership.objects.create(user=administrator, team=other, role="admin")
    assert create(client, team=other.pk).status_code == 302
    assert create(client, name="Other").status_code == 422  # two teams: one has to be chosen


def test_an_empty_secret_field_keeps_the_secret(client, administrator, crm):
    assert change(client, crm, header="X-Token").status_code == 302
    assert secret_of(crm) == {"value": SECRET} and crm.config == {"header": "X-Token"}
    assert change(client, crm, value="new-secret").status_code == 302
    assert secret_of(crm) == {"value": "new-secret"}


@pytest.mark.parametrize("changed", [{"hosts": "crm.example\nevil.example"}, {"base_url": "https://evil.example"}, {"hosts": "*.example"}])
def test_a_kept_secret_is_not_sent_anywhere_new(client, administrator, crm, changed):
    answer = change(client, crm, **changed)
    assert answer.status_code == 422 and "Enter it again" in answer.content.decode()
    crm.refresh_from_db()
    assert crm.hosts == ["crm.example"] and "base_url" not in crm.config
    assert change(client, crm, value="entered again", **changed).status_code == 302


def test_a_kept_secret_fetches_no_token_elsewhere(client, administrator):
    row = Credential(team=factories.team(), name="SSO", kind="oauth2", hosts=["api.example"])
    row.config = {"token_url": "https://login.example/token", "client_id": "us"}
    credentials.seal(row, {"client_secret": SECRET})
    given = {"token_url": "https://evil.example/token", "client_id": "us", "client_secret": "", "hosts": "api.example"}
    answer = client.post(reverse("connection", args=[row.pk]), given)
    assert answer.status_code == 422 and "Enter it again: it would be sent to evil.example" in answer.content.decode()
    row.refresh_from_db()
    assert row.config["token_url"] == "https://login.example/token"
    assert client.post(reverse("connection", args=[row.pk]), given | {"token_url": "https://login.example/v2/token"}).status_code == 302


def pressed(client, row: Credential) -> str:
    """What the test button has said."""
    page = client.post(reverse("connection_test", args=[row.pk]), follow=True)
    return " ".join(str(message) for message in page.context["messages"])


def seen(server: Misbehaving) -> str:
    """All that it was asked."""
    with urllib.request.urlopen(f"{server.url}/seen") as answer:
        return answer.read().decode()


@pytest.fixture
def here(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]


def test_the_button_says_whether_it_is_let_in(client, administrator, here, tmp_path):
    with Crm(ledger=tmp_path / "crm.db") as server:
        row = Credential(team=factories.team(), name="CRM", kind="bearer", config={"base_url": server.url})
        credentials.seal(row, {"token": SECRET})
        server.control(require=f"Bearer {SECRET}")
        assert pressed(client, row) == "127.0.0.1 answered 200: the connection works."
        server.control(require="Bearer another")
        assert pressed(client, row) == "127.0.0.1 answered 401: it does not let this connection in."
        server.control(require="", refuse=404)
        assert "does not tell whether" in pressed(client, row)
        assert {entry.detail["name"] for entry in AuditEntry.objects.filter(action="test_connection")} == {"CRM"}
        assert all(call["headers"]["authorization"] == f"Bearer {SECRET}" for call in server.requests())
    assert pressed(client, row) == "No connection: connection refused.", "nobody is there any more"


def test_the_button_sends_the_secret_nowhere_else(client, administrator, here, settings):
    """Neither along a redirect nor into a private place, and what comes back is not shown."""
    with Misbehaving() as first, Misbehaving() as second:
        row = Credential(team=factories.team(), name="CRM", kind="bearer", config={"base_url": f"{first.url}/redirect?to={second.url}/echo"})
        credentials.seal(row, {"token": SECRET})
        assert "answered 200" in pressed(client, row)
        assert SECRET not in seen(second)
        row.config = {"base_url": f"{first.url}/echo"}
        row.save()
        page = client.post(reverse("connection_test", args=[row.pk]), follow=True).content.decode()
        assert SECRET not in page and SECRET in seen(first)
        settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = []
        assert "over https only" in pressed(client, row)
        row.config = {"base_url": first.url.replace("http:", "https:")}
        row.save()
        assert "not a public address" in pressed(client, row)


def test_the_button_is_the_administrators_and_not_pressed_without_end(client, crm):
    client.force_login(factories.user("operator"))
    assert client.post(reverse("connection_test", args=[crm.pk])).status_code == 403
    client.force_login(factories.user("admin", of=factories.team("Theirs")))
    assert client.post(reverse("connection_test", args=[crm.pk])).status_code == 404
    client.force_login(factories.user("admin"))
    crm.secret = b"broken"
    crm.save()
    said = [pressed(client, crm) for _ in range(11)]
    assert "cannot be read" in said[0] and "Wait a minute" in said[-1]


def test_one_that_a_flow_names_stays(client, administrator, crm):
    call = {"id": "call", "type": "http", "config": {"url": "https://crm.example/", "connection": "CRM"}}
    definition = {"format": 1, "name": "Uses it", "steps": [{"id": "all", "type": "loop", "config": {"items": "[1]"}, "steps": [call]}]}
    version = factories.version(definition)
    page = client.get(reverse("connection", args=[crm.pk])).content.decode()
    assert "Uses it" in page and "Delete" not in page
    client.post(reverse("connection_delete", args=[crm.pk]))
    assert Credential.objects.exists()

    version.workflow.live_version = None
    version.workflow.save()
    run = factories.run(version)
    client.post(reverse("connection_delete", args=[crm.pk]))
    assert Credential.objects.exists()  # a run still needs it
    factories.Dispatch.objects.filter(pk=run.pk).delete()
    client.post(reverse("connection_delete", args=[crm.pk]))
    assert not Credential.objects.exists()


def test_an_export_holds_names_and_no_secret(client, administrator, crm):
    call = {"id": "call", "type": "http", "config": {"url": "https://crm.example/", "connection": "CRM"}}
    definition = {"format": 1, "name": "Uses it", "steps": [call]}
    flow = factories.version(definition).workflow
    token = {"Authorization": f"Bearer {make_token(administrator, 'test')[1]}"}
    pages = [reverse("flow_export", args=[flow.pk]), reverse("flow_export", args=[flow.pk]) + "?version=7"]
    program = [f"/api/v1/workflows/{flow.pk}/export", f"/api/v1/workflows/{flow.pk}/export?version=draft"]
    for text in [client.get(one).content.decode() for one in pages] + [Client().get(one, headers=token).content.decode() for one in program]:
        assert json.loads(text) == definition and SECRET not in text


def test_a_webhooks_signing_secret_is_used_too(client, administrator):
    row = credentials.seal(Credential(team=factories.team(), name="Hooks", kind="signing"), {"secret": SECRET})
    webhook = {"id": "lead", "type": "webhook", "config": {"signature": {"kind": "github", "connection": "Hooks"}}}
    factories.version({"format": 1, "name": "Signed", "triggers": [webhook], "steps": []})
    client.post(reverse("connection_delete", args=[row.pk]))
    assert Credential.objects.exists()


def test_a_connection_of_the_same_name_in_another_team_is_not_used_by_it(client, administrator, crm):
    call = {"id": "call", "type": "http", "config": {"url": "https://crm.example/", "connection": "CRM"}}
    factories.version({"format": 1, "name": "Elsewhere", "steps": [call]}, of=factories.team("Finance"))
    client.post(reverse("connection_delete", args=[crm.pk]))
    assert not Credential.objects.exists()


def test_builders_see_administrators_change_viewers_neither(client, crm):
    page = reverse("connection", args=[crm.pk])
    client.force_login(factories.user("builder"))
    assert "crm.example" in client.get(page).content.decode()
    assert change(client, crm, value="x").status_code == 403
    assert client.get(f"{reverse('connection_create')}?kind=bearer").status_code == 403
    assert client.post(reverse("connection_delete", args=[crm.pk])).status_code == 403
    client.force_login(factories.user("viewer"))
    assert client.get(page).status_code == 403
    client.force_login(factories.user("admin", of=factories.team("Finance")))
    assert client.get(page).status_code == 404


def test_who_only_looks_at_a_flow_learns_of_no_connections_but_those_that_it_names(client, crm):
    credentials.seal(Credential(team=factories.team(), name="Payroll box", kind="header", hosts=["pay.example"], config={"header": "X"}), {"value": SECRET})
    call = {"id": "call", "type": "http", "config": {"url": "https://crm.example/", "connection": "CRM"}}
    signed = {"id": "lead", "type": "webhook", "config": {"signature": {"kind": "header", "connection": "CRM"}}}
    flow = factories.version({"format": 1, "name": "Uses it", "triggers": [signed], "steps": [call]}).workflow
    for role, sees in (("builder", True), ("viewer", False)):
        client.force_login(factories.user(role))
        for where in ({"step": "call"}, {"step": "call", "tab": "safety"}, {"step": "lead"}):
            page = client.get(reverse("flow_panel", args=[flow.pk]), where).content.decode()
            assert ("Payroll box" in page) == sees and ">CRM</option>" in page, (role, where)
        field = client.get(reverse("flow_field", args=[flow.pk]), {"owner": "call", "field": "config.connection"}).content.decode()
        assert ("Payroll box" in field) == sees and "CRM" in field
