"""Retention beside requeues, signals, reruns, mails and starts: each comes before or after a batch, never in between."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import transaction

from runtime import acts, approvals, retention, waits
from runtime.models import Approval, OutboxMessage, Run
from runtime.starts import start
from tests.runtime.engine import at_once, eventually
from tests.runtime.test_retention import EVERYTHING, delete, delete_all, keep, left_of

FAILS = [
    {"id": "both", "type": "parallel", "branches": [
        {"id": "a", "steps": [{"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False}}]},
        {"id": "b", "steps": [{"id": "reply", "type": "callback"}]}]},
]  # fmt: skip


@pytest.fixture
def failed(engine, clock) -> int:
    """A run that failed three days ago, of a flow that keeps its runs for two."""
    version = engine.publish(FAILS)
    keep(version, 2)
    run = engine.start(version)
    worker = engine.worker()
    engine.ends(run, "failed")
    worker.kill()
    clock.advance(days=3)
    return run


# A batch is held up in its middle by a lock on a mail of its run: it has locked the run and deleted nothing yet.


@contextmanager
def batch_in_its_middle(engine, database_url: str, run: int):
    OutboxMessage.objects.create(run_id=run, kind="email", recipient="lee@example.com", message_id="<1@x>", payload={}, state="sent")
    with (
        psycopg.connect(database_url) as holder,
        psycopg.connect(database_url, autocommit=True) as sees,
        ThreadPoolExecutor(1) as thread,
    ):
        holder.execute("select from outbox where run_id = %s for update", [run])
        batch = thread.submit(delete)
        try:
            eventually(lambda: sees.execute(STUCK, ["holdfast", "select run_id, state from outbox%"]).fetchone() or batch.done())
            assert not batch.done()
            yield batch, holder, sees
        finally:
            holder.rollback()


STUCK = """select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
           and application_name = %s and query like %s"""
ANY_STUCK = """select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
               and application_name <> 'holdfast'"""


def beside(engine, database_url: str, run: int, act: Callable[[], Any]) -> tuple[Any, retention.Batch]:
    """Do something to a run while a batch that has locked it is under way. Returns what each of the two returned."""
    with batch_in_its_middle(engine, database_url, run) as (batch, holder, sees), ThreadPoolExecutor(1) as thread:
        acting: Future = thread.submit(lambda: at_once(act)[0])
        eventually(lambda: sees.execute(ANY_STUCK).fetchone() or acting.done())
        holder.commit()
        return acting.result(), batch.result()


def test_a_requeue_that_comes_during_a_batch_finds_no_run(engine, database_url, failed):
    told, batch = beside(engine, database_url, failed, lambda: acts.requeue(failed))
    assert (told, batch.deleted) == (False, 1) and set(left_of(engine, failed).values()) == {0}


def test_a_requeue_that_came_first_keeps_its_run(engine, database_url, failed):
    before = left_of(engine, failed)
    with ThreadPoolExecutor(1) as thread, transaction.atomic():
        assert acts.requeue(failed)
        assert thread.submit(delete).result() == retention.Batch(1, 0), "it does not wait for it either"
    assert delete_all() == 0
    assert engine.state(failed) == "open" and left_of(engine, failed) == before | {"log_line": before["log_line"] + 1}
    engine.release("healed")
    engine.worker()
    waits.signal(failed, "both/b/reply", None, "1")
    engine.ends(failed)


def test_a_signal_that_comes_during_a_batch_leaves_nothing_behind(engine, database_url, failed):
    told, batch = beside(engine, database_url, failed, lambda: waits.signal(failed, "both/b/reply", "x", "1"))
    assert (told, batch.deleted) == (False, 1) and set(left_of(engine, failed).values()) == {0}


def test_a_signal_that_came_first_is_not_torn_from_its_run(engine, failed):
    with ThreadPoolExecutor(1) as thread, transaction.atomic():
        assert waits.signal(failed, "both/b/reply", "x", "1")
        assert thread.submit(delete).result().deleted == 0
    assert delete_all() == 1 and set(left_of(engine, failed).values()) == {0}


def test_a_rerun_that_comes_during_a_batch_starts_nothing(engine, database_url, failed):
    run = Run.objects.get(pk=failed)
    told, batch = beside(engine, database_url, failed, lambda: acts.rerun(run))
    assert isinstance(told, Run.DoesNotExist) and batch.deleted == 1
    assert not Run.objects.exists()


def test_a_mail_that_is_sent_again_during_a_batch_keeps_its_run(engine, database_url, failed):
    with batch_in_its_middle(engine, database_url, failed) as (batch, holder, _):
        holder.execute("update outbox set state = 'queued', due_at = holdfast_now(), attempts = 0 where run_id = %s", [failed])
        holder.commit()
        assert batch.result() == retention.Batch(1, 0)
    assert left_of(engine, failed)["outbox"] == 1


def test_a_start_with_the_key_of_a_run_that_is_just_going_gives_that_run_or_a_new_one(engine, clock):
    """Never an error, never a key without a run: twenty times at one instant with the batch that takes the old one away."""
    version = engine.publish([{"id": "x", "type": "set", "config": {"values": {}}}])
    keep(version, 1)
    worker = engine.worker()
    runs = [engine.start(version, idempotency_key=f"key-{n}", input_hash="h") for n in range(20)]
    for run in runs:
        engine.ends(run)
    worker.kill()
    clock.advance(days=2)
    once = [lambda n=n: start(version, trigger_key="api", input={}, idempotency_key=f"key-{n}", input_hash="h") for n in range(20)]
    batch, *started = at_once(delete, *once)
    assert batch.deleted > 0
    for run, one in zip(runs, started, strict=True):
        assert one.created != (one.run_id == run), one
    delete_all()
    again = [one() for one in once]
    for one, other in zip(started, again, strict=True):
        assert other.created != one.created and Run.objects.filter(pk=other.run_id, state="open").exists()


def test_a_key_whose_run_goes_between_two_looks_is_free_again(engine):
    """The insert makes nothing, as beside a run with that key, and the look for that run finds none. Both are of one statement, and
    nobody comes between them at will: a trigger refuses the first insert in the other run's place."""
    version = engine.publish([{"id": "x", "type": "probe"}])
    engine.sql("""
        create table refused (run int);
        create function refuse_once() returns trigger language plpgsql as $$
        begin
            if exists (select from refused) then return new; end if;
            insert into refused values (1);
            return null;
        end $$;
        create trigger refuse_once before insert on run for each row execute function refuse_once()""")
    try:
        started = start(version, trigger_key="api", input={}, idempotency_key="k")
        assert engine.sql("select count(*) from refused") == [(1,)]
    finally:
        engine.sql("drop trigger refuse_once on run; drop function refuse_once(); drop table refused")
    assert started.created and Run.objects.get().pk == started.run_id


def test_an_answer_to_an_approval_that_is_kept_no_longer_is_too_late(engine, clock):
    version = engine.publish(EVERYTHING[2:3])
    keep(version, 1)
    run = engine.start(version)
    worker = engine.worker()
    engine.wait(run, "ok")
    question = Approval.objects.get(run_id=run)
    recipient = question.recipients.get()
    acts.cancel(run)
    eventually(lambda: not OutboxMessage.objects.exclude(state="sent").exists())
    worker.kill()
    clock.advance(days=2)
    assert delete_all() == 1
    assert approvals.decide(question, "approve", recipient=recipient).state == "ended"
