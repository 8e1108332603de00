"""Sessions that end: so many hours after the sign-in, and so many minutes after the person last did something.

The sooner of the two stands in the session's row (`expire_date`), so that a session which has ended is none, whoever looks.
What a person does moves it on, at most twelve times within the minutes of idleness, by one statement that touches nothing
else of the session. What a page asks by itself says so with a header, and moves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends import db
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

UNATTENDED = "Hf-Unattended"
"""The header of requests that an open page makes without anybody at it (`static/js/unattended.js`)."""
SIGNED_IN_AT, PROVED_AT = "signed_in_at", "proved_at"
"""When the person signed in, in the session's data, and showed who they are by that (`builder.proof`): seconds since 1970."""
MOVED_IN_PARTS = 12


class SessionStore(db.SessionStore):
    """Django's, in the database, but for when it ends."""

    ends: datetime | None = None

    def get_expiry_age(self, **more: Any) -> int:
        """For the cookie, which is not sent anew when the end moves: the seconds until the last moment that there can be."""
        return max(0, round((self._latest() - timezone.now()).total_seconds()))

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row = super().create_model_instance(data)
        row.expire_date = self._next_end()
        return row

    def _get_session_from_db(self) -> Any:
        row = super()._get_session_from_db()
        self.ends = row.expire_date if row else None
        return row

    def move_on(self) -> None:
        """The person has done something. What the settings allow no longer ends sooner than it said."""
        if self.ends is None or SESSION_KEY not in self:
            return
        ends = self._next_end()
        if ends < self.ends or ends - self.ends > _idle() / MOVED_IN_PARTS:
            self.model.objects.filter(pk=self.session_key, expire_date=self.ends).update(expire_date=ends)

    def _next_end(self) -> datetime:
        return min(self._latest(), timezone.now() + _idle())

    def _latest(self) -> datetime:
        """Nobody knows when a session of an earlier version began, so it is over."""
        begun = self.get(SIGNED_IN_AT, 0.0 if SESSION_KEY in self else time.time())
        return datetime.fromtimestamp(begun, UTC) + timedelta(seconds=settings.SESSION_COOKIE_AGE)


def _idle() -> timedelta:
    minutes = settings.HOLDFAST_SESSION_IDLE_MINUTES
    return timedelta(minutes=minutes) if minutes else timedelta(seconds=settings.SESSION_COOKIE_AGE)


@receiver(user_logged_in)
def _begun(request: HttpRequest, **more: Any) -> None:
    """Those that have ended are cleared away at this moment, since nobody else does."""
    request.session[SIGNED_IN_AT] = request.session[PROVED_AT] = time.time()
    SessionStore.clear_expired()


class Attended:
    """Middleware: a request moves the end of its session on, unless the page has made it by itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if UNATTENDED not in request.headers and request.session.accessed:
            request.session.move_on()
        return response
