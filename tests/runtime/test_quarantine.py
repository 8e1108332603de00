"""Runs that nobody can advance: told, each of them, and taken up again only when a person says so."""

from __future__ import annotations

from runtime import acts, approvals, waits
from runtime.housekeeping import STUCK_VERSIONS
from runtime.models import Approval, Dispatch, Run, Wait
from runtime.quarantine import KILLER


def test_a_callback_does_not_take_a_run_out_of_quarantine_and_is_there_when_a_person_does(engine):
    run = engine.start(engine.publish([{"id": "call", "type": "callback"}]))
    call = Wait.objects.create(run_id=run, path="call", kind="callback")
    engine.sql(KILLER, run)
    assert waits.signal(run, "call", {"n": 1}, "one")
    parked = Dispatch.objects.get(run_id=run)
    assert (parked.state, parked.due_at, parked.wakes) == ("waiting", None, 1)
    assert acts.requeue(run)
    assert (Dispatch.objects.get(run_id=run).state, engine.state(run)) == ("ready", "open")
    assert Wait.objects.get(pk=call.pk).outcome["payload"] == {"n": 1}


def test_every_run_that_no_worker_can_run_is_told_and_not_the_first_twenty_only(engine):
    version = engine.publish([{"id": "call", "type": "probe"}])
    runs = [engine.start(version) for _ in range(25)]
    engine.sql("update dispatch set due_at = due_at - interval '1 hour'")
    engine.sql("""insert into worker (cluster, host, pid, code_version, formats, step_types, slots, started_at, beat_at, in_flight,
                  finished, stopping, unable) values ('', '', 0, '', '{}', '{http}', 0, now(), clock_timestamp(), 0, 0, false,
                  jsonb_build_object(%s::text, 'why'))""", version.pk)
    engine.sql(STUCK_VERSIONS)
    engine.sql(STUCK_VERSIONS)
    assert Run.objects.filter(pk__in=runs, state="attention").count() == 25


def test_a_requeue_of_a_quarantined_run_that_was_failed_by_hand_ends_the_quarantine(engine):
    ask = {"id": "ok", "type": "approval", "config": {"subject": "Go?", "approvers": ["dana@example.com"]}}
    run = engine.start(engine.publish([ask]))
    engine.sql(KILLER, run)
    assert acts.force_fail(run)
    engine.worker()
    assert acts.requeue(run)
    engine.parked(run)
    approval = Approval.objects.get(run_id=run)
    assert approvals.decide(approval, "approve", recipient=approval.recipients.get()).state == "decided"
    engine.ends(run)


def test_a_run_whose_end_the_database_refuses_is_left_to_a_person_and_counts_as_nobodys_death(engine):
    version = engine.publish([{"id": "call", "type": "probe"}])
    bad = engine.start(version)
    engine.sql("create function refuse_its_end() returns trigger language plpgsql as $$ begin"
               f" if new.id = {bad} and new.ended_at is not null then raise 'no end for this one'; end if; return new; end $$")  # fmt: skip
    engine.sql("create trigger refuse_its_end before update on run for each row execute function refuse_its_end()")
    try:
        good = engine.start(version)
        worker = engine.worker()
        engine.ends(good)
        wait = engine.wait(bad, "", "person")
        assert "no end for this one" in wait.data["why"] and engine.state(bad) == "attention"
        stands = Dispatch.objects.get(run_id=bad)
        assert (stands.state, stands.due_at, stands.lost, stands.deaths) == ("waiting", None, 0, 0)
        assert any("no end for this one" in line for line in engine.log(bad)) and worker.status() is None
    finally:
        engine.sql("drop function refuse_its_end() cascade")
    assert acts.requeue(bad)
    engine.ends(bad)
    assert len(engine.ledger(bad)) == 1
