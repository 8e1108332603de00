"""Django's Postgres, but for two things: a connection that was in use a moment ago tells by its socket whether it still lives, and
a statement that is all there is to a request can be asked without a cursor."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Sequence
from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus

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

    def ask(self, sql: str, parameters: Sequence[Any]) -> list[str | None]:
        """The row that a statement gives, as texts. Its parameters stand in it as `$1`, `$2` and so on, and go as texts.

        One call of libpq: the cursors of psycopg and Django take three times as much of the processor. Raises what they raise."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        self.used_at = time.monotonic()
        if self.queries_logged:
            self.queries_log.append({"sql": sql, "time": "0"})
        texts = [None if value is None else str(value).encode() for value in parameters]
        with self.wrap_database_errors:
            result = self.connection.pgconn.exec_params(sql.encode(), texts)
            if result.status != ExecStatus.TUPLES_OK:
                refused = result.error_field(DiagnosticField.SQLSTATE)  # else the connection is gone
                raise error_from_result(result) if refused else psycopg.OperationalError(result.get_error_message())
        values = [result.get_value(0, column) for column in range(result.nfields)]
        return [None if value is None else value.decode() for value in values]
