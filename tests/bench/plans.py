"""What the statements of pages and workers read: which large tables as a whole, and how many rows at most."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.db import connection
from django.test import Client

from runtime.models import Wait
from tests.plans import Asked, explained, plan_of, statements

MANY = 30_000
"""Rows: what looks at more is told."""


def report(made: Any, figures: list[Any]) -> None:
    told = {f"{figure.name}: {_short(one)}": one for figure in figures for one in of_page(made, figure)}
    wait = Wait.objects.filter(state="open", kind="timer").latest("pk")
    told |= {name: plan_of(*asked) for name, asked in statements(wait.run_id, wait.pk, made.flows[-1]).items()}
    whole = {name: one for name, one in told.items() if one.whole}
    many = {name: one for name, one in told.items() if one.rows > MANY and name not in whole}
    print(f"\n{len(told)} statements; {len(whole)} read a large table as a whole, {len(many)} more than {MANY:,} rows.\n")
    for name, one in (whole | many).items():
        print(f"- {name}: {', '.join(f'{rows:,} rows of {table} by {how}' for table, how, rows in one.reads if rows > 1000)}")


def of_page(made: Any, figure: Any, most: int = 8) -> list[Asked]:
    """The statements behind its first addresses."""
    client = Client(HTTP_HOST="127.0.0.1", headers={"HX-Request": "true"} if figure.part else {})
    client.force_login(made.people[figure.who], "django.contrib.auth.backends.ModelBackend")
    with explained() as asked:
        for address in dict.fromkeys(figure.addresses[:most]):
            split = urlsplit(address)
            client.get(split.path, dict(parse_qsl(split.query)))
    return asked


def _short(one: Asked) -> str:
    return " ".join(one.sql.split())[:160]


def scans() -> dict[str, int]:
    """How often each large table was read as a whole since the database began, by anybody."""
    with connection.cursor() as cursor:
        cursor.execute("select relname, seq_scan from pg_stat_user_tables where relname in ('run', 'step_result', 'attempt', 'wait', "
                       "'dispatch', 'log_line', 'outbox', 'run_search')")  # fmt: skip
        return dict(cursor.fetchall())
