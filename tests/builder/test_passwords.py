"""The rules for passwords hold whichever way one is set."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from builder.management.commands.prepare import make_administrator
from tests.builder import factories
from tests.builder.test_signin import with_password

pytestmark = pytest.mark.django_db
WEAK = ["short-9-pw", "password1234", "123456789012", "administrator"]
GOOD = "a sentence of some length"


@pytest.mark.parametrize("password", WEAK)
def test_the_first_administrator_gets_no_weak_one(monkeypatch, password):
    monkeypatch.setenv("HOLDFAST_ADMIN", "administrator")
    monkeypatch.setenv("HOLDFAST_ADMIN_PASSWORD", password)
    with pytest.raises(SystemExit, match="HOLDFAST_ADMIN_PASSWORD cannot be used"):
        make_administrator()
    assert not get_user_model().objects.exists()
    monkeypatch.setenv("HOLDFAST_ADMIN_PASSWORD", GOOD)
    assert "with the password you set" in make_administrator()
    monkeypatch.setenv("HOLDFAST_ADMIN_PASSWORD", password)
    assert make_administrator() == "administrator", "without effect once there is one"


@pytest.mark.parametrize("password", WEAK)
def test_createsuperuser_takes_no_weak_one_from_the_environment(monkeypatch, password):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", password)
    asked = {"username": "administrator", "email": "a@example.com", "interactive": False, "stdout": StringIO()}
    with pytest.raises(CommandError, match="cannot be used"):
        call_command("createsuperuser", **asked)
    assert not get_user_model().objects.exists()
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", GOOD)
    call_command("createsuperuser", **asked)
    assert get_user_model().objects.get().check_password(GOOD)


def test_createsuperuser_asks_until_it_is_a_good_one(monkeypatch):
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "")
    typed = iter([*[word for weak in WEAK for word in (weak, weak)], GOOD, "a slip", GOOD, GOOD])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(typed))
    monkeypatch.setattr("builtins.input", lambda prompt="": "administrator" if "name" in prompt else "")
    call_command("createsuperuser", stdout=StringIO(), stderr=(said := StringIO()))
    assert get_user_model().objects.get(username="administrator").check_password(GOOD)
    assert said.getvalue().count("cannot be used") == len(WEAK) and "two different ones" in said.getvalue()


@pytest.mark.parametrize("password", WEAK[:3])
def test_no_page_takes_a_weak_one(password):
    person = factories.user("admin", name="dana", is_staff=True, is_superuser=True)
    client = Client()
    with_password(client)
    client.post(reverse("password_change"), {"old_password": "pw", "new_password1": password, "new_password2": password})
    values = {"password1": password, "password2": password, "usable_password": "true"}
    client.post(reverse("admin:auth_user_add"), {"username": "ines", **values})
    client.post(reverse("admin:auth_user_password_change", args=[person.pk]), values)
    assert get_user_model().objects.get().check_password("pw")
