"""Bulk acts and alerts by real workers; one dies in the middle of an act: every run has one turn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
from django.contrib.auth import get_user_model

from runtime import jobs
from runtime.models import Alert, AuditEntry, Job, Membership, OutboxMessage
from tests.runtime.engine import eventually
from tests.runtime.test_claiming import LOCK


def test_a_bulk_requeue_survives_its_worker(engine, monkeypatch):
    version = engine.publish([{"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False}}])
    runs = [engine.start(version) for _ in range(120)]
    first = engine.worker()
    for run in runs:
        engine.ends(run, "failed")
    engine.release("healed")
    user = get_user_model().objects.create_user("ines")
    Membership.objects.create(user=user, team=version.workflow.team, role="operator")
    jobs.ask("requeue", runs, user=user, key="form")
    eventually(lambda: Job.objects.get().done > 0)
    first.kill()
    engine.leases_end()
    engine.sql("update job set leased_until = clock_timestamp()")
    for _ in range(2):
        engine.worker()
    eventually(lambda: Job.objects.get().state == "done")
    for run in runs:
        engine.ends(run)
    assert Job.objects.get().changed == len(runs)
    effects = {line["key"] for line in engine.ledger()}  # a call that the death interrupted came again, with its key
    assert AuditEntry.objects.filter(action="requeue").count() == len(runs) == len(effects)


def test_a_bulk_cancel_and_the_journal_lock_runs_in_one_order(engine, database_url):
    """The runs of a filter come newest first."""
    runs = [engine.start(engine.publish([])) for _ in range(2)]
    user = get_user_model().objects.create_superuser("ines")
    jobs.ask("cancel", runs[::-1], user=user, key="form")
    with psycopg.connect(database_url) as journal, psycopg.connect(database_url, autocommit=True) as sees, ThreadPoolExecutor(1) as thread:
        journal.execute(LOCK, [runs[0]])
        worked = thread.submit(jobs.work_off, lambda: False)
        waits = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and pid <> %s"
        eventually(lambda: sees.execute(waits, [journal.info.backend_pid]).fetchone() is not None)
        journal.execute(LOCK, [runs[1]])
        journal.commit()
        assert worked.result()
    assert [engine.state(run) for run in runs] == ["cancelled"] * 2


def test_workers_look_at_the_alert_rules_and_tell_once(engine):
    Alert.objects.create(kind="silent", threshold=99, address="ops@example.com")
    for _ in range(2):
        engine.worker()
    eventually(lambda: OutboxMessage.objects.filter(recipient="ops@example.com").exists())
    looked = Alert.objects.get().looked_at
    assert looked and OutboxMessage.objects.count() == 1 and Alert.objects.get().firing_since
