"""Django's Postgres, but for one thing: a connection that was in use a moment ago tells by its socket whether it still lives."""

from __future__ import annotations

import math
import select
import time
from typing import Any

from django.db.backends.postgresql import base

FRESH_SECONDS = 1.0
"""A server that ended, or ended the connection, has said so to the socket. One whose machine died has not, and is noticed by
asking; it is not up again within this time."""


class DatabaseWrapper(base.DatabaseWrapper):
    used_at = -math.inf
    """By the monotonic clock: when a statement last began."""

    def create_cursor(self, name: str | None = None) -> Any:
        self.used_at = time.monotonic()
        return super().create_cursor(name)

    def is_usable(self) -> bool:
        """Asked before the first statement of each request, and after errors. A round trip only where the socket cannot tell."""
        fresh = time.monotonic() - self.used_at < FRESH_SECONDS
        return fresh and not self.errors_occurred and self._silent() or super().is_usable()

    def _silent(self) -> bool:
        """Whether nothing has come since the last answer: no farewell, no end, no notice."""
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return not poll.poll(0)
