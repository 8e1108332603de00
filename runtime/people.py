"""Whom a step means when it names people: an address, an account (`@dana`), or a team (`team:Sales`).

An account is one of the flow's own team, or an administrator of the installation; a team is the flow's own, or one whose
administrators let flows of other teams ask it. All others do not exist here: what is said of them is what is said of a name that
nobody has, so that nothing can be learnt of other teams and nobody of theirs be reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from django.contrib.auth import get_user_model
from django.db import connection

from .steps.base import Person, StepError

# Active accounts of some names, and the operators and administrators of some teams: those who may decide approvals.
NAMED = """
select '@' || lower(u.username), u.id, coalesce(u.email, ''), '@' from {users} u
where u.is_active and lower(u.username) = any(%(accounts)s)
  and (u.is_superuser or exists (select from membership where user_id = u.id and team_id = %(team)s))
union all
select 'team:' || lower(t.name), u.id, coalesce(u.email, ''), t.id::text
from team t join membership m on m.team_id = t.id and m.role in ('operator', 'admin') join {users} u on u.id = m.user_id
where u.is_active and lower(t.name) = any(%(teams)s) and (t.id = %(team)s or t.asked_by_others)
order by 1, 2
"""
# Somebody who was asked as a member is one still, or may answer in anybody's place.
STILL = """
select from {users} u where u.id = %(user)s and u.is_active and (u.is_superuser or exists (
    select from membership where user_id = u.id and (
        team_id = %(team)s and (%(as)s = '@' or role in ('operator', 'admin')) or team_id::text = %(as)s and role in ('operator', 'admin'))))
"""
# Who started the run, those that it goes back to as a sub-flow, and those that it was started after, with their input.
STARTERS = """
with recursive before as (
    select id, parent_id, rerun_of_id, started_by_id from run where id = %s
    union select r.id, r.parent_id, r.rerun_of_id, r.started_by_id from run r join before b on r.id in (b.parent_id, b.rerun_of_id)
)
select started_by_id from before where started_by_id is not null
"""
ADDRESSES = f"select id, coalesce(email, '') from {{users}} where id in ({STARTERS}) order by id"


class Reader(Protocol):
    async def query(self, sql: str, parameters: Any) -> list[tuple]: ...


def is_name(entry: str) -> bool:
    """Whether it names an account or a team, and is no address."""
    return entry.startswith("@") or entry.startswith("team:")


def check_name(entry: str) -> None:
    """Raise ValueError unless something is named."""
    if not entry.removeprefix("@").removeprefix("team:").strip():
        raise ValueError("Write the account's name behind the @, or the team's behind “team:”.")


async def named(reader: Reader, entry: str, team_id: int) -> list[Person]:
    """Those whom `@dana` or `team:Sales` means in a flow of this team, with their addresses. Raises StepError."""
    rows = await reader.query(_sql(NAMED), _asked_for([entry], team_id))
    if wrong := _why_not(entry, rows):
        raise StepError(wrong, field="approvers")
    return [Person(email, pk, member_of) for _, pk, email, member_of in rows if email]


def still_asked(user_id: int | None, member_of: str, team_id: int) -> tuple[str, dict[str, Any]]:
    """A statement, which gives a row if a question of a flow of this team still asks somebody that it asked as a member
    (`Person.member_of`)."""
    return _sql(STILL), {"user": user_id, "as": member_of, "team": team_id}


def unknown(entries: Iterable[str], team_id: int) -> dict[str, str]:
    """Of names of accounts and teams those by which a flow of this team can ask nobody, with why and what to do."""
    asked = list(dict.fromkeys(entries))
    with connection.cursor() as cursor:
        cursor.execute(_sql(NAMED), _asked_for(asked, team_id))
        rows = cursor.fetchall()
    told = {entry: _why_not(entry, [row for row in rows if row[0] == _key(entry)]) for entry in asked}
    return {entry: words for entry, words in told.items() if words}


def _key(entry: str) -> str:
    kind = "team:" if entry.strip().startswith("team:") else "@"
    return kind + entry.strip().removeprefix(kind).strip().lower()


def _asked_for(entries: Iterable[str], team_id: int) -> dict[str, Any]:
    keys = [_key(entry) for entry in entries]
    teams = [key.removeprefix("team:") for key in keys if key.startswith("team:")]
    return {"accounts": [key[1:] for key in keys if key.startswith("@")], "teams": teams, "team": team_id}


def _why_not(entry: str, rows: list[tuple]) -> str:
    """Empty where somebody can be asked. The same for what is not there and for what is not theirs to ask."""
    word = entry.strip()
    if any(email for _, _, email, _ in rows):
        return ""
    if rows:
        return f"“{word}” has no e-mail address to ask. Enter one in the account."
    if word.startswith("team:"):
        ask = "Name the flow's own team or one that lets other teams ask it, or write addresses."
    else:
        ask = "Name a member of the flow's team, or write an address."
    return f"There is nobody whom this flow may ask by the name “{word[:100]}”. {ask}"


async def starters(reader: Reader, run_id: int) -> list[Person]:
    """The people with accounts who started the run, or one that it goes back to."""
    return [Person(email, pk) for pk, email in await reader.query(_sql(ADDRESSES), [run_id])]


def started(run_id: int, user: Any) -> bool:
    """Whether this person is one of these."""
    with connection.cursor() as cursor:
        cursor.execute(STARTERS, [run_id])
        return user is not None and (user.pk,) in cursor.fetchall()


def _sql(statement: str) -> str:
    return statement.format(users=get_user_model()._meta.db_table)
