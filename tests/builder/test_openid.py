"""Signing in at an OpenID provider, against one that keeps to the protocol and one that lies in each way."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from builder import openid
from builder.models import Identity
from builder.views.openid import PER_MINUTE
from runtime.models import AuditEntry
from tests.builder import factories
from tests.builder.test_signin import is_in, secret, with_password  # noqa: F401 - one is a fixture
from tests.servers.openid import CLIENT, EMAIL, SECRET, OpenId, OpenIdApp

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def server() -> Iterator[OpenId]:
    with OpenId() as running:
        yield running


@pytest.fixture
def provider(server, settings) -> OpenId:
    """The provider, as it is by itself, in our settings."""
    server.control(**OpenIdApp.settings)
    openid._kept.clear()
    settings.HOLDFAST_OIDC_ISSUER = server.url
    settings.HOLDFAST_OIDC_CLIENT_ID, settings.HOLDFAST_OIDC_CLIENT_SECRET = CLIENT, SECRET
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    return server


@pytest.fixture
def person():
    return factories.user("operator", name="dana")


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


def at_the_provider(address: str) -> str:
    """The way back that the provider sends a browser."""
    try:
        urllib.request.build_opener(_Stay).open(address)
    except urllib.error.HTTPError as answer:
        back = urlsplit(answer.headers["Location"])
        return f"{back.path}?{back.query}"
    raise AssertionError("it did not lead back")


def signed_in(client: Client, onward: str = ""):
    """Through the button, the provider, and back."""
    away = client.get(reverse("openid_start"), {"next": onward} if onward else {})
    assert away.status_code == 302, away.content.decode()
    return client.get(at_the_provider(away["Location"]))


def why(response) -> str:
    found = re.search(r'role="alert">.*?<span>(.*?)</span>', response.content.decode(), re.DOTALL)
    return found[1] if found else ""


def test_without_a_provider_there_is_neither_button_nor_page():
    client = Client()
    assert "openid" not in client.get(reverse("login")).content.decode()
    assert client.get(reverse("openid_start")).status_code == client.get(reverse("openid_back")).status_code == 404


@pytest.mark.parametrize("sign", ["RS256", "ES256"])
def test_who_has_an_account_comes_in_by_a_verified_address_and_goes_on(provider, person, sign):
    provider.control(sign=sign, claims={"email": "DANA@Example.com"})
    client = Client()
    page = client.get(reverse("login"), {"next": "/runs/?state=failed"}).content.decode()
    assert "Sign in with 127.0.0.1" in page and "next=%2Fruns%2F%3Fstate%3Dfailed" in page
    response = signed_in(client, "/runs/?state=failed")
    assert (response.status_code, response["Location"]) == (302, "/runs/?state=failed") and is_in(client)
    assert list(AuditEntry.objects.order_by("pk").values_list("action", "actor_name")) == [("link_openid", "dana"), ("sign_in_openid", "dana")]
    stored = json.dumps(list(AuditEntry.objects.values_list("detail", flat=True)))
    assert provider.url in stored and SECRET not in stored


def test_the_person_counts_and_not_the_address(provider, person):
    """Addresses are given to others when somebody leaves, and change."""
    signed_in(Client())
    provider.control(claims={"email": "renamed@example.com", "email_verified": False})
    client = Client()
    signed_in(client)
    assert is_in(client) and Identity.objects.count() == 1
    provider.control(claims={"sub": "successor"})
    other = Client()
    assert "belongs to another sign-in" in why(signed_in(other)) and not is_in(other)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"email_verified": False}, "no e-mail address that was verified"),
        ({"email_verified": None}, "no e-mail address that was verified"),
        ({"email_verified": "true"}, "no e-mail address that was verified"),
        ({"email": None}, "no e-mail address that was verified"),
        ({"email": "nobody@example.com"}, "no account with your address"),
        ({"email": "d\u0430na@example.com"}, "no account with your address"),
        ({"email": "twice@example.com"}, "no account with your address"),
        ({"email": "m\u0131ke@example.com"}, "no account with your address"),
        ({"email": "gone@example.com"}, "no account with your address"),
    ],
)
def test_nobody_else_comes_in_and_nobody_gets_an_account(provider, person, claims, words):
    for name in ("one", "two"):
        factories.user(None, name=name, email="twice@example.com")
    factories.user(None, name="mike", email="mike@example.com")
    factories.user(None, name="gone", email="gone@example.com", is_active=False)
    provider.control(claims=claims)
    client, before = Client(), get_user_model().objects.count()
    response = signed_in(client)
    assert response.status_code == 403 and words in why(response) and not is_in(client)
    assert get_user_model().objects.count() == before and not Identity.objects.exists()
    assert AuditEntry.objects.get().action == "refuse_openid"


def test_a_superuser_makes_and_removes_links_by_hand(provider, person):
    provider.control(claims={"email_verified": None, "sub": "entra-7"})
    root, client = Client(), Client()
    root.force_login(get_user_model().objects.create_superuser("root"), "django.contrib.auth.backends.ModelBackend")
    assert "no e-mail address" in why(signed_in(client))
    link = {"user": person.pk, "issuer": provider.url, "subject": AuditEntry.objects.get().detail["subject"]}
    root.post(reverse("admin:builder_identity_add"), link)
    signed_in(client)
    assert is_in(client)
    root.post(reverse("admin:builder_identity_delete", args=[Identity.objects.get().pk]), {"post": "yes"})
    assert not Identity.objects.exists()
    by_root = AuditEntry.objects.filter(actor_name="root").order_by("pk").values_list("action", flat=True)
    assert list(by_root) == ["link_openid", "unlink_openid"]


def test_who_was_switched_off_stays_out(provider, person):
    signed_in(Client())
    person.is_active = False
    person.save()
    client = Client()
    assert "switched off" in why(signed_in(client)) and not is_in(client)


@pytest.mark.parametrize(
    "lie",
    [
        {"sign": "stranger"}, {"sign": "none"}, {"sign": "HS256"},
        {"claims": {"nonce": "of-another-sign-in"}}, {"claims": {"nonce": None}},
        {"claims": {"iss": "https://elsewhere.example"}}, {"claims": {"aud": "another-client"}},
        {"claims": {"aud": [CLIENT, "another-client"]}}, {"claims": {"azp": "another-client"}},
        {"claims": {"exp": 1_000_000_000}}, {"claims": {"exp": "never"}}, {"claims": {"iat": 99_999_999_999}}, {"claims": {"sub": ""}},
        {"claims": {"sub": None}}, {"answer": {"access_token": "x"}}, {"answer": ["x"]}, {"answer": {"id_token": "a.b"}},
        {"answer": {"id_token": "...."}}, {"document": {"issuer": "https://elsewhere.example"}},
        {"document": {"token_endpoint": None}}, {"claims": {"email": None}, "userinfo": {"sub": "other", "email": EMAIL, "email_verified": True}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_the_providers_word_lets_nobody_in(provider, person, lie, caplog):
    client = Client()
    away = client.get(reverse("openid_start"))["Location"]
    provider.control(**lie)
    openid._kept.clear()
    response = client.get(at_the_provider(away))
    assert response.status_code == 503 and "does not work just now" in why(response) and not is_in(client)
    assert "Signing in by OpenID does not work" in caplog.text and SECRET not in caplog.text
    assert not Identity.objects.exists()


def test_an_answer_counts_once_and_in_the_browser_that_asked(provider, person):
    mine, theirs = Client(), Client()
    back = at_the_provider(mine.get(reverse("openid_start"))["Location"])
    assert "another browser" in why(theirs.get(back)), "one that never asked"
    theirs.get(reverse("openid_start"))
    assert "another browser" in why(theirs.get(back)), "one that asked something else"
    assert not is_in(theirs)
    assert mine.get(back).status_code == 302 and is_in(mine)
    assert "another browser" in why(mine.get(back))
    forged = Client()
    forged.cookies["openid"] = "state\nnonce\nverifier\n/:1abcde:forged"
    assert "another browser" in why(forged.get(reverse("openid_back"), {"state": "state", "code": "x"}))


def test_a_refusal_there_and_a_mixed_up_provider_let_nobody_in(provider, person):
    for more in ({"error": "access_denied"}, {"iss": "https://elsewhere.example", "code": "x"}):
        client = Client()
        away = parse_qs(urlsplit(client.get(reverse("openid_start"))["Location"]).query)
        assert away["code_challenge_method"] == ["S256"]
        response = client.get(reverse("openid_back"), {"state": away["state"][0], **more})
        assert "not signed in there" in why(response) and not is_in(client)


def test_a_new_key_of_the_provider_is_fetched(provider, person):
    signed_in(Client())
    provider.control(kid="two")
    client = Client()
    signed_in(client)
    assert is_in(client)


def test_an_address_may_come_from_userinfo(provider, person):
    told = {"sub": "person-1", "email": EMAIL, "email_verified": True}
    provider.control(claims={"email": None, "email_verified": None}, userinfo=told)
    client = Client()
    signed_in(client)
    assert is_in(client)


def test_who_has_an_authenticator_is_asked_for_the_code_too(provider, person, secret):  # noqa: F811
    client = Client()
    assert signed_in(client)["Location"].startswith(reverse("mfa_authenticate"))
    assert not is_in(client)


def test_no_redirect_leads_away_and_the_session_is_a_new_one(provider, person):
    client = Client()
    assert signed_in(client, "//evil.example/")["Location"] == "/"
    before = client.session.session_key
    other = Client()
    other.cookies["sessionid"] = "fixed-by-somebody"
    signed_in(other)
    assert is_in(other) and other.session.session_key not in (before, "fixed-by-somebody")


def test_a_provider_that_is_away_costs_little_and_passwords_go_on(provider, person, settings):
    settings.HOLDFAST_OIDC_ISSUER = "http://127.0.0.1:1"
    client = Client()
    assert client.get(reverse("openid_start")).status_code == 503
    codes = [client.get(reverse("openid_back")).status_code for _ in range(PER_MINUTE)]
    assert codes[0] == 403 and codes[-1] == 429
    with_password(client)
    assert is_in(client)
