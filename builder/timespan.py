"""Runs of a span of time, found by their numbers: runs are numbered in the order in which they begin, and `created_at` has
no index. A run that began within `SLACK` of another may have the smaller number, so callers ask for the times as well."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q

SLACK = timedelta(minutes=10)
# The smallest number from which on runs began at that time or later: the span of numbers is halved until one is left.
FIRST_SINCE = """
with recursive look(least, most) as (
    select min(id), max(id) + 1 from run
    union all
    select case when found.created_at < %(moment)s then found.id + 1 else least end,
        case when found.created_at < %(moment)s then most else (least + most) / 2 end
    from look cross join lateral (
        select id, created_at from run where id >= (least + most) / 2 order by id limit 1
    ) found
    where least < most
)
select least from look where least >= most
"""


def first_since(moment: datetime) -> int:
    """0 while there are no runs."""
    with connection.cursor() as cursor:
        cursor.execute(FIRST_SINCE, {"moment": moment})
        row = cursor.fetchone()
    return row[0] if row else 0


def between(begin: datetime | None, end: datetime | None) -> Q:
    """Runs that began at `begin` or later and before `end`."""
    found = Q()
    if begin is not None:
        found &= Q(pk__gte=first_since(begin - SLACK), created_at__gte=begin)
    if end is not None:
        found &= Q(pk__lt=first_since(end + SLACK), created_at__lt=end)
    return found
