"""Finished runs go when they are old, with all that they left; unfinished ones never do, whoever comes at that instant."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from runtime import acts, retention, signals, waits
from runtime.database import connect
from runtime.models import AuditEntry, NamedSignal, OutboxMessage, Run, RunEnd
from runtime.outbox import add_mail
from tests.runtime.engine import eventually

TABLES = ("step_result", "attempt", "log_line", "wait", "signal", "approval", "outbox", "frame", "frame_chunk", "frame_value")
EVERYTHING = [
    {"id": "each", "type": "loop", "config": {"items": "[1, 2]", "collect": "loop.item"}, "steps": [{"id": "call", "type": "probe"}]},
    {"id": "reply", "type": "callback"},
    {"id": "ok", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "?"}},
    {"id": "told", "type": "email", "config": {"to": ["lee@example.com"], "subject": "Hello", "body": "Hello"}},
]


def delete(*, wait: bool = False) -> retention.Batch:
    async def batch() -> retention.Batch:
        async with await connect() as own:
            return await retention.delete_batch(own, wait=wait)

    return asyncio.run(batch())


def delete_all() -> int:
    deleted = 0
    while batch := delete().deleted:
        deleted += batch
    return deleted


def keep(version: Any, days: int | None) -> None:
    version.workflow.retention_days = days
    version.workflow.save(update_fields=["retention_days"])


def left_of(engine, run: int) -> dict[str, int]:
    """How many rows of the run there are, by table."""
    counts = {table: engine.sql(f"select count(*) from {table} where run_id = %s", run)[0][0] for table in TABLES}
    for table in ("recipient", "decision"):
        counts[table] = engine.sql(
            f"select count(*) from {table} where approval_id in (select wait_id from approval where run_id = %s)", run
        )[0][0]
    return counts | {"run": Run.objects.filter(pk=run).count()}


def test_a_run_goes_with_all_that_it_left_when_it_is_old_and_no_sooner(engine, clock):
    version = engine.publish(EVERYTHING)
    keep(version, 30)
    run = engine.start(version, idempotency_key="once")
    worker = engine.worker()
    engine.drive(clock, [run], lambda: engine.state(run) == "succeeded")
    eventually(lambda: not OutboxMessage.objects.exclude(state="sent").exists())
    worker.kill()
    again = acts.rerun(Run.objects.get(pk=run))
    acts.cancel(again)
    before = left_of(engine, run)
    assert {table for table, rows in before.items() if not rows} <= {"frame"}, before
    clock.advance(days=29, hours=23)
    assert delete() == retention.Batch(0, 0)
    engine.sql("update run set ended_at = ended_at + interval '1 day' where id = %s", again)
    clock.advance(hours=2)
    assert delete() == retention.Batch(1, 1)
    assert set(left_of(engine, run).values()) == {0}
    assert Run.objects.get(pk=again).rerun_of_id is None
    assert AuditEntry.objects.filter(subject=f"run:{run}", action="approve").exists(), "the audit trail stays"


def test_a_signal_that_nobody_waited_for_is_kept_for_30_days_and_no_longer(engine, clock):
    version = engine.publish([{"id": "paid", "type": "callback", "config": {"signal": "paid", "key": "17"}}])
    team = version.workflow.team_id
    assert signals.send(team, "paid", "17", {"old": True}, "a") == "kept"
    clock.advance(days=29)
    assert signals.send(team, "paid", "18", None, "a") == "kept"
    call_command("retention", stdout=StringIO())
    assert NamedSignal.objects.count() == 2
    clock.advance(days=1, seconds=1)
    engine.worker()
    run = engine.start(version)
    engine.wait(run, "paid")
    engine.parked(run)
    call_command("retention", stdout=StringIO())
    assert NamedSignal.objects.get().key == "18"
    assert signals.send(team, "paid", "17", {"old": False}, "a") == "taken"
    engine.ends(run)


def test_who_keeps_for_how_long(engine, clock, settings):
    settings.HOLDFAST_RETENTION_DAYS = 10
    versions = {days: engine.publish([{"id": "x", "type": "set", "config": {"values": {}}}]) for days in (None, 0, 5, 20)}
    runs = {}
    for days, version in versions.items():
        keep(version, days)
        runs[days] = engine.start(version)
    worker = engine.worker()
    for run in runs.values():
        engine.ends(run)
    worker.kill()
    for days, gone in ((6, {5}), (5, {None, 5}), (10, {None, 5, 20}), (9999, {None, 5, 20})):
        clock.advance(days=days)
        delete_all()
        assert {days for days, run in runs.items() if not Run.objects.filter(pk=run).exists()} == gone
    settings.HOLDFAST_RETENTION_DAYS = 0
    keep(versions[0], None)
    assert delete_all() == 0, "nothing goes unless somebody says so"


@pytest.mark.fault(33)
def test_what_is_unfinished_is_never_touched_however_old(engine, clock):
    ask = [{"id": "odd", "type": "probe", "on_interrupted": "ask", "config": {"fail": 9, "outcome": "unknown"}}]
    versions = [engine.publish(steps) for steps in (ask, [{"id": "reply", "type": "callback"}], ask)]
    runs = [engine.start(version) for version in versions]
    worker = engine.worker()
    engine.wait(runs[0], "odd", "person")
    engine.parked(runs[1])
    worker.kill()
    for version in versions:
        keep(version, 1)
    clock.advance(days=4000)
    before = [left_of(engine, run) for run in runs]
    assert delete_all() == 0 and [left_of(engine, run) for run in runs] == before


def test_a_mail_that_is_still_to_go_keeps_its_run(engine, clock):
    version = engine.publish(EVERYTHING[3:])
    keep(version, 1)
    run = engine.start(version)
    worker = engine.worker()
    engine.ends(run)
    eventually(lambda: OutboxMessage.objects.filter(state="sent").exists())
    worker.kill()
    engine.sql("update outbox set state = 'queued', due_at = holdfast_now() + interval '9 days'")
    clock.advance(days=3)
    assert delete_all() == 0
    engine.sql("update outbox set state = 'sending'")
    engine.sql("update outbox set state = 'failed', error = 'Never.'")
    assert delete_all() == 1


def test_what_a_run_that_goes_on_started_stays_and_what_is_still_to_follow_an_end(engine):
    version = engine.publish([{"id": "x", "type": "probe"}])
    keep(version, 1)
    parent, child, ended = (engine.start(version) for _ in range(3))
    for run in (child, ended):
        acts.cancel(run)
    engine.sql("update run set parent_id = %s where id = %s", parent, child)
    engine.sql("insert into run_end (run_id, failure_flow) values (%s, '')", ended)
    engine.sql("update run set ended_at = ended_at - interval '3 days' where ended_at is not null")
    assert delete_all() == 0
    acts.cancel(parent)
    engine.sql("delete from run_end")
    assert delete_all() == 2 and Run.objects.filter(pk=parent).exists()


def test_what_a_failed_run_waits_for_stays_for_its_requeue(engine):
    child = engine.publish([{"id": "ask", "type": "callback"}])
    keep(child, 1)
    run = engine.start(engine.publish([{"id": "sub", "type": "workflow", "config": {"flow": child.workflow.name}}]))
    worker = engine.worker()
    engine.wait(run, "sub")
    below = Run.objects.get(parent_id=run).pk
    assert acts.force_fail(run) and waits.signal(below, "ask", 1, "1")
    engine.ends(below)
    eventually(lambda: not RunEnd.objects.exists())
    worker.kill()
    engine.sql("update run set ended_at = ended_at - interval '3 days' where ended_at is not null")
    assert delete_all() == 0
    assert acts.requeue(run)
    engine.worker()
    engine.ends(run)
    engine.sql("update run set ended_at = ended_at - interval '3 days' where ended_at is not null")
    assert eventually(delete_all) == 1 and not Run.objects.filter(pk=below).exists()


def test_a_signal_that_a_run_took_by_its_name_goes_with_it_and_one_that_nobody_took_stays(engine):
    version = engine.publish([{"id": "paid", "type": "callback", "config": {"signal": "paid", "key": "17"}}])
    keep(version, 1)
    run = engine.start(version)
    team = version.workflow.team_id
    for dedupe in "ab":
        signals.send(team, "paid", "17", {"amount": 5}, dedupe)
    worker = engine.worker()
    engine.ends(run)
    worker.kill()
    engine.sql("update run set ended_at = ended_at - interval '3 days'")
    assert delete_all() == 1
    assert list(NamedSignal.objects.values_list("wait_id", flat=True)) == [None]


def test_mails_that_no_run_has_caused_are_kept_as_long_as_runs_usually_are(engine, clock, settings):
    for state in ("sent", "failed", "queued"):
        add_mail("ops@example.com", "Hello", "Hello", f"alert-{state}")
        OutboxMessage.objects.filter(message_id__startswith=f"<alert-{state}").update(state="sending")
        OutboxMessage.objects.filter(message_id__startswith=f"<alert-{state}").update(state=state)

    async def forgotten() -> int:
        async with await connect() as own:
            return await retention.forget_mails(own)

    told = []
    for days, kept in ((31, 0), (0, 40), (0, 30)):
        clock.advance(days=days)
        settings.HOLDFAST_RETENTION_DAYS = kept
        told.append(asyncio.run(forgotten()))
    assert told == [0, 0, 2] and OutboxMessage.objects.get().state == "queued"


def test_a_history_outlives_its_flows_deletion(engine, clock):
    from builder.flowmaking import delete_flow

    version = engine.publish([{"id": "x", "type": "probe"}])
    keep(version, 30)
    run = engine.start(version)
    worker = engine.worker()
    engine.ends(run)
    worker.kill()
    assert delete_flow(version.workflow, user=None)
    clock.advance(days=29)
    assert delete_all() == 0 and engine.results(run) and engine.log(run)
    clock.advance(days=2)
    assert delete_all() == 1


def test_batches_are_small_and_a_run_is_never_divided(engine, monkeypatch):
    version = engine.publish([{"id": "x", "type": "probe"}])
    keep(version, 1)
    engine.sql(
        """insert into run (workflow_id, version_id, trigger_key, input_hash, input, state, title, test, created_at, ended_at)
           select %s, %s, 'api', '', '{}', 'succeeded', '', false, now(), now() - interval '9 days' + n * interval '1 second'
           from generate_series(1, 7) n""", version.workflow_id, version.pk,
    )  # fmt: skip
    runs = list(Run.objects.order_by("pk").values_list("pk", flat=True))
    engine.sql("insert into log_line (run_id, path, at, level, text) select id, '', now(), 'info', 'x' from run, generate_series(1, 10)")
    monkeypatch.setattr(retention, "BATCH_ROWS", 25)
    monkeypatch.setattr(retention, "BATCH_RUNS", 4)
    assert delete() == retention.Batch(4, 2), "two of ten lines each fit into twenty-five"
    assert list(Run.objects.order_by("pk").values_list("pk", flat=True)) == runs[2:], "the oldest first"
    monkeypatch.setattr(retention, "BATCH_ROWS", 5)
    assert delete().deleted == 1
    monkeypatch.setattr(retention, "BATCH_ROWS", 1000)
    assert [delete().deleted for _ in range(2)] == [4, 0]


def test_the_command_shows_how_it_goes_and_the_dry_run_deletes_nothing(engine, monkeypatch):
    version = engine.publish([{"id": "x", "type": "probe"}])
    keep(version, 1)
    engine.sql(
        """insert into run (workflow_id, version_id, trigger_key, input_hash, input, state, title, test, created_at, ended_at)
           select %s, %s, 'api', '', '{}', 'failed', '', false, now(), now() - interval '9 days' from generate_series(1, 5)""",
        version.workflow_id, version.pk,
    )  # fmt: skip
    monkeypatch.setattr(retention, "BATCH_RUNS", 2)
    said = StringIO()
    call_command("retention", dry_run=True, stdout=said)
    assert said.getvalue() == "5 runs ended longer ago than their flows keep them.\n" and Run.objects.count() == 5
    call_command("retention", stdout=said)
    assert said.getvalue().splitlines()[2:] == ["2 of 5 deleted", "4 of 5 deleted", "5 of 5 deleted"]
    assert not Run.objects.exists()


def test_workers_do_it_by_themselves_a_batch_at_a_time(engine):
    version = engine.publish([{"id": "x", "type": "probe"}])
    keep(version, 1)
    engine.sql(
        """insert into run (workflow_id, version_id, trigger_key, input_hash, input, state, title, test, created_at, ended_at)
           select %s, %s, 'api', '', '{}', 'failed', '', false, now(), now() - interval '9 days' from generate_series(1, 60)""",
        version.workflow_id, version.pk,
    )  # fmt: skip
    workers = [engine.worker() for _ in range(2)]
    eventually(lambda: not Run.objects.exists())
    told = "".join(worker.log.read_text() for worker in workers)
    assert "50 runs that ended long ago were deleted" in told and "10 runs that ended" in told


def test_finding_what_is_old_reads_no_more_than_what_is_old(engine):
    version = engine.publish([{"id": "x", "type": "probe"}])
    keep(version, 30)
    engine.sql(
        """insert into run (workflow_id, version_id, trigger_key, input_hash, input, state, title, test, created_at, ended_at)
           select %s, %s, 'api', '', '{}', 'succeeded', '', false, now(), now() - n * interval '1 minute'
           from generate_series(1, 20000) n""", version.workflow_id, version.pk,
    )  # fmt: skip
    engine.sql("analyze run")
    explain = "explain (analyze, buffers, format json) "
    with connection.cursor() as cursor:
        cursor.execute(explain + retention.OLD, {"usual": 0, "limit": 50})
        plan = cursor.fetchone()[0]
        cursor.execute(explain + "select from run where rerun_of_id = any(array[1, 2, 3]::bigint[])")
        reruns = cursor.fetchone()[0]
    for found in (plan, reruns):
        found = json.loads(found) if isinstance(found, str) else found
        assert found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"] < 20
