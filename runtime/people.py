"""Whom a step means when it names people: an address, an account (`@dana`), or a team (`team:Sales`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from django.contrib.auth import get_user_model
from django.db import connection

from .steps.base import Person, StepError

# Active accounts of some names, and the operators and administrators of some teams: those who may decide approvals.
NAMED = """
select '@' || lower(u.username), u.id, coalesce(u.email, '') from {users} u
where u.is_active and lower(u.username) = any(%(accounts)s)
union all
select 'team:' || lower(t.name), u.id, coalesce(u.email, '')
from team t join membership m on m.team_id = t.id and m.role in ('operator', 'admin') join {users} u on u.id = m.user_id
where u.is_active and lower(t.name) = any(%(teams)s)
order by 1, 2
"""
# Who started the run, or the one that started it.
STARTER = """
with recursive above as (
    select id, parent_id, started_by_id from run where id = %s
    union all select r.id, r.parent_id, r.started_by_id from run r join above on r.id = above.parent_id
)
select started_by_id from above where started_by_id is not null order by id desc limit 1
"""
ADDRESS = f"select id, coalesce(email, '') from {{users}} where id = ({STARTER})"


class Reader(Protocol):
    async def query(self, sql: str, parameters: Any) -> list[tuple]: ...


def is_name(entry: str) -> bool:
    """Whether it names an account or a team, and is no address."""
    return entry.startswith("@") or entry.startswith("team:")


def check_name(entry: str) -> None:
    """Raise ValueError unless something is named."""
    if not entry.removeprefix("@").removeprefix("team:").strip():
        raise ValueError("Write the account's name behind the @, or the team's behind “team:”.")


async def named(reader: Reader, entry: str) -> list[Person]:
    """Those whom `@dana` or `team:Sales` means, with their addresses. Raises StepError."""
    word, team = entry.strip(), entry.startswith("team:")
    name = word.removeprefix("team:").removeprefix("@").strip().lower()
    parameters = {"accounts": [] if team else [name], "teams": [name] if team else []}
    rows = await reader.query(_sql(NAMED), parameters)
    found = [Person(email, pk) for _, pk, email in rows if email]
    if found:
        return found
    if rows:
        raise StepError(f"“{word}” has no e-mail address to ask. Enter one in the account.", field="approvers")
    what = "team with operators" if team else "active account"
    raise StepError(f"There is no {what} of the name “{name}”.", field="approvers")


async def starter(reader: Reader, run_id: int) -> Person | None:
    """Who started the run, or the one that it is a sub-flow of, if it was somebody with an account."""
    rows = await reader.query(_sql(ADDRESS), [run_id])
    return Person(rows[0][1], rows[0][0]) if rows else None


def asks_own(run_id: int, step: Mapping[str, Any], user: Any) -> bool:
    """Whether the step is a question that must not be answered by who started the run, and this is who did."""
    if user is None or step.get("type") != "approval" or not (step.get("config") or {}).get("no_self"):
        return False
    with connection.cursor() as cursor:
        cursor.execute(STARTER, [run_id])
        row = cursor.fetchone()
    return row is not None and row[0] == user.pk


def _sql(statement: str) -> str:
    return statement.format(users=get_user_model()._meta.db_table)
