"""Calls whose price nobody knows: what they cost is "unknown", and never nothing."""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection

# The runs among these with a call that used up tokens for which no price is known.
RUNS = """
select asked.id from unnest(%(runs)s::bigint[]) as asked(id)
where exists (select from attempt a where a.run_id = asked.id and a.tokens_in is not null and a.cost is null)
"""
# The same of the iterations of a loop, by their scopes.
SCOPES = """
select distinct scope from attempt
where run_id = %(run)s and scope = any(%(scopes)s) and tokens_in is not null and cost is null
"""


def unpriced_runs(runs: Collection[int]) -> set[int]:
    return _ids(RUNS, {"runs": list(runs)}) if runs else set()


def unpriced_scopes(run_id: int, scopes: Collection[str]) -> set[str]:
    return _ids(SCOPES, {"run": run_id, "scopes": list(scopes)}) if scopes else set()


def _ids(query: str, values: dict) -> set:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return {found for (found,) in cursor.fetchall()}
