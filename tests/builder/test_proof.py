"""Who is it, once more: before a token, a role, a connection, a secret that is shown anew; and what a new password ends."""

from __future__ import annotations

import re
from html import unescape
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from builder.gate import PROVEN_TO_CHANGE, PROVEN_TO_LOOK, VIEWS
from builder.models import ApiToken
from builder.sessions import SessionStore
from builder.tokens import good_token, make_token
from runtime.models import Alert, AuditEntry, Credential, Membership, Team, Workflow
from runtime.publish import publish
from tests.builder import factories
from tests.builder.test_openid import at_the_provider, provider, server, signed_in  # noqa: F401 - two are fixtures
from tests.builder.test_signin import is_in, recovery_codes, secret, with_password  # noqa: F401 - one is a fixture

pytestmark = pytest.mark.django_db
TOKEN = {"name": "My script", "scope": "all", "days": "30"}
SECRET = "canary-4711"
ASKED = "Confirm that it is you"


@pytest.fixture
def person():
    return factories.user("admin", name="dana")


@pytest.fixture
def client(person) -> Client:
    client = Client()
    with_password(client)
    return client


def pass_minutes(minutes: float) -> None:
    """As if everybody had signed in, or shown who they are, so much earlier."""
    for row in Session.objects.all():
        store = SessionStore(row.session_key)
        for key in store.keys():
            if key == "proved_at":
                store[key] -= minutes * 60
            if key == "account_authentication_methods":
                store[key] = [one | {"at": one["at"] - minutes * 60} for one in store[key]]
        store.save()


def sent_on(page, **proof: str) -> dict[str, str | list[str]]:
    """What the form of the page sends, with a proof."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page.content.decode()):
        found.setdefault(unescape(name), []).append(unescape(value))
    found.pop("csrfmiddlewaretoken", None)
    return found | proof


def test_every_name_that_asks_is_in_the_table():
    spaces = {f"{name.split(':')[0]}:*" for name in PROVEN_TO_CHANGE | PROVEN_TO_LOOK if ":" in name}
    assert {name for name in PROVEN_TO_CHANGE | PROVEN_TO_LOOK if ":" not in name} | spaces <= set(VIEWS)


def test_who_has_just_signed_in_is_not_asked(client):
    assert "hf_" in client.post(reverse("account_tokens"), TOKEN).content.decode()
    pass_minutes(9)
    assert "hf_" in client.post(reverse("account_tokens"), TOKEN).content.decode()


def test_a_token_is_made_for_who_proves_it_and_nothing_is_typed_twice(client):
    pass_minutes(11)
    page = client.post(reverse("account_tokens"), TOKEN | {"name": 'A "quoted" <name>'})
    assert ASKED in page.content.decode() and not ApiToken.objects.exists() and "no-store" in page["Cache-Control"]
    wrong = client.post(reverse("account_tokens"), sent_on(page, proof_password="wrong"))
    assert wrong.status_code == 422 and "ncorrect" in wrong.content.decode() and not ApiToken.objects.exists()
    assert "wrong" not in wrong.content.decode()
    made = client.post(reverse("account_tokens"), sent_on(wrong, proof_password="pw"))
    assert made.status_code == 200 and ApiToken.objects.get().name == 'A "quoted" <name>'
    pass_minutes(9)
    client.post(reverse("account_tokens"), TOKEN)
    assert ApiToken.objects.count() == 2, "a proof counts for ten minutes"
    pass_minutes(2)
    client.post(reverse("account_tokens"), TOKEN)
    assert ApiToken.objects.count() == 2


def test_roles_change_after_a_proof(client, person):
    team, other = Team.objects.get(), factories.user("viewer", name="ines")
    factories.user(None, name="noor")
    pass_minutes(11)
    asks = [
        (reverse("member_add", args=[team.pk]), {"username": "noor", "role": "admin"}),
        (reverse("member_role", args=[team.pk, other.pk]), {"role": "admin"}),
        (reverse("member_remove", args=[team.pk, other.pk]), {}),
    ]
    for address, values in asks:
        assert ASKED in client.post(address, values).content.decode()
    assert set(Membership.objects.values_list("user__username", "role")) == {("dana", "admin"), ("ines", "viewer")}
    page = client.post(asks[1][0], asks[1][1])
    assert client.post(asks[1][0], sent_on(page, proof_password="pw")).status_code == 302
    assert Membership.objects.get(user=other).role == "admin"


def test_a_connection_is_made_after_a_proof_and_its_secret_waits_nowhere(client):
    address = reverse("connection_create") + "?kind=bearer"
    values = {"name": "CRM", "token": SECRET, "hosts": "crm.example", "base_url": "", "per_minute": ""}
    pass_minutes(11)
    assert client.get(address).status_code == 200, "looking asks for nothing"
    page = client.post(address, values)
    assert ASKED in page.content.decode() and not Credential.objects.exists()
    kept = [SessionStore(row.session_key).load() for row in Session.objects.all()]
    assert SECRET not in str(kept)
    assert client.post(address, sent_on(page, proof_password="pw")).status_code == 302
    row = Credential.objects.get()
    pass_minutes(11)
    changed = values | {"token": "", "hosts": "evil.example"}
    assert ASKED in client.post(reverse("connection", args=[row.pk]), changed).content.decode()


def test_accounts_are_changed_after_a_proof_in_the_admin_site_too(client, person):
    person.is_staff = person.is_superuser = True
    person.save()
    other = factories.user("viewer", name="ines")
    address = reverse("admin:auth_user_change", args=[other.pk])
    pass_minutes(11)
    assert client.get(address).status_code == 200
    values = {"username": "ines", "is_superuser": "on", "is_active": "on", "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    page = client.post(address, values)
    assert ASKED in page.content.decode()
    other.refresh_from_db()
    assert not other.is_superuser
    client.post(address, sent_on(page, proof_password="pw"))
    other.refresh_from_db()
    assert other.is_superuser


def test_a_code_proves_it_too_and_counts_once(client, secret):  # noqa: F811
    client = Client()
    with_password(client)
    [code, another, *_] = recovery_codes()
    client.post(reverse("mfa_authenticate"), {"code": code})
    pass_minutes(11)
    page = client.post(reverse("account_tokens"), TOKEN)
    assert "proof_code" in page.content.decode()
    client.post(reverse("account_tokens"), sent_on(page, proof_code=code))
    assert not ApiToken.objects.exists()
    client.post(reverse("account_tokens"), sent_on(page, proof_code=another))
    assert ApiToken.objects.count() == 1


def test_sessions_are_ended_after_a_proof(client):
    there = Client()
    with_password(there)
    pass_minutes(11)
    assert client.get(reverse("usersessions_list")).status_code == 200
    page = client.post(reverse("usersessions_list"))
    assert ASKED in page.content.decode() and is_in(there)
    client.post(reverse("usersessions_list"), sent_on(page, proof_password="pw"))
    assert not is_in(there) and is_in(client)


def test_recovery_codes_are_shown_after_a_proof(client, secret):  # noqa: F811
    client = Client()
    with_password(client)
    client.post(reverse("mfa_authenticate"), {"code": recovery_codes()[0]})
    pass_minutes(11)
    for name in ("mfa_view_recovery_codes", "mfa_download_recovery_codes"):
        asked = client.get(reverse(name))
        assert asked.status_code == 302 and asked["Location"].startswith(reverse("account_proof"))
    page = client.get(asked["Location"])
    assert ASKED in page.content.decode()
    shown = client.post(asked["Location"], sent_on(page, proof_password="pw"), follow=True)
    assert recovery_codes()[0] in shown.content.decode()


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "/\\evil.example/", "javascript:alert(1)"])
def test_no_proof_leads_to_another_site(client, target):
    pass_minutes(11)
    address = f"{reverse('account_proof')}?next={target}"
    came = client.get(address, headers={"Referer": target})
    assert "evil" not in came.content.decode().replace(address, "")
    assert client.post(address, {"proof_password": "pw"})["Location"] == reverse("account")


def test_the_secret_of_a_rule_and_of_a_webhook_are_shown_after_a_proof(client, person):
    Alert.objects.create(kind="failed", threshold=1, team=Team.objects.get(), url="https://chat.example/x", created_by=person)
    signed = {"id": "in", "type": "webhook", "config": {"signature": {"kind": "standard"}}}
    flow = Workflow.objects.create(team=Team.objects.get(), name="Leads")
    publish(flow, {"format": 1, "name": "Leads", "triggers": [signed], "steps": [{"id": "wait", "type": "delay", "config": {"for": "1h"}}]})
    pages = (reverse("alerts"), f"{reverse('flow', args=[flow.pk])}?step=in", f"{reverse('flow_panel', args=[flow.pk])}?step=in")
    for address in pages:
        assert "whsec_" in client.get(address).content.decode(), address
    pass_minutes(11)
    for address in pages:
        text = client.get(address).content.decode()
        assert "whsec_" not in text and reverse("account_proof") in text, address
    link = unescape(re.search(rf'href="({reverse("account_proof")}[^"]*)"', text)[1])
    shown = client.post(link, {"proof_password": "pw"}, follow=True)
    assert "whsec_" in shown.content.decode() and shown.redirect_chain[-1][0] == pages[1]


def test_a_fragment_makes_the_whole_page_ask(client):
    pass_minutes(11)
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{reverse('account')}"}
    answer = client.post(reverse("account_tokens"), TOKEN, headers=headers)
    assert answer["HX-Redirect"] == f"{reverse('account_proof')}?next=%2Faccount%2F"
    assert not ApiToken.objects.exists()


def test_no_place_to_guess_the_password(client, person):
    pass_minutes(11)
    for n in range(11):
        client.post(reverse("account_tokens"), TOKEN | {"proof_password": f"wrong{n}"})
    right = client.post(reverse("account_tokens"), TOKEN | {"proof_password": "pw"})
    assert right.status_code == 429, "not even the right one, for a while"
    assert not ApiToken.objects.exists()


def test_a_provider_s_word_is_a_proof_only_when_it_has_just_asked(provider, person):  # noqa: F811
    person.set_unusable_password()
    person.save()
    client = Client()
    signed_in(client)
    page = client.post(reverse("account_tokens"), TOKEN).content.decode()
    assert "once more" in page and "again=1" in page and not ApiToken.objects.exists()
    again = reverse("openid_start") + "?again=1&next=/account/"
    provider.control(claims={"auth_time": None})
    refused = client.get(at_the_provider(client.get(again)["Location"]))
    assert refused.status_code == 403 and "without being asked" in refused.content.decode()
    provider.control(claims={})
    back = client.get(at_the_provider(client.get(again)["Location"]))
    assert back["Location"] == "/account/"
    client.post(reverse("account_tokens"), TOKEN)
    assert ApiToken.objects.count() == 1


# A new password


NEW = {"old_password": "pw", "new_password1": "quite-another-9", "new_password2": "quite-another-9"}


@pytest.mark.parametrize("revoked", [True, False])
def test_a_new_password_signs_other_browsers_out_and_revokes_tokens_if_wished(client, person, revoked):
    there = Client()
    with_password(there)
    _, text = make_token(person, "script")
    page = client.get(reverse("password_change")).content.decode()
    assert 'name="revoke_tokens"' in page and "checked" not in page
    client.post(reverse("password_change"), NEW | ({"revoke_tokens": "on"} if revoked else {}))
    assert is_in(client) and not is_in(there) and (good_token(text) is None) is revoked
    assert AuditEntry.objects.filter(action="change_password", actor=person).count() == 1


@pytest.mark.parametrize("revoked", [True, False])
def test_a_password_that_somebody_else_sets_revokes_tokens_unless_they_say_no(client, person, revoked):
    person.is_staff = person.is_superuser = True
    person.save()
    other, there = factories.user("viewer", name="ines"), Client()
    there.post(reverse("login"), {"username": "ines", "password": "pw"})
    _, text = make_token(other, "script")
    address = reverse("admin:auth_user_password_change", args=[other.pk])
    assert re.search(r'name="revoke_tokens"[^>]*checked', client.get(address).content.decode())
    values = {"password1": "quite-another-9", "password2": "quite-another-9", "usable_password": "true"}
    client.post(address, values | {"password2": "a-slip-9", "revoke_tokens": "1"})
    assert good_token(text) is not None and is_in(there), "nothing was changed"
    client.post(address, values | ({"revoke_tokens": "1"} if revoked else {}))
    assert not is_in(there) and (good_token(text) is None) is revoked
    assert AuditEntry.objects.filter(action="reset_password", actor=person).count() == 1


@pytest.mark.parametrize("revoked", [True, False])
def test_on_the_command_line_too(client, person, monkeypatch, revoked):
    _, text = make_token(person, "script")
    monkeypatch.setattr("getpass.getpass", lambda prompt: "quite-another-9")
    told = StringIO()
    call_command("changepassword", "dana", *([] if revoked else ["--keep-tokens"]), stdout=told)
    assert get_user_model().objects.get(username="dana").check_password("quite-another-9")
    assert not is_in(client) and (good_token(text) is None) is revoked and ("Revoked 1 API token;" in told.getvalue()) is revoked
