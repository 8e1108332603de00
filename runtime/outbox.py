"""Send what is due in the outbox: at least once, each with a Message-ID that stays the same.

A message is claimed under a token and a lease, handed to the mail server outside of any transaction, and settled at
once. A process that dies between the server's word and its own leaves the message to be sent again, which readers can
tell by its Message-ID. Without EMAIL_URL mails stay in the product: the Sent mail page shows them. What goes to other
systems (`notices.py`) takes the same way.
"""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import Coroutine
from email.utils import parseaddr
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg.rows import class_row

from . import notices
from .failpoints import hit
from .mailer import Deferred, Letter, MailServer, Rejected, Rendered, compose, render
from .models import OutboxMessage
from .paths import scope_sql

LEASE_SECONDS = 300.0
WORK_SECONDS = 200.0
"""What is claimed and not begun after this is given back, well before the lease ends."""
FIRST_PAUSE, LONGEST_PAUSE = 15.0, 3600.0
MOST_ATTEMPTS = 100
"""About four days of a server that says "not now": the longest that RFC 5321, section 4.5.4.1, advises."""

CLAIM = """
-- Take due messages, and those whose sender is gone: due by business time, gone by the clock.
with due as materialized (
    select id from outbox
    where state in ('queued', 'sending') and due_at <= (select greatest(holdfast_now(), clock_timestamp()))
      and due_at <= case state when 'queued' then (select holdfast_now()) else clock_timestamp() end
    order by due_at limit %(limit)s for no key update skip locked
)
update outbox o set state = 'sending', token = nextval('claim_token'), worker_id = %(worker)s, attempts = attempts + 1,
    due_at = clock_timestamp() + make_interval(secs => %(lease)s)
from due where o.id = due.id returning o.id, o.token, o.attempts, o.kind
"""
LEFT_BEHIND = """
-- Claimed by a worker that has ended, or has not been heard of for as long as a run's lease: due again at once. A lease by a
-- clock that leapt back since has its length from now on.
update outbox o set due_at = clock_timestamp() + make_interval(secs => case when o.due_at > far then %(lease)s else 0 end)
from worker w, (select clock_timestamp() + make_interval(secs => 2 * %(lease)s) as far) leapt
where o.state = 'sending' and o.worker_id = w.id and o.due_at > clock_timestamp()
  and (w.ended_at is not null or w.beat_at < clock_timestamp() - make_interval(secs => %(silent)s) or o.due_at > far)
"""
READ = f"""
-- A message with what it says besides. A path can ask again: the latest question of its take is meant.
select o.id, o.run_id, o.path, o.take, o.kind, o.recipient, o.message_id, o.payload, coalesce(f.name, '') as flow,
    w.due_at as expires_at, r.nonce, r.key_id
from outbox o
left join run on run.id = o.run_id
left join workflow f on f.id = run.workflow_id
left join lateral (
    select id, due_at from wait where o.kind = 'approval' and run_id = o.run_id and path = o.path and take = o.take
      and scope = {scope_sql('o.path')} and kind = 'approval' order by n desc limit 1
) w on true
left join recipient r on r.approval_id = w.id and r.address = o.recipient
where o.id = %s
"""
FILES = "select key, content from step_file where run_id = %s and key = any(%s)"
SENT = """
-- The mail server took it.
update outbox set state = 'sent', sent_at = holdfast_now(), token = null, error = ''
where id = %(id)s and token = %(token)s and state = 'sending'
"""
FAILED = """
-- It will not be sent; the run's log says so.
with failed as (
    update outbox set state = 'failed', token = null, error = %(error)s
    where id = %(id)s and token = %(token)s and state = 'sending' returning run_id, path, recipient
)
insert into log_line (run_id, path, at, level, text)
select run_id, path, holdfast_now(), 'error', 'The mail to ' || recipient || ' was not sent: ' || %(error)s
from failed where run_id is not null
"""
LATER = """
-- Not now.
update outbox set state = 'queued', token = null, error = %(error)s,
    due_at = holdfast_now() + make_interval(secs => %(pause)s)
where id = %(id)s and token = %(token)s and state = 'sending'
"""
GIVE_BACK = """
-- Claimed and not begun: as if it had not been claimed.
update outbox set state = 'queued', token = null, attempts = attempts - 1, due_at = holdfast_now()
where id = %(id)s and token = %(token)s and state = 'sending'
"""


async def send_due(conn: psycopg.AsyncConnection[Any], worker_id: int | None = None, *, limit: int = 20) -> int:
    """Send at most `limit` due messages, over an autocommit connection. Returns how many were claimed: when it is
    `limit`, there may be more. By the worker's id others know when its claims are left behind."""
    await conn.execute(LEFT_BEHIND, {"lease": LEASE_SECONDS, "silent": settings.HOLDFAST_LEASE_SECONDS})
    asked = {"limit": limit, "lease": LEASE_SECONDS, "worker": worker_id}
    claims = await (await conn.execute(CLAIM, asked)).fetchall()
    if not claims:
        return 0
    hit("outbox.claimed")
    server = MailServer(settings.HOLDFAST_EMAIL) if settings.HOLDFAST_EMAIL else None
    try:
        await _send_all(conn, server, claims)
    finally:
        if server is not None:
            await asyncio.to_thread(server.quit)
    return len(claims)


def add_mail(recipient: str, subject: str, text: str, about: str) -> None:
    """A mail that no run has caused, in the caller's transaction. `about` begins its Message-ID, such as `alert-7`."""
    domain = parseaddr(settings.HOLDFAST_MAIL_FROM)[1].rpartition("@")[2] or "holdfast"
    OutboxMessage.objects.create(
        kind="email", recipient=recipient, message_id=f"<{about}-{uuid.uuid4().hex[:16]}@{domain}>",
        payload={"to": [recipient], "subject": subject, "text": text},
    )  # fmt: skip


def preview(message_id: int) -> Rendered | None:
    """An outbox row as its reader sees it, for the Sent mail page. None: no such row."""
    with connection.cursor() as cursor:
        cursor.execute(READ, [message_id])
        row = cursor.fetchone()
        if row is None:
            return None
        letter = dict(zip((column.name for column in cursor.description), row, strict=True))
    letter["payload"] = json.loads(letter["payload"])  # Django's connections leave jsonb as text
    return render(Letter(**letter))


async def _send_all(
    conn: psycopg.AsyncConnection[Any], server: MailServer | None, claims: list[tuple[Any, ...]]
) -> None:
    """One after the other, mails first. A worker that is told to stop finishes the message in hand and gives the rest
    back."""
    clock, away = asyncio.get_running_loop().time, ""
    left = sorted(claims, key=lambda claim: claim[3] == notices.KIND)
    ends = clock() + WORK_SECONDS
    try:
        while left and clock() < ends:
            pk, token, attempts, kind = left.pop(0)
            if away and kind != notices.KIND:
                await _put_off(conn, pk, token, attempts, away)
            else:
                away = await _to_the_end(_send_one(conn, server, pk, token, attempts))
    finally:
        for pk, token, *_ in left:
            await conn.execute(GIVE_BACK, {"id": pk, "token": token})


async def _to_the_end(work: Coroutine[Any, Any, str]) -> str:
    """The result of `work`, which a cancellation does not cut in two: sent and not settled would be sent twice."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _send_one(
    conn: psycopg.AsyncConnection[Any], server: MailServer | None, pk: int, token: int, attempts: int
) -> str:
    """Send and settle one. Returns why no other can be sent either, or an empty string."""
    try:
        letter = await _letter(conn, pk)
        if letter.kind == notices.KIND:
            await notices.post(letter)
        else:
            message = compose(letter, await _attached(conn, letter))
            if server is not None:
                await asyncio.to_thread(server.send, message, letter.recipient)
    except Deferred as later:
        await _put_off(conn, pk, token, attempts, str(later))
        return str(later) if later.everything else ""
    except (Rejected, ValueError, LookupError) as wrong:
        await conn.execute(FAILED, {"id": pk, "token": token, "error": str(wrong)})
        return ""
    hit("outbox.sent")
    await conn.execute(SENT, {"id": pk, "token": token})
    return ""


async def _letter(conn: psycopg.AsyncConnection[Any], pk: int) -> Letter:
    async with conn.cursor(row_factory=class_row(Letter)) as cursor:
        letter = await (await cursor.execute(READ, (pk,))).fetchone()
    if letter is None:
        raise LookupError("The message is gone.")
    return letter


async def _attached(conn: psycopg.AsyncConnection[Any], letter: Letter) -> dict[str, bytes]:
    """The files that a mail is sent with, by their keys."""
    asked = {one["file"]: one["filename"] for one in letter.payload.get("attachments") or ()}
    if not asked:
        return {}
    found = dict(await (await conn.execute(FILES, [letter.run_id, list(asked)])).fetchall())
    if gone := asked.keys() - found.keys():
        raise LookupError(f"The attachment “{asked[gone.pop()]}” is there no longer.")
    return {key: bytes(content) for key, content in found.items()}


async def _put_off(conn: psycopg.AsyncConnection[Any], pk: int, token: int, attempts: int, why: str) -> None:
    """Full jitter, so that a server that comes back is not met by everything at once."""
    if attempts >= MOST_ATTEMPTS:
        await conn.execute(FAILED, {"id": pk, "token": token, "error": f"Given up after {attempts} attempts. {why}"})
        return
    ceiling = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts - 1, 20))
    await conn.execute(LATER, {"id": pk, "token": token, "pause": random.uniform(0, ceiling), "error": why})
