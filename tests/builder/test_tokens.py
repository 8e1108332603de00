"""API tokens: shown once, kept as a hash, ended by revoking, expiry, or with the person."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from builder.models import ApiToken
from builder.tokens import good_token, make_token, revoke
from runtime.models import AuditEntry, Membership
from tests.builder import factories

pytestmark = pytest.mark.django_db


def user_of(text):
    return (token := good_token(text)) and token.user


def test_only_the_hash_of_a_token_is_kept():
    row, text = make_token(factories.user(), "script")
    assert row.hash == hashlib.sha256(text.encode()).hexdigest()
    stored = " ".join(str(value) for value in ApiToken.objects.filter(pk=row.pk).values_list()[0])
    assert text not in stored and text[10:] not in stored
    assert text.startswith(row.prefix) and len(text) >= 46
    assert text not in str(list(AuditEntry.objects.values_list("detail", "subject")))


def test_a_token_is_its_persons_until_it_is_revoked():
    person = factories.user()
    row, text = make_token(person, "script")
    assert user_of(text) == person
    assert revoke(row, actor=person)
    assert not revoke(row, actor=person)
    assert user_of(text) is None
    assert list(AuditEntry.objects.values_list("action", flat=True)) == ["make_token", "revoke_token"]


def test_a_token_ends_at_its_time():
    row, text = make_token(factories.user(), "script", days=30)
    assert timedelta(days=29) < row.expires_at - timezone.now() <= timedelta(days=30)
    ApiToken.objects.update(expires_at=timezone.now())
    assert user_of(text) is None


def test_a_token_ends_with_its_person():
    person = factories.user()
    _, text = make_token(person, "script")
    person.is_active = False
    person.save()
    assert user_of(text) is None


def test_when_it_was_last_used_is_written_once_a_minute(django_assert_num_queries):
    _, text = make_token(factories.user(), "script")
    with django_assert_num_queries(2):
        user_of(text)
    with django_assert_num_queries(1):
        user_of(text)
    assert ApiToken.objects.get().last_used_at


@pytest.mark.parametrize(
    ("scope", "refused"),
    [("all", set()), ("read", {"start", "draft"}), ("start", {"list", "draft"})],
)
def test_a_token_is_good_for_its_scope_only(client, scope, refused):
    person = factories.user("builder")
    version = factories.version()
    Membership.objects.update(role="admin", team=version.workflow.team)
    _, text = make_token(person, "script", scope=scope)
    flow, told = f"/api/v1/workflows/{version.workflow_id}", {"authorization": f"Bearer {text}"}
    answers = {
        "me": client.get("/api/v1/me", headers=told),
        "list": client.get("/api/v1/workflows", headers=told),
        "start": client.post(f"{flow}/runs", {"input": {}}, "application/json", headers=told),
        "draft": client.put(f"{flow}/draft", {}, "application/json", headers=told),
    }
    assert {name for name, answer in answers.items() if answer.status_code == 403} == refused
    assert all("good for less" in answers[name].content.decode() for name in refused)


def test_a_token_that_starts_runs_sees_those_of_its_person_only(client):
    person, version = factories.user("operator"), factories.version()
    others = factories.run(version, input={"body": {"salary": 90_000}})
    told = {"authorization": f"Bearer {make_token(person, 'shop', scope='start')[1]}"}
    mine = client.post(f"/api/v1/workflows/{version.workflow_id}/runs", {"input": {}}, "application/json", headers=told).json()["run"]
    for run, status in ((mine, 200), (others.pk, 404)):
        answers = [client.get(f"/api/v1/runs/{run}{part}", headers=told) for part in ("", "/steps")]
        assert [answer.status_code for answer in answers] == [status, status]


@pytest.mark.parametrize("text", ["", "hf_", "\ud800", "x" * 100_000, "a\x00b"])
def test_nonsense_is_nobodys(text):
    assert user_of(text) is None


def test_the_command_prints_a_token_that_works():
    person, out = factories.user(name="dana"), StringIO()
    call_command("apitoken", "dana", "--name", "CI", "--days", "7", stdout=out)
    assert user_of(out.getvalue().strip()) == person
    assert ApiToken.objects.get().name == "CI"


@pytest.mark.parametrize("arguments", [("nobody",), ("dana", "--days", "0"), ("dana", "--name", "")])
def test_the_command_says_what_is_wrong(arguments):
    factories.user(name="dana")
    with pytest.raises(CommandError):
        call_command("apitoken", *arguments)
    assert not ApiToken.objects.exists()


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.person = factories.user("viewer", name="dana")
    client.force_login(client.person, "django.contrib.auth.backends.ModelBackend")
    return client


def test_the_account_page_shows_a_new_token_once(browser):
    made = browser.post(reverse("account_tokens"), {"name": "Nightly import", "scope": "start", "days": "90"})
    text = made.context["made"]
    assert text in made.content.decode()
    assert "no-store" in made["Cache-Control"]
    assert user_of(text) == browser.person
    later = browser.get(reverse("account")).content.decode()
    assert text not in later and text[:9] in later and "Nightly import" in later


def test_the_account_page_refuses_what_it_did_not_offer(browser):
    good = {"name": "x", "scope": "all", "days": "90"}
    for wrong in ({"name": ""}, {"days": "10000"}, {"name": "x" * 101, "days": ""}, {"scope": "more"}, {"scope": ""}):
        assert browser.post(reverse("account_tokens"), good | wrong).status_code == 422
    assert not ApiToken.objects.exists()


def test_only_ones_own_tokens_can_be_revoked(browser):
    mine, _ = make_token(browser.person, "mine")
    other, _ = make_token(factories.user(), "other")
    assert browser.post(reverse("account_token_revoke", args=[mine.pk])).status_code == 302
    assert browser.post(reverse("account_token_revoke", args=[other.pk])).status_code == 404
    assert [ApiToken.objects.get(pk=row.pk).revoked_at is None for row in (mine, other)] == [False, True]
