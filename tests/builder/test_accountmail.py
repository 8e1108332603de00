"""People are told by mail when how they sign in has changed, whoever did it."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from builder.tokens import make_token
from runtime import outbox
from runtime.mailer import Letter, compose
from runtime.models import AuditEntry, OutboxMessage
from tests.builder import factories
from tests.builder.test_openid import provider, server, signed_in  # noqa: F401 - two are fixtures
from tests.builder.test_signin import person, secret, with_password  # noqa: F401 - two are fixtures
from tests.servers.openid import EMAIL

pytestmark = pytest.mark.django_db
NEW = {"old_password": "pw", "new_password1": "quite-another-9", "new_password2": "quite-another-9"}


def told(**narrowed: str) -> list[tuple[str, str, str]]:
    """(address, subject, text) of each mail, oldest first."""
    rows = OutboxMessage.objects.filter(run_id=None, **narrowed).order_by("pk")
    return [(row.recipient, row.payload["subject"], row.payload["text"]) for row in rows]


def last() -> tuple[str, str, str]:
    return told()[-1]


@pytest.fixture
def client(person) -> Client:  # noqa: F811
    made = Client(HTTP_USER_AGENT="Browser 7.0", REMOTE_ADDR="192.0.2.7")
    with_password(made)
    return made


@pytest.fixture
def root() -> Client:
    made = Client(REMOTE_ADDR="192.0.2.8")
    made.force_login(factories.user(None, name="root", is_staff=True, is_superuser=True), "django.contrib.auth.backends.ModelBackend")
    session = made.session
    session["proved_at"] = 1e12
    session.save()
    return made


def test_a_new_password_tells_when_where_and_what_to_do(client):
    client.post(reverse("password_change"), NEW)
    [(address, subject, text)] = told()
    assert address == "dana@example.com" and subject == "Your Holdfast account: the password was changed"
    for part in ("Account: dana", "From: 192.0.2.7", "Browser: Browser 7.0", "UTC", "revoke the API tokens", "/account/"):
        assert part in text
    assert "By:" not in text and "quite-another" not in text


def test_a_wrong_one_tells_nothing(client):
    client.post(reverse("password_change"), NEW | {"old_password": "wrong"})
    assert told() == []


def test_who_had_it_done_to_them_is_told_by_whom(client, root, person):  # noqa: F811
    values = {"password1": "quite-another-9", "password2": "quite-another-9", "usable_password": "true"}
    root.post(reverse("admin:auth_user_password_change", args=[person.pk]), values)
    address, subject, text = last()
    assert address == "dana@example.com" and "password" in subject and "By: root" in text and "From: 192.0.2.8" in text


def test_the_former_address_hears_of_the_new_one(root, person):  # noqa: F811
    page = reverse("admin:auth_user_change", args=[person.pk])
    given = {"username": "dana", "email": "evil@example.com", "is_active": "on", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    assert root.post(page, given).status_code == 302
    assert [address for address, _, _ in told()] == ["dana@example.com", "evil@example.com"]
    assert all(subject.endswith("the e-mail address was changed") for _, subject, _ in told())
    entry = AuditEntry.objects.get(action="change_email")
    assert entry.detail == {"from": "dana@example.com", "to": "evil@example.com"}
    root.post(page, given | {"first_name": "Dana"})
    assert len(told()) == 2


def test_the_second_factor_is_told_when_it_comes_changes_and_goes(person, client, django_capture_on_commit_callbacks, request):  # noqa: F811
    with django_capture_on_commit_callbacks(execute=True):
        request.getfixturevalue("secret")
    assert [subject for _, subject, _ in told()] == ["Your Holdfast account: an authenticator app was set up"]
    client.post(reverse("account_reauthenticate"), {"password": "pw"})
    with django_capture_on_commit_callbacks(execute=True):
        client.post(reverse("mfa_generate_recovery_codes"))
    assert last()[1].endswith("new recovery codes were made")
    with django_capture_on_commit_callbacks(execute=True):
        client.post(reverse("mfa_deactivate_totp"))
    assert last()[1].endswith("the authenticator app was removed") and len(told()) == 3
    assert list(AuditEntry.objects.filter(actor=person).order_by("pk").values_list("action", flat=True)) == [
        "second_factor_added", "new_recovery_codes", "second_factor_removed",
    ]  # fmt: skip


def test_what_is_done_on_the_command_line_is_told_too(person, secret, monkeypatch):  # noqa: F811
    OutboxMessage.objects.all().delete()
    call_command("secondfactor", "dana", stdout=StringIO())
    monkeypatch.setattr("getpass.getpass", lambda prompt: "quite-another-9")
    call_command("changepassword", "dana", stdout=StringIO())
    call_command("apitoken", "dana", stdout=StringIO())
    assert [subject.rpartition(": ")[2] for _, subject, _ in told()] == [
        "the authenticator app was removed", "the password was changed", "the API token “command line” was made",
    ]  # fmt: skip
    assert all("From: the command line" in text for _, _, text in told())


def test_a_token_is_told_by_its_name_and_not_by_itself(client):
    page = client.post(reverse("account_tokens"), {"name": "My script", "scope": "all", "days": "30"})
    _, subject, text = last()
    assert "“My script”" in subject
    assert "hf_" in page.content.decode() and "hf_" not in text


def test_a_name_with_a_line_break_keeps_no_mail_from_being_sent(person):  # noqa: F811
    make_token(person, "a\r\nBcc: evil@example.com\n\nIf this was you, open https://evil.example")
    row = OutboxMessage.objects.get()
    message = compose(Letter(row.pk, None, "", 1, "email", row.recipient, row.message_id, row.payload))
    assert message["Bcc"] is None and "\nBcc" not in row.payload["text"]
    assert outbox.preview(row.pk).subject == row.payload["subject"]


def test_a_sign_in_elsewhere_that_lets_in_from_now_on_is_told(provider):  # noqa: F811
    factories.user("admin", name="ines", email=EMAIL)
    signed_in(Client())
    assert "lets into it from now on" in last()[1]


def test_who_has_no_address_is_told_nothing():
    make_token(factories.user("viewer", email=""), "script")
    assert told() == []
