"""The outbox against a real mail server: at least once, with one Message-ID, and nobody held up by anybody."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from runtime import approvals, asking, net, outbox, tokens
from runtime.models import Approval, LogLine, OutboxMessage, Recipient, StepFile, Wait, Worker
from runtime.steps.base import Question
from tests.runtime.engine import eventually
from tests.servers.misbehaving import Misbehaving
from tests.servers.smtp import SmtpServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def smtp(settings):
    with SmtpServer() as server:
        settings.HOLDFAST_EMAIL = server.options
        yield server


def queued(recipient="ann@example.com", *, run_id=7, subject="Hello", text="Dear Ann", **more) -> OutboxMessage:
    payload = {"to": [recipient], "cc": [], "reply_to": [], "subject": subject, "text": text}
    number = OutboxMessage.objects.count()
    return OutboxMessage.objects.create(
        run_id=run_id, path=f"mail{number}", kind="email", recipient=recipient,
        message_id=f"<{number}@holdfast.example>", payload=payload | more,
    )  # fmt: skip


def send(database_url: str, senders: int = 1) -> int:
    """How many messages were claimed by so many senders at the same time."""

    async def one() -> int:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
            try:
                return await outbox.send_due(conn)
            finally:
                await net.close()

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(one() for _ in range(senders)))

    return sum(asyncio.run(all_of_them()))


def test_a_due_message_is_sent_with_its_headers(smtp, database_url):
    row = queued(reply_to=["sales@example.com"], subject="Grüße", text="Dear <b>Ann</b>,\n\nthank you.")
    assert send(database_url) == 1
    [taken] = smtp.taken
    message = taken["message"]
    assert taken["recipients"] == ["ann@example.com"]
    assert (
        message["Subject"] == "Grüße"
        and message["Reply-To"] == "sales@example.com"
        and message["To"] == "ann@example.com"
    )
    assert message["Message-ID"] == row.message_id
    assert message.get_body(("plain",)).get_content().replace("\r\n", "\n") == "Dear <b>Ann</b>,\n\nthank you.\n"
    html = message.get_body(("html",)).get_content()
    assert "Dear &lt;b&gt;Ann&lt;/b&gt;" in html and "prefers-color-scheme: dark" in html
    row.refresh_from_db()
    assert row.state == "sent" and row.sent_at is not None and row.token is None
    assert send(database_url) == 0, "once is enough"


def test_a_message_goes_out_with_its_files(smtp, database_url):
    files = [{"filename": "Grüße.pdf", "type": "application/pdf", "size": 5, "file": "a"}, {"filename": "x.eml", "type": "message/rfc822", "size": 1, "file": "b"}]
    StepFile.objects.create(run_id=7, path="fetch", take=1, key="a", content=b"%PDF\x00")
    StepFile.objects.create(run_id=7, path="trigger:mail", take=1, key="b", content=b"From: x")
    queued(attachments=files)
    lost = queued(run_id=8, attachments=files[:1])
    send(database_url)
    [message] = [taken["message"] for taken in smtp.taken]
    first, second = message.iter_attachments()
    assert (first.get_filename(), first.get_content_type(), first.get_content()) == ("Grüße.pdf", "application/pdf", b"%PDF\x00")
    assert (second.get_filename(), second.get_content_type()) == ("x.eml", "application/octet-stream")
    assert "Dear Ann" in message.get_body(("plain",)).get_content()
    lost.refresh_from_db()
    assert lost.state == "failed" and "“Grüße.pdf” is there no longer" in lost.error, "it is another run's"


def test_a_message_that_is_not_due_waits(smtp, database_url, clock):
    queued()
    OutboxMessage.objects.update(due_at=clock.now() + timedelta(hours=1))
    assert send(database_url) == 0
    clock.advance(hours=1)
    assert send(database_url) == 1 and len(smtp.taken) == 1


def test_a_recipient_that_is_refused_fails_with_its_reason_and_holds_up_nobody(smtp, database_url):
    rows = [queued("first@example.com"), queued("refused@example.com"), queued("last@example.com")]
    assert send(database_url) == 3
    for row in rows:
        row.refresh_from_db()
    assert [row.state for row in rows] == ["sent", "failed", "sent"]
    assert rows[1].error == "550 No such user here"
    [line] = LogLine.objects.all()
    assert (line.run_id, line.path, line.level) == (7, rows[1].path, "error") and "550 No such user here" in line.text
    assert [taken["recipients"] for taken in smtp.taken] == [["first@example.com"], ["last@example.com"]]


def test_not_now_is_tried_again_later(smtp, database_url, clock):
    row = queued("later@example.com")
    other = queued("ann@example.com")
    send(database_url)
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.state, row.attempts, row.error) == ("queued", 1, "451 Try again later") and other.state == "sent"
    assert clock.now() - timedelta(seconds=1) < row.due_at <= clock.now() + timedelta(seconds=outbox.FIRST_PAUSE)
    smtp.handler.refusals.clear()
    clock.advance(seconds=outbox.FIRST_PAUSE)
    assert send(database_url) == 1
    row.refresh_from_db()
    assert (row.state, row.error) == ("sent", "")


def test_it_is_not_tried_for_ever(smtp, database_url):
    row = queued("later@example.com")
    OutboxMessage.objects.update(attempts=outbox.MOST_ATTEMPTS - 1)
    send(database_url)
    row.refresh_from_db()
    assert row.state == "failed" and "Given up" in row.error and "451" in row.error


def test_a_server_that_is_away_puts_everything_off(database_url, settings):
    with SmtpServer() as gone:
        settings.HOLDFAST_EMAIL = gone.options
    rows = [queued(), queued()]
    assert send(database_url) == 2
    for row in rows:
        row.refresh_from_db()
        assert row.state == "queued" and "cannot be reached" in row.error


def test_a_line_cut_after_the_message_was_taken_sends_it_again_under_the_same_id(smtp, database_url, clock):
    smtp.handler.drops.add("ann@example.com")
    row = queued()
    send(database_url)
    row.refresh_from_db()
    assert row.state == "queued" and len(smtp.taken) == 1
    smtp.handler.drops.clear()
    clock.advance(minutes=5)
    send(database_url)
    first, second = (taken["message"]["Message-ID"] for taken in smtp.taken)
    assert first == second == row.message_id


@pytest.mark.parametrize(("failpoint", "sent"), [("outbox.claimed", 0), ("outbox.sent", 1)])
def test_a_sender_that_dies_is_followed_by_another_when_its_lease_ends(smtp, database_url, failpoint, sent):
    row = queued()
    die = subprocess.run([sys.executable, "-c", SENDER], env=os.environ | {
        "DATABASE_URL": database_url, "EMAIL_URL": smtp.url, "HOLDFAST_FAILPOINT": f"{failpoint}:1",
    })  # fmt: skip
    assert die.returncode == -9 and len(smtp.taken) == sent
    assert send(database_url) == 0, "its lease still runs"
    OutboxMessage.objects.filter(state="sending").update(due_at=timezone.now())
    assert send(database_url) == 1
    row.refresh_from_db()
    assert row.state == "sent" and {taken["message"]["Message-ID"] for taken in smtp.taken} == {row.message_id}


@pytest.mark.parametrize("gone", ["ended_at = clock_timestamp()", "beat_at = clock_timestamp() - interval '31 seconds'"])
def test_what_a_worker_left_behind_is_sent_without_waiting_for_the_claims_end(smtp, database_url, gone):
    row = queued()
    worker = Worker.objects.create(cluster="x", host="x", pid=1)

    async def claimed() -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
            await conn.execute(outbox.CLAIM, {"limit": 1, "lease": 300, "worker": worker.pk})

    asyncio.run(claimed())
    assert send(database_url) == 0, "its worker is heard of"
    with connection.cursor() as cursor:
        cursor.execute(f"update worker set {gone}")
    assert send(database_url) == 1
    row.refresh_from_db()
    assert row.state == "sent" and len(smtp.taken) == 1


def test_a_claim_by_a_clock_that_leapt_back_since_ends_like_any_other(smtp, database_url):
    row, worker = queued(), Worker.objects.create(cluster="x", host="x", pid=1)
    ahead = timezone.now() + timedelta(hours=5)
    OutboxMessage.objects.filter(pk=row.pk).update(state="sending", token=1, worker_id=worker.pk, due_at=ahead)
    assert send(database_url) == 0
    row.refresh_from_db()
    assert timedelta(seconds=290) < row.due_at - timezone.now() < timedelta(seconds=301)


def test_a_mail_whose_worker_is_killed_goes_out_with_its_runs_next_owner(engine, smtp):
    step = {"id": "mail", "type": "email", "config": {"to": ["ann@example.com"], "subject": "Hello", "body": "Dear Ann"}}
    run = engine.start(engine.publish([step]))
    mail = {"email": smtp.options, "lease_seconds": 3}
    worker = engine.worker(failpoint="outbox.claimed", **mail)
    assert worker.ended() == -9
    engine.worker(**mail)
    eventually(lambda: OutboxMessage.objects.filter(run_id=run, state="sent").exists())
    assert len(smtp.taken) == 1


HOSTILE = "<img src=x onerror=alert(1)>"


def test_an_approvers_comment_is_text_in_a_mail(engine, smtp):
    ask = {"id": "ok", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "Go?"}}
    mail = {"id": "mail", "type": "email", "config": {
        "to": ["ann@example.com"], "subject": "Dana says", "body": "She wrote: {{ steps.ok.output.comment }}"}}  # fmt: skip
    run = engine.start(engine.publish([ask, mail]))
    engine.worker(email=smtp.options)
    engine.wait(run, "ok")
    question = Approval.objects.get(run_id=run)
    approvals.decide(question, "approve", comment=HOSTILE, recipient=question.recipients.first())
    engine.ends(run)
    [sent] = eventually(lambda: [one for one in smtp.taken if one["recipients"] == ["ann@example.com"]])
    html = sent["message"].get_body(("html",)).get_content()
    assert HOSTILE not in html and "&lt;img src=x onerror=alert(1)&gt;" in html
    assert HOSTILE in sent["message"].get_body(("plain",)).get_content()


SENDER = """
import asyncio, django
django.setup()
from runtime.database import connect
from runtime.outbox import send_due

async def send():
    await send_due(await connect())

asyncio.run(send())
"""


def test_two_senders_never_send_one_message_twice(smtp, database_url):
    for number in range(30):
        queued(f"a{number}@example.com")

    assert send(database_url, senders=3) == 30
    assert len(smtp.taken) == 30 and len({taken["recipients"][0] for taken in smtp.taken}) == 30


def test_a_sender_that_lost_its_lease_settles_nothing(smtp, database_url):
    row = queued()
    with connection.cursor() as cursor:
        cursor.execute(outbox.CLAIM, {"limit": 1, "lease": 300, "worker": None})
        _, token, *_ = cursor.fetchone()
    OutboxMessage.objects.update(token=token + 1)
    with connection.cursor() as cursor:
        cursor.execute(outbox.FAILED, {"id": row.pk, "token": token, "error": "late"})
        cursor.execute(outbox.SENT, {"id": row.pk, "token": token})
    row.refresh_from_db()
    assert row.state == "sending" and not LogLine.objects.exists()


def test_a_worker_that_stops_finishes_the_message_in_hand_and_gives_the_rest_back(smtp, database_url):
    smtp.handler.held = threading.Event()
    rows = [queued(), queued(), queued()]

    async def stopped() -> None:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
            sending = asyncio.ensure_future(outbox.send_due(conn))
            await asyncio.to_thread(smtp.wait, 1)
            sending.cancel()
            await asyncio.sleep(0)
            smtp.handler.held.set()
            with pytest.raises(asyncio.CancelledError):
                await sending

    asyncio.run(stopped())
    for row in rows:
        row.refresh_from_db()
    assert [row.state for row in rows] == ["sent", "queued", "queued"]
    assert [row.attempts for row in rows] == [1, 0, 0] and len(smtp.taken) == 1


def test_without_a_mail_server_messages_stay_in_the_product(database_url, settings):
    settings.HOLDFAST_EMAIL = None
    row = queued()
    assert send(database_url) == 1
    row.refresh_from_db()
    assert row.state == "sent"
    assert "Dear Ann" in outbox.preview(row.pk).text and outbox.preview(row.pk + 1) is None


def test_a_header_that_would_become_two_fails_and_is_not_sent(smtp, database_url):
    row = queued(subject="a\r\nBcc: evil@x.example")
    send(database_url)
    row.refresh_from_db()
    assert row.state == "failed" and "line break" in row.error and smtp.taken == []


# Approval mails


def asked(address="dana@example.com", *others: str) -> tuple[OutboxMessage, Recipient]:
    question = Question(
        subject="VIP outreach?", approvers=(address, *others), message="Please look.\n\nThank you.",
        details=({"label": "Lead", "value": "<img src=x onerror=alert(1)>"}, {"label": "Score", "value": 82}),
    )  # fmt: skip
    wait = Wait.objects.create(run_id=7, path="ok", kind="approval", due_at=timezone.now() + timedelta(days=3))
    approval = Approval.objects.create(wait=wait, run_id=7, subject=question.subject)
    for name, nonce, key_id, token_hash in asking.rows_for(question, 7, "ok", 1):
        Recipient.objects.create(approval=approval, address=name, nonce=nonce, key_id=key_id, token_hash=token_hash)
    mail = asking.mails_for(question)[0]
    row = OutboxMessage.objects.create(
        run_id=7,
        path="ok",
        kind=mail.kind,
        recipient=mail.recipient,
        message_id="<a@holdfast.example>",
        payload=mail.payload,
    )
    return row, approval.recipients.get(address=address)


def test_an_approvers_mail_carries_a_link_that_only_now_exists(smtp, database_url, settings):
    settings.HOLDFAST_PUBLIC_URL = "https://flows.example"
    row, recipient = asked("dana@example.com", "lee@example.com")
    assert "/a/" not in str(row.payload)
    send(database_url)
    [taken] = smtp.taken
    text = taken["message"].get_body(("plain",)).get_content()
    link = next(word for word in text.split() if word.startswith("https://flows.example/a/"))
    assert tokens.token_hash(link.rstrip("/").rpartition("/")[2]) == recipient.token_hash
    assert "lee@example.com was asked too; the first answer counts." in text and "Score  82" in text
    html = taken["message"].get_body(("html",)).get_content()
    assert "<img" not in html and "&lt;img src=x" in html and f'href="{link}"' in html
    assert approvals.find(link.rstrip("/").rpartition("/")[2]) == recipient


def test_sending_again_makes_the_same_link_also_after_rotation(smtp, database_url, settings):
    settings.HOLDFAST_LINK_KEYS = ["old"]
    row, _ = asked()
    first = outbox.preview(row.pk).link
    settings.HOLDFAST_LINK_KEYS = ["new", "old"]
    assert outbox.preview(row.pk).link == first


def test_a_link_whose_key_is_gone_fails_and_says_so(smtp, database_url, settings):
    settings.HOLDFAST_LINK_KEYS = ["old"]
    row, _ = asked()
    settings.HOLDFAST_LINK_KEYS = ["new"]
    send(database_url)
    row.refresh_from_db()
    assert row.state == "failed" and "HOLDFAST_LINK_KEYS" in row.error and smtp.taken == []


def test_a_webhook_goes_out_beside_the_mails_and_is_tried_again(database_url, settings):
    """Without a mail server, too; what the guarded client will not reach fails at once."""
    event = {"event": {"type": "alert.begun"}, "sender": "alerts of team 0"}
    rows = []
    with Misbehaving() as server:
        settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = [server.url.partition("//")[2]]
        places = [f"{server.url}/plain", f"{server.url}/status?code=500", f"{server.url}/status?code=410"]
        for number, url in enumerate([*places, "http://127.0.0.1:1/"]):
            rows.append(queued(url, run_id=None, **event))
            OutboxMessage.objects.filter(pk=rows[-1].pk).update(kind="webhook", message_id=f"alert-{number}")
        rows.append(queued())
        assert send(database_url) == 5
    for row in rows:
        row.refresh_from_db()
    assert [row.state for row in rows] == ["sent", "queued", "failed", "failed", "sent"], [row.error for row in rows]
    assert "500" in rows[1].error and "410" in rows[2].error
