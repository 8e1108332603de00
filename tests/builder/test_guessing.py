"""One account's password, guessed from many addresses; and an owner who is not locked out by it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from runtime.models import RateLimit
from tests.builder import factories
from tests.builder.test_signin import is_in, with_password

pytestmark = pytest.mark.django_db


@pytest.fixture
def person():
    return factories.user("operator", name="dana")


def guess(times: int) -> list[int]:
    """From another network each time, whatever it says."""
    return [with_password(Client(REMOTE_ADDR=f"2001:db8:{n:x}::1"), f"wrong{n}").status_code for n in range(times)]


def test_many_addresses_have_no_more_guesses_than_one(person):
    assert guess(22) == [200] * 20 + [429] * 2
    late = Client(REMOTE_ADDR="2001:db8:ffff::1")
    answer = with_password(late)
    assert answer.status_code == 429 and "Too many wrong passwords for this name" in answer.content.decode() and not is_in(late)


def test_the_owner_s_browser_is_still_listened_to(person):
    own = Client(REMOTE_ADDR="192.0.2.7")
    with_password(own)
    own.post(reverse("logout"))
    guess(21)
    with_password(own)
    assert is_in(own)
    forged = Client(REMOTE_ADDR="192.0.2.8")
    forged.cookies["known"] = f"{person.pk}:x:y"
    with_password(forged)
    assert not is_in(forged)


def test_another_person_s_browser_is_no_help_and_another_name_is_free(person):
    other = factories.user("viewer", name="ines")
    guess(21)
    theirs = Client(REMOTE_ADDR="192.0.2.9")
    theirs.post(reverse("login"), {"username": "ines", "password": "pw"})
    assert is_in(theirs) and other.pk
    theirs.post(reverse("logout"))
    with_password(theirs)
    assert not is_in(theirs)


def test_what_was_refused_unseen_fills_nothing(person):
    """Or whoever goes on knocking at one door that is shut already would shut the others."""
    for n in range(25):
        with_password(Client(REMOTE_ADDR="192.0.2.66"), f"wrong{n}")
    elsewhere = Client(REMOTE_ADDR="192.0.2.9")
    with_password(elsewhere)
    assert is_in(elsewhere)


def test_one_network_of_ipv6_is_one_caller(person):
    """A /64 is what a single caller has whole: eighteen quintillion addresses for one guess each."""
    for n in range(10):
        with_password(Client(REMOTE_ADDR=f"2001:db8:1:2::{n + 1:x}"), f"wrong{n}")
    RateLimit.objects.all().delete()
    late = Client(REMOTE_ADDR="2001:db8:1:2::ffff")
    with_password(late)
    assert not is_in(late)
    elsewhere = Client(REMOTE_ADDR="2001:db8:1:3::1")
    with_password(elsewhere)
    assert is_in(elsewhere)
