"""Counts that stop counting: whatever is asked, the database looks at no more than the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet


def counted(queries: Sequence[QuerySet], most: int) -> list[int]:
    """How many rows each query finds, up to `most` + 1, all by one statement. In what order they are looked through is the
    query's: without one, all that might be found could be sorted."""
    parts, given = [], list[Any]()
    for query in queries:
        try:
            sql, parameters = query.values("pk")[: most + 1].query.sql_with_params()
        except EmptyResultSet:
            parts.append("0")
        else:
            parts.append(f"(select count(*) from ({sql}) found)")
            given += parameters
    with connection.cursor() as cursor:
        cursor.execute(f"select {', '.join(parts)}", given)
        return list(cursor.fetchone())


def written(number: int, most: int) -> str:
    """ "1,000+" beyond `most`."""
    return f"{most:,}+" if number > most else f"{number:,}"
