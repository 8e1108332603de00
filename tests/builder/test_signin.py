"""Signing in with a password and a code; what an authenticator leaves in the database; sessions elsewhere."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import struct
import time
from io import StringIO

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from runtime.models import AuditEntry, OutboxMessage, RateLimit
from tests.builder import factories

pytestmark = pytest.mark.django_db


def code_of(secret: str, at: float | None = None) -> str:
    """RFC 6238 with SHA-1, six digits and thirty seconds, as authenticator apps reckon it."""
    counter = struct.pack(">Q", int((time.time() if at is None else at) // 30))
    digest = hmac.new(base64.b32decode(secret), counter, hashlib.sha1).digest()
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start : start + 4])[0] & 0x7FFFFFFF) % 10**6:06}"


def test_the_reference_values_of_the_rfc():
    secret = base64.b32encode(b"12345678901234567890").decode()
    assert [code_of(secret, at) for at in (59, 1111111109, 20000000000)] == ["287082", "081804", "353130"]


@pytest.fixture
def person():
    return factories.user("operator", name="dana")


def with_password(client: Client, password: str = "pw", **more):
    return client.post(reverse("login"), {"username": "dana", "password": password, **more})


def forgotten() -> None:
    """As if the minute were over in which a code counts once."""
    cache.clear()
    RateLimit.objects.all().delete()


def is_in(client: Client) -> bool:
    return client.get(reverse("account")).status_code == 200


@pytest.fixture
def secret(person) -> str:
    """Sets up an authenticator by the pages, and gives its key."""
    client = Client()
    with_password(client)
    assert client.get(reverse("mfa_activate_totp"))["Location"].startswith(reverse("account_reauthenticate"))
    confirmed = {"password": "pw", "next": reverse("mfa_activate_totp")}
    page = client.post(reverse("account_reauthenticate"), confirmed, follow=True)
    key = re.search(r'id="totp-secret">([A-Z2-7]+)<', page.content.decode())[1]
    assert "data:image/svg+xml;base64," in page.content.decode()
    wrong = client.post(reverse("mfa_activate_totp"), {"code": "000000"})
    assert "Incorrect code" in wrong.content.decode()
    done = client.post(reverse("mfa_activate_totp"), {"code": code_of(key)})
    assert done["Location"] == reverse("mfa_view_recovery_codes")
    return key


def recovery_codes() -> list[str]:
    return Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()


def test_without_an_authenticator_the_password_is_enough(person):
    client = Client()
    response = with_password(client, next="/runs/")
    assert (response.status_code, response["Location"]) == (302, "/runs/")
    assert is_in(client)


def test_one_password_is_not_tried_with_every_name(person, monkeypatch):
    monkeypatch.setattr("builder.signin.SIGN_INS_PER_MINUTE", 3)
    page = reverse("login")
    codes = [Client().post(page, {"username": f"name{n}", "password": "Winter2026"}).status_code for n in range(3)]
    client = Client()
    late = with_password(client)
    assert codes == [200, 200, 200] and late.status_code == 429 and int(late["Retry-After"]) > 0
    assert "Too many attempts" in late.content.decode() and not is_in(client)
    elsewhere = Client(REMOTE_ADDR="192.0.2.9")
    with_password(elsewhere)
    assert is_in(elsewhere)


def test_with_one_nobody_is_in_before_the_code(person, secret):
    client = Client()
    assert with_password(client)["Location"] == reverse("mfa_authenticate")
    assert not is_in(client)
    assert "Incorrect code" in client.post(reverse("mfa_authenticate"), {"code": "000000"}).content.decode()
    assert not is_in(client)
    [code, *others] = recovery_codes()
    client.post(reverse("mfa_authenticate"), {"code": code})
    assert is_in(client)
    again = Client()
    with_password(again)
    again.post(reverse("mfa_authenticate"), {"code": code})
    assert not is_in(again), "a recovery code works once"
    again.post(reverse("mfa_authenticate"), {"code": others[0]})
    assert is_in(again)


def test_the_app_s_code_lets_in_and_the_admin_site_asks_for_it_too(person, secret, clock):
    person.is_staff = person.is_superuser = True
    person.save()
    assert Client().get("/admin/login/?next=/admin/")["Location"] == "/login/?next=/admin/"
    client = Client()
    posted = client.post("/admin/login/", {"username": "dana", "password": "pw"})
    assert posted.status_code == 302 and not is_in(client)
    with_password(client, next="/admin/")
    assert client.get("/admin/").status_code == 302
    forgotten()  # this code set the app up within the same thirty seconds
    assert client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200


def test_codes_are_not_guessed_fast(person, secret):
    client = Client()
    with_password(client)
    answers = [client.post(reverse("mfa_authenticate"), {"code": f"{n:06}"}).content.decode() for n in range(6)]
    assert "Incorrect code" in answers[0] and "Too many codes" in answers[-1]
    client.post(reverse("mfa_authenticate"), {"code": recovery_codes()[0]})
    assert not is_in(client), "not even the right one, for a minute"


def test_a_code_counts_once_in_whichever_process_it_comes(person, secret):
    """Also the one that set the app up. What one process has in its memory, the next does not know."""
    first, second = Client(), Client()
    for client in (first, second):
        with_password(client)
    cache.clear()
    assert "used just now" in first.post(reverse("mfa_authenticate"), {"code": code_of(secret)}).content.decode()
    forgotten()
    code = code_of(secret)
    first.post(reverse("mfa_authenticate"), {"code": code})
    cache.clear()
    for written in (f" {code} ", f"{code[:3]}-{code[3:]}", ".".join(code)):
        second.post(reverse("mfa_authenticate"), {"code": written})
        cache.clear()
    assert is_in(first) and not is_in(second)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_code_that_is_used_again_is_told_to_the_person_and_to_who_runs_the_installation(person, secret, remembered, caplog):
    """Whether or not this process remembers it: somebody knows the password and saw the code being typed."""
    forgotten()
    first, second = Client(), Client(REMOTE_ADDR="192.0.2.9")
    for client in (first, second):
        with_password(client)
    code = code_of(secret)
    first.post(reverse("mfa_authenticate"), {"code": code})
    OutboxMessage.objects.all().delete()
    for _ in range(3):
        if not remembered:
            cache.clear()
        assert "used just now" in second.post(reverse("mfa_authenticate"), {"code": code}).content.decode()
    second.post(reverse("mfa_authenticate"), {"code": "000000"})
    entry = AuditEntry.objects.get(action="code_used_again")
    assert (entry.subject, entry.address, entry.actor) == (f"user:{person.pk}", "192.0.2.9", None)
    mail = OutboxMessage.objects.get()
    assert mail.recipient == person.email and "192.0.2.9" in mail.payload["text"] and code not in str(mail.payload) + caplog.text
    assert "192.0.2.9" in caplog.text and is_in(first) and not is_in(second)


@pytest.mark.parametrize("view", ["password_change", "account_reauthenticate"])
def test_a_browser_that_is_signed_in_is_no_place_to_guess_the_password(person, view):
    client = Client()
    with_password(client)
    new = {"new_password1": "quite-another-9", "new_password2": "quite-another-9"}
    for n in range(11):
        client.post(reverse(view), {"old_password": f"wrong{n}", "password": f"wrong{n}"} | new)
    client.post(reverse(view), {"old_password": "pw", "password": "pw"} | new)
    person.refresh_from_db()
    assert person.check_password("pw"), "not even the right one, for a while"
    assert client.get(reverse("mfa_activate_totp")).status_code == 302, "and nothing is proven"


def test_secrets_are_not_readable_at_rest_and_outlive_a_rotation_of_keys(person, secret, settings):
    with connection.cursor() as cursor:
        cursor.execute("select data::text from mfa_authenticator")
        stored = " ".join(row[0] for row in cursor.fetchall())
    codes = recovery_codes()
    assert secret not in stored and not any(code in stored for code in codes)
    old = settings.HOLDFAST_CREDENTIAL_KEYS
    settings.HOLDFAST_CREDENTIAL_KEYS = [Fernet.generate_key().decode(), *old]
    call_command("rotate_keys", stdout=StringIO())
    settings.HOLDFAST_CREDENTIAL_KEYS = settings.HOLDFAST_CREDENTIAL_KEYS[:1]
    assert recovery_codes() == codes
    assert Authenticator.objects.get(type="totp").wrap().validate_code("000000") is False


def test_changing_the_second_factor_asks_for_a_proof_first(person, secret):
    client = Client()
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    for name in ("mfa_deactivate_totp", "mfa_generate_recovery_codes"):
        asked = client.get(reverse(name))
        assert asked.status_code == 302 and asked["Location"].startswith(reverse("account_reauthenticate"))
    page = client.get(reverse("account_reauthenticate"))
    assert "Password" in page.content.decode()
    client.post(reverse("account_reauthenticate"), {"password": "pw"})
    client.post(reverse("mfa_deactivate_totp"))
    assert not Authenticator.objects.exists()


def test_who_lost_it_is_helped_from_the_command_line(person, secret):
    call_command("secondfactor", "dana", stdout=(output := StringIO()))
    assert "password alone" in output.getvalue() and not Authenticator.objects.exists()
    assert AuditEntry.objects.filter(action="second_factor_removed").exists()
    with pytest.raises(CommandError, match="no second factor"):
        call_command("secondfactor", "dana")
    with pytest.raises(CommandError, match="no user"):
        call_command("secondfactor", "nobody")


def test_where_it_is_demanded_those_without_one_are_led_to_it(person, settings):
    settings.HOLDFAST_REQUIRE_SECOND_FACTOR = True
    client = Client()
    with_password(client)
    for name in ("runs", "approvals", "account_tokens"):
        assert client.get(reverse(name))["Location"] == reverse("mfa_index"), name
    assert client.get(reverse("mfa_activate_totp"))["Location"].startswith(reverse("account_reauthenticate"))
    assert client.get(reverse("account_reauthenticate")).status_code == 200
    assert client.get(reverse("account")).status_code == 200
    assert client.get(reverse("healthz")).status_code in (200, 503)


def test_sessions_elsewhere_are_listed_and_ended(person):
    here, there = Client(), Client(HTTP_USER_AGENT="Elsewhere 1.0")
    with_password(here)
    with_password(there)
    page = here.get(reverse("usersessions_list")).content.decode()
    assert "Elsewhere 1.0" in page and "this one" in page
    here.post(reverse("usersessions_list"))
    assert is_in(here) and not is_in(there)


def test_every_page_of_it_loads_nothing_inline(person, secret):
    client = Client()
    with_password(client)
    page = client.get(reverse("mfa_authenticate")).content.decode()
    client.post(reverse("mfa_authenticate"), {"code": recovery_codes()[0]})
    client.post(reverse("account_reauthenticate"), {"password": "pw"})
    pages = [page] + [client.get(reverse(name)).content.decode() for name in ("mfa_index", "mfa_view_recovery_codes", "usersessions_list")]
    for text in pages:
        assert not re.search(r"<script(?![^>]*(src|importmap|application/json))", text) and " style=" not in text
    assert recovery_codes()[0] in pages[2]
