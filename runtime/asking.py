"""Whom an approval asks, and when it asks again: the rows of a question, its mails, its turns, reminders and escalation.

Everything beyond the first mails happens under the run's lock: by whoever decides (the next turn), by a person (remind,
reassign), or by the worker that first sees that `approval.next_at` has come.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.rows import class_row, dict_row

from . import tokens
from .definition import walk
from .models import Run
from .people import started, still_asked
from .steps.base import Mail, Question

BATCH = 50
MOST_REMINDERS = 50

# A mail beside the first one. The next occurrence for this reader, so that it is a message of its own.
ADD_MAIL = """
insert into outbox (run_id, path, take, kind, recipient, occurrence, message_id, payload, state, attempts, due_at, error, created_at)
values (%s, %s, %s, 'approval', %s, %s, %s, %s::jsonb, 'queued', 0, holdfast_now(), '', holdfast_now())
on conflict (run_id, path, take, kind, recipient, occurrence) do nothing
"""
# How often each was written to about this question.
OCCURRENCES = """
select recipient, max(occurrence) from outbox where run_id = %s and path = %s and take = %s and kind = 'approval' group by 1
"""
# Nobody is asked any more.
OVER = """
update approval a set next_at = null from wait w
where w.id = a.wait_id and a.next_at <= (select holdfast_now()) and w.state in ('resolved', 'cancelled')
"""
# Questions of which somebody has to be reminded, or others be asked, before their end: it may still be moved. Held by the
# run's lock; one that a worker writes for just now is left for the next turn.
DUE = """
select a.wait_id, a.run_id, w.path, w.take, w.created_at, w.due_at, run.created_at as run_created_at, a.subject, a.message,
       a.details, a.policy, a.on_expired, a.rules, a.stage, f.team_id, holdfast_now() as now
from approval a join wait w on w.id = a.wait_id join run on run.id = a.run_id join dispatch d on d.run_id = a.run_id
join workflow f on f.id = run.workflow_id
where a.next_at <= (select holdfast_now()) and w.state = 'open' and (w.due_at is null or a.next_at < w.due_at)
order by a.next_at limit %s for no key update of d skip locked
"""
STILL_OPEN = "select from wait where id = %s and state = 'open'"
SILENT = """
select r.id, r.address, r.user_id, r.standby, r.asked_at is not null as asked from recipient r
where r.approval_id = %s and r.handed_to = '' and (r.stage = %s or r.standby)
  and not exists (select from decision where recipient_id = r.id) order by r.id
"""
ASK_STANDBY = "update recipient set asked_at = holdfast_now() where approval_id = %s and standby and asked_at is null"
MOVE = "update approval set next_at = %s, rules = %s::json where wait_id = %s"
LOG = "insert into log_line (run_id, path, level, text, at) values (%s, %s, 'info', %s, holdfast_now())"
# What a step names that runs another flow, as it is live.
SUB_FLOW = """
select live.definition, live.created_at from workflow f
join workflow w on w.id = holdfast_flow(f.team_id, %(name)s, %(made_at)s) join version live on live.id = w.live_version_id
where f.id = %(flow)s
"""


@dataclass(frozen=True, slots=True)
class Due:
    """An open question whose `next_at` has come."""

    wait_id: int
    run_id: int
    path: str
    take: int
    created_at: datetime
    due_at: datetime | None
    run_created_at: datetime
    subject: str
    message: str
    details: list[Any]
    policy: str
    on_expired: str
    rules: dict[str, Any]
    stage: int
    team_id: int
    now: datetime


# At the beginning


def rows_for(question: Question, run_id: int, path: str, take: int) -> list[tuple[str, str, str, str]]:
    """(address, nonce, key id, token hash) for each approver, each with a link of their own."""
    return [(address, *tokens.mint(run_id, path, take, address)) for address in (*question.approvers, *question.standby)]


def turn(question: Question, address: str) -> tuple[int | None, int, bool, bool]:
    """(account, stage, whether asked at once, whether on standby) of an approver."""
    stage, standby = question.stages.get(address, 1), address in question.standby
    return question.accounts.get(address), stage, stage == 1 and not standby, standby


def mails_for(question: Question) -> tuple[Mail, ...]:
    """One message per approver whose turn it is. Link, expiry and the flow's name are put in at sending."""
    asked = [address for address in question.approvers if question.stages.get(address, 1) == 1]
    return tuple(Mail("approval", address, payload(question, address, asked)) for address in asked)


def needed(question: Question) -> int:
    """How many have to approve."""
    match question.policy:
        case "all":
            return len(question.approvers)
        case "count":
            return question.needed
        case "ordered":
            return max(question.stages.values(), default=1)
    return 1


def first_after(rules: Mapping[str, Any]) -> float | None:
    """Seconds from the question to the first reminder or escalation."""
    return min((rules[name] for name in ("remind", "escalate") if name in rules), default=None)


def payload(question: Any, address: str, asked: Iterable[str], why: str = "") -> dict[str, Any]:
    """What a mail says. `question` is a Question, an Approval or a Due; `why` says that it is not the first one."""
    told = {
        "to": [address],
        "subject": question.subject,
        "text": question.message,
        "details": list(question.details),
        "others": [other for other in asked if other != address],
        "policy": "one" if question.policy == "any" and question.rules.get("outvoted") else question.policy,
        "on_expired": question.on_expired,
    }
    return told | ({"why": why} if why else {})


def message_id(run_id: int, created_at: datetime, path: str, take: int, mail: Mail) -> str:
    """An RFC 5322 Message-ID made of the row's key, so that readers can tell a mail that was sent twice."""
    domain = parseaddr(settings.HOLDFAST_MAIL_FROM)[1].rpartition("@")[2] or "holdfast"
    key = f"{run_id}|{created_at.isoformat()}|{path}|{take}|{mail.kind}|{mail.recipient}|{mail.occurrence}"
    return f"<hf.{run_id}.{hashlib.sha256(key.encode()).hexdigest()[:24]}@{domain}>"


def mail_parameters(run_id: int, created_at: datetime, path: str, take: int, mail: Mail) -> list[Any]:
    """The parameters of ADD_MAIL."""
    found = message_id(run_id, created_at, path, take, mail)
    return [run_id, path, take, mail.recipient, mail.occurrence, found, json.dumps(mail.payload)]


# What is left to others than who started the run


def asks_own(run: Run, step: Mapping[str, Any], user: Any) -> bool:
    """Whether the step is a question that must not be answered by who started the run, or a sub-flow that asks one, and this is
    who did: then its output is not theirs to give."""
    return user is not None and _asks_others(run, step, run.version.created_at, set()) and started(run.pk, user)


def _asks_others(run: Run, step: Mapping[str, Any], made_at: datetime, seen: set[str]) -> bool:
    config = step.get("config") or {}
    if step.get("type") == "approval":
        return bool(config.get("no_self"))
    name = config.get("flow")
    if step.get("type") != "workflow" or not isinstance(name, str) or name in seen:
        return False
    seen.add(name)
    with connection.cursor() as cursor:
        cursor.execute(SUB_FLOW, {"name": name, "made_at": made_at, "flow": run.workflow_id})
        rows = cursor.fetchall()
    return any(_asks_others(run, inner, at, seen) for told, at in rows for inner in walk(told.get("steps") or []))


# Later, by a worker


async def ask_again(connection: psycopg.AsyncConnection) -> int:
    """Remind, and ask others, wherever it is time. Returns how many questions it was time for."""
    await connection.execute(OVER)
    async with connection.transaction():
        cursor = connection.cursor(row_factory=class_row(Due))
        found = await (await cursor.execute(DUE, [BATCH])).fetchall()
        for due in found:
            if await (await connection.execute(STILL_OPEN, [due.wait_id])).fetchone() is not None:
                await _ask_again(connection, due)
    return len(found)


async def _ask_again(connection: psycopg.AsyncConnection, due: Due) -> None:
    rules, passed = dict(due.rules), (due.now - due.created_at).total_seconds()
    cursor = connection.cursor(row_factory=dict_row)
    silent = await (await cursor.execute(SILENT, [due.wait_id, due.stage])).fetchall()
    silent = [one for one in silent if not await _has_left(connection, due, one)]
    if "escalate" in rules and not rules.get("escalated") and passed >= rules["escalate"]:
        rules["escalated"] = True
        others = [one["address"] for one in silent if one["standby"]]
        await connection.execute(ASK_STANDBY, [due.wait_id])
        await _write(connection, due, others, "Nobody has settled this yet, so you are asked now. Your answer settles it.")
        told = f"asked {', '.join(others)} too" if others else "the others to ask have left the team"
        await connection.execute(LOG, [due.run_id, due.path, f"Not settled in time; {told}."])
    if "remind" in rules and rules.get("reminded", 0) < (count := int(passed // rules["remind"])):
        rules["reminded"] = count
        late = [one["address"] for one in silent if one["asked"]]
        await _write(connection, due, late, "A reminder: this still waits for your answer.")
        if late:
            await connection.execute(LOG, [due.run_id, due.path, f"Reminded {', '.join(late)}."])
    await connection.execute(MOVE, [_next(due, rules), json.dumps(rules), due.wait_id])


async def _has_left(connection: psycopg.AsyncConnection, due: Due, one: dict[str, Any]) -> bool:
    """Whether they were asked as a member of a team, and are none any more."""
    member_of = (due.rules.get("members") or {}).get(one["address"])
    return bool(member_of) and await (await connection.execute(*still_asked(one["user_id"], member_of, due.team_id))).fetchone() is None


async def _write(connection: psycopg.AsyncConnection, due: Due, addresses: list[str], why: str) -> None:
    rows = await (await connection.execute(OCCURRENCES, [due.run_id, due.path, due.take])).fetchall()
    before = dict(rows)
    for address in addresses:
        mail = Mail("approval", address, payload(due, address, addresses, why), before.get(address, 0) + 1)
        await connection.execute(ADD_MAIL, mail_parameters(due.run_id, due.run_created_at, due.path, due.take, mail))


def _next(due: Due, rules: Mapping[str, Any]) -> datetime | None:
    times = []
    if "remind" in rules and rules.get("reminded", 0) < MOST_REMINDERS:
        times.append(due.created_at + timedelta(seconds=rules["remind"] * (rules.get("reminded", 0) + 1)))
    if "escalate" in rules and not rules.get("escalated"):
        times.append(due.created_at + timedelta(seconds=rules["escalate"]))
    return min(times, default=None)
