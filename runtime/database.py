"""psycopg connections beside Django's, for the worker's event loop and its lease thread."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

LET_GO = "set_config('idle_in_transaction_session_timeout', '10s', true)"
"""Part of what locks a run: whoever is stopped or cut off before the transaction's end loses the session, and the lock."""


def conninfo() -> str:
    """The libpq connection string of Django's default database."""
    database = settings.DATABASES["default"]
    parts = {"dbname": database["NAME"], "user": database.get("USER"), "password": database.get("PASSWORD"),
             "host": database.get("HOST"), "port": database.get("PORT")}
    options = {name: value for name, value in (database.get("OPTIONS") or {}).items() if isinstance(value, str | int)}
    # Keep-alives say nothing while something sent is unanswered: then tcp_user_timeout (ms) notices that a server is gone.
    keepalive = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000,
                 "connect_timeout": 10}
    return make_conninfo(**{name: value for name, value in parts.items() if value}, **{**keepalive, **options})


def session(name: str) -> dict[str, Any]:
    """How psycopg connects with `conninfo()`; `name` shows in pg_stat_activity. Where only LISTEN goes directly there is a pooler
    in between, which may give each transaction another session: then no statement is prepared by name for the next."""
    pooled = {"prepare_threshold": None} if settings.HOLDFAST_LISTEN_URL else {}
    return {"autocommit": True, "application_name": name, **pooled}


async def connect(name: str = "holdfast") -> AsyncConnection:
    return await AsyncConnection.connect(conninfo(), **session(name))
