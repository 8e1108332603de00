"""Sessions end: so long after the sign-in, and so long after the person last did something."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from builder.sessions import SIGNED_IN_AT, SessionStore
from tests.builder import factories

pytestmark = pytest.mark.django_db

POLL = {"Hf-Unattended": "1"}
NEAR = timedelta(minutes=1)


@pytest.fixture
def client() -> Client:
    factories.user("operator", name="dana")
    client = Client()
    client.post(reverse("login"), {"username": "dana", "password": "pw"})
    assert is_in(client)
    return client


def is_in(client: Client, **more) -> bool:
    return client.get(reverse("runs"), **more).status_code == 200


def ends() -> datetime:
    return Session.objects.get().expire_date


def pass_time(**how_much: float) -> None:
    """As if so much time had passed since everything that is stored of the session."""
    row, gone = Session.objects.get(), timedelta(**how_much)
    store = SessionStore(row.session_key)
    store[SIGNED_IN_AT] -= gone.total_seconds()
    store.save()
    Session.objects.update(expire_date=row.expire_date - gone)


def in_(**how_long: float) -> object:
    return pytest.approx((timezone.now() + timedelta(**how_long)).timestamp(), abs=NEAR.total_seconds())


def test_an_hour_without_doing_anything_ends_it(client):
    assert ends().timestamp() == in_(hours=1)
    pass_time(minutes=59)
    assert is_in(client), "and this was doing something"
    pass_time(minutes=59)
    assert is_in(client)
    pass_time(minutes=61)
    assert not is_in(client)


def test_what_a_page_asks_by_itself_is_no_doing(client):
    pass_time(minutes=30)
    before = ends()
    assert is_in(client, headers=POLL) and ends() == before
    pass_time(minutes=31)
    assert not is_in(client, headers=POLL)


def test_twelve_hours_are_the_end_of_the_busiest(client):
    for _ in range(13):
        pass_time(minutes=54)
        assert is_in(client)
    pass_time(minutes=10)
    assert is_in(client) and ends().timestamp() == in_(minutes=8)
    pass_time(minutes=9)
    assert not is_in(client)


def test_a_changed_password_does_not_begin_it_anew(client):
    pass_time(minutes=50)
    for _ in range(12):
        is_in(client)
        pass_time(minutes=50)
    new = {"old_password": "pw", "new_password1": "quite-another-9", "new_password2": "quite-another-9"}
    assert client.post(reverse("password_change"), new).status_code == 302 and is_in(client)
    pass_time(minutes=50)
    assert is_in(client)
    pass_time(minutes=21)
    assert not is_in(client)


def test_nothing_is_written_for_most_requests(client):
    pass_time(minutes=4)
    with CaptureQueriesContext(connection) as asked:
        assert is_in(client)
    assert not [one["sql"] for one in asked if not one["sql"].lower().startswith(("select", "savepoint", "release"))]
    pass_time(minutes=2)
    with CaptureQueriesContext(connection) as asked:
        assert is_in(client)
    [written] = [one["sql"] for one in asked if "django_session" in one["sql"] and not one["sql"].startswith("SELECT")]
    assert "session_data" not in written, "or it would undo what another request has put there meanwhile"


def test_either_end_can_be_switched_off(client, settings):
    settings.HOLDFAST_SESSION_IDLE_MINUTES = 0
    is_in(client)
    assert ends().timestamp() == in_(hours=12)
    settings.HOLDFAST_SESSION_IDLE_MINUTES, settings.SESSION_COOKIE_AGE = 20, 9600 * 3600
    is_in(client)
    assert ends().timestamp() == in_(minutes=20), "a stricter setting is for those who are signed in, too"
    pass_time(days=3)
    Session.objects.update(expire_date=timezone.now() + timedelta(minutes=5))
    assert is_in(client) and ends().timestamp() == in_(minutes=20)


def test_a_session_from_before_is_over(client):
    store = SessionStore(Session.objects.get().session_key)
    del store[SIGNED_IN_AT]
    store.save()
    Session.objects.update(expire_date=timezone.now() + timedelta(days=14))
    is_in(client)
    assert not is_in(client)


def test_ended_sessions_are_cleared_away(client):
    pass_time(days=1)
    Client().post(reverse("login"), {"username": "dana", "password": "pw"})
    assert Session.objects.count() == 1


def test_the_cookie_lasts_as_long_as_the_session_can(client):
    cookie = client.cookies["sessionid"]
    assert cookie["max-age"] == pytest.approx(12 * 3600, abs=60) and cookie["httponly"]
