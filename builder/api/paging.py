"""Keyset pages: a cursor is the last id seen, so that pages stay right while rows come in, and all cost the same."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from django.db.models import Model, QuerySet
from ninja import Query

from .errors import Refused

M = TypeVar("M", bound=Model)
Limit = Annotated[int, Query(50, ge=1, le=200)]
Cursor = Annotated[str | None, Query(None, max_length=20, description="`next` of the page before.")]


def page(rows: QuerySet[M], cursor: str | None, limit: int, key: str = "pk") -> tuple[list[M], str | None]:
    """(rows, next cursor), by descending `key`."""
    if cursor is not None:
        rows = rows.filter(**{f"{key}__lt": _number(cursor)})
    found = list(rows.order_by(f"-{key}")[: limit + 1])
    return found[:limit], str(getattr(found[limit - 1], key)) if len(found) > limit else None


def _number(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit()):
        raise Refused(422, "This cursor is not one of ours.", [_problem()])
    return int(cursor)


def _problem() -> dict[str, Any]:
    return {"step": "", "field": "query.cursor", "message": "Pass `next` of the page before, as it is."}
