"""Faults that users of other engines met. Each has a test here or, marked `fault(number)`, where the matter is tested."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from runtime import approvals, claims, waits
from runtime.models import Approval, Attempt, Run, StepResult, Wait, Worker
from tests.plans import blocks_of_a_claim
from tests.runtime.engine import at_once, eventually

ROOT = Path(__file__).resolve().parents[2]

FAULTS = {
    1: "a wait goes on once, whoever wakes it",
    2: "a timer that is left over does nothing",
    3: "a resume goes on where the run stands",
    4: "an answer starts no run",
    5: "an event that comes while its wait is registered is not lost",
    6: "an event that comes before its wait is kept",
    7: "an event is for its own place",
    8: "a time-out is a stored outcome",
    9: "a listener that was cut off listens again, and nothing hangs on it",
    10: "a wait that ended while everything was down goes on",
    11: "an approval waits at any depth",
    12: "skipping an approval goes on",
    13: "who lost the claim writes nothing",
    14: "each claim has a token of its own",
    15: "a call may take longer than a lease",
    16: "a worker's clock decides nothing",
    17: "a worker that stops claims nothing",
    18: "a claim whose reply was lost is given back",
    19: "a run that kills its worker is stopped",
    20: "a claim takes no more than it asked for",
    21: "no more at a time than was said",
    22: "claiming does not read what a held snapshot keeps",
    23: "nothing hangs on a session",
    24: "no transaction is open during a call",
    25: "no connection is shared across a fork",
    26: "a daily schedule fires once a day",
    27: "what was missed is made up for once",
    28: "a run ends on its version",
    29: "Retry-After is a floor",
    30: "what cannot be stored fails its step",
    31: "what is too large is final",
    32: "a cancel takes effect or does not",
    33: "retention touches nothing unfinished",
    34: "of two edits at a time one wins, and the other is told whose",
    35: "a large flow opens as a small one does",
    36: "looking at a link decides nothing",
    37: "links hang on no host and survive a new key",
    38: "a run can be ended by its number alone",
    39: "the list of runs costs what it shows",
    40: "what may not have run needs a default",
    41: "the lane that was taken is there to see",
    42: "a retry runs again what it says, also inside a loop",
}  # fmt: skip
MARK = re.compile(r"pytest\.mark\.fault\(([\d, ]+)\)\n(?:@.*\n)*def test_", re.MULTILINE)


def test_every_fault_has_a_test():
    tested: set[int] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for numbers in MARK.findall(path.read_text()):
            tested |= {int(number) for number in numbers.split(",")}
    assert tested == set(FAULTS)


# Waits

ASK = {"id": "ok", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "?", "expires": "1h",
                                                  "on_expired": "go_on", "on_rejected": "go_on"}}  # fmt: skip


def decide(run: int, answer: str = "approve") -> str:
    question = Approval.objects.filter(run_id=run).order_by("pk").last()
    return approvals.decide(question, answer, recipient=question.recipients.first()).state


@pytest.mark.fault(2)
def test_the_timer_of_an_approval_that_was_answered_changes_nothing(engine, clock):
    run = engine.start(engine.publish([ASK, {"id": "reply", "type": "callback"}, {"id": "after", "type": "probe"}]))
    engine.worker()
    engine.wait(run, "ok")
    assert decide(run) == "decided"
    engine.wait(run, "reply")
    before = engine.output(run, "ok")
    clock.advance(hours=2)
    beside = engine.start(engine.publish([{"id": "x", "type": "probe"}]))
    engine.ends(beside)
    assert engine.wait(run, "reply").state == "open" and engine.output(run, "ok") == before
    assert decide(run) == "already"
    waits.signal(run, "reply", "now", "1")
    engine.ends(run)
    assert engine.output(run, "reply") == "now" and len(engine.ledger(run)) == 1


@pytest.mark.fault(4)
def test_answers_start_no_run_however_often_and_late_they_come(engine):
    run = engine.start(engine.publish([ASK, {"id": "reply", "type": "callback"}, {"id": "after", "type": "probe"}]))
    engine.worker()
    engine.wait(run, "ok")
    assert sorted(at_once(*[lambda: decide(run)] * 4))[-1] == "decided"
    engine.wait(run, "reply")
    assert at_once(*[lambda: waits.signal(run, "reply", "x", "1")] * 4).count(True) == 1
    engine.ends(run)
    assert decide(run, "reject") == "already" and not waits.signal(run, "reply", "y", "2")
    assert Run.objects.count() == 1 and len(engine.ledger()) == 1


@pytest.mark.fault(8)
def test_a_time_out_stays_one_for_whoever_comes_later(engine, clock):
    run = engine.start(engine.publish([ASK, {"id": "after", "type": "probe"}]))
    worker = engine.worker(failpoint="wait.resolved")
    engine.wait(run, "ok")
    clock.advance(hours=1)
    engine.dies(worker)
    assert Wait.objects.get(run_id=run).outcome["by"] == "due"
    assert decide(run) == "expired", "the time-out was first"
    engine.worker()
    engine.ends(run)
    assert engine.output(run, "ok")["decision"] == "expired"


@pytest.mark.fault(11)
def test_an_approval_waits_at_any_depth(engine):
    lanes = [{"id": "a", "steps": [ASK]}, {"id": "b", "steps": [{"id": "beside", "type": "probe"}]}]
    both = {"id": "both", "type": "parallel", "branches": lanes}
    each = {"id": "each", "type": "loop", "config": {"items": "[1, 2]"}, "steps": [both]}
    odd = {"id": "odd", "type": "condition", "branches": [
        {"id": "yes", "when": "1 + 1 == 2", "steps": [each]}, {"id": "no", "steps": []}]}  # fmt: skip
    run = engine.start(engine.publish([odd, {"id": "after", "type": "probe"}]))
    engine.worker()
    for n in range(2):
        engine.wait(run, f"odd/yes/each[{n}]/both/a/ok")
        engine.parked(run)
        assert "after" not in engine.results(run)
        assert decide(run) == "decided"
    engine.ends(run)


# The doorbell

LISTENER = "select pid from pg_stat_activity where application_name = 'holdfast listener' and datname = current_database()"


@pytest.mark.fault(9)
def test_a_listener_that_was_cut_off_listens_again(engine):
    version = engine.publish([{"id": "x", "type": "probe"}])
    engine.worker(poll_seconds=60)
    engine.ends(engine.start(version))
    (first,) = eventually(lambda: engine.sql(LISTENER))
    engine.sql("select pg_terminate_backend(%s)", first[0])
    eventually(lambda: engine.sql(LISTENER) not in ([], [first]))
    engine.ends(engine.start(version), seconds=25)


@pytest.mark.fault(9)
def test_without_a_listener_the_poll_finds_everything(engine):
    worker = engine.worker(listen_url="postgresql://nobody@127.0.0.1:1/nothing", poll_seconds=0.2)
    engine.ends(engine.start(engine.publish([{"id": "x", "type": "probe"}])))
    assert not engine.sql(LISTENER) and "Watching.listen" in worker.log.read_text()


# Leases and clocks


@pytest.mark.fault(15)
def test_a_call_may_take_longer_than_many_leases(engine):
    run = engine.start(engine.publish([{"id": "long", "type": "probe", "config": {"hold": "go"}}]))
    for _ in range(2):
        engine.worker(lease_seconds=2)
    eventually(lambda: engine.ledger(run))
    leased = "select leased_until from dispatch where run_id = %s and token is not null"
    first = eventually(lambda: engine.sql(leased, run))[0][0]
    eventually(lambda: (now := engine.sql(leased, run)) and now[0][0] > first + timedelta(seconds=6))
    engine.release("go")
    engine.ends(run)
    assert len(engine.ledger(run)) == len(engine.attempts(run)) == 1


@pytest.mark.fault(16)
def test_a_workers_clock_decides_nothing(engine, clock):
    """One is a week ahead, one a week behind: no wait ends early, no lease is taken, no time that is told is theirs."""
    held = engine.start(engine.publish([{"id": "call", "type": "probe", "config": {"hold": "go"}}]))
    engine.worker(concurrency=1)
    eventually(lambda: engine.ledger(held))
    for hours in ("168", "-168"):
        engine.worker(env={"HOLDFAST_STEP_MODULES": "tests.runtime.wrong_clock",
                           "HOLDFAST_TEST_HOURS_OFF": hours})  # fmt: skip
    version = engine.publish([{"id": "day", "type": "delay", "config": {"for": "1d"}}, {"id": "after", "type": "probe"}])
    runs = [engine.start(version) for _ in range(6)]
    for run in runs:
        engine.parked(run)
    beats = dict(Worker.objects.values_list("pk", "beat_at"))
    eventually(lambda: all(w.beat_at > beats[w.pk] + timedelta(seconds=4) for w in Worker.objects.filter(pk__in=beats)))
    assert not [run for run in runs if engine.state(run) != "open"] and len(engine.ledger()) == 1
    clock.advance(days=1)
    for run in runs:
        engine.ends(run)
    now = clock.now()
    for row in [*StepResult.objects.filter(path="after"), *Attempt.objects.filter(path="after")]:
        assert timedelta() <= now - row.started_at < timedelta(minutes=2)
    engine.release("go")
    engine.ends(held)
    assert len(engine.attempts(held)) == 1


# Postgres

DUE = """
insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths)
select n, 1, 'ready', now() - interval '1 hour', 0, 0, 0, false, 0 from generate_series(%s::int, %s::int) n
"""


@pytest.mark.fault(20)
def test_a_claim_takes_no_more_than_it_asked_for(transactional_db, database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(DUE, [1, 60])
        asked = {"limit": 5, "lease": 60, "unable": [], **claims.LOST_NONE}

        def claim(worker: int) -> list[int]:
            with psycopg.connect(database_url, autocommit=True) as own:
                own.execute(claims.CLAIM, asked | {"worker": worker})
                held = "select run_id from dispatch where worker_id = %s"
                return [run for (run,) in own.execute(held, [worker]).fetchall()]

        taken = at_once(*(lambda worker=worker: claim(worker) for worker in range(1, 9)))
        assert [len(runs) for runs in taken] == [5] * 8
        assert len({run for runs in taken for run in runs}) == 40


@pytest.mark.fault(22)
def test_claiming_reads_little_of_what_a_held_snapshot_keeps(transactional_db, database_url):
    """Rows that ended cannot be cleared away while somebody looks at an old state: they are few bytes each, and so are
    the pages that a claim passes over."""
    with psycopg.connect(database_url) as old, psycopg.connect(database_url, autocommit=True) as connection:
        old.execute("set transaction isolation level repeatable read")
        old.execute("select count(*) from dispatch")
        for first in range(1, 4001, 500):
            connection.execute(DUE, [first, first + 499])
            connection.execute("delete from dispatch")
        connection.execute(DUE, [5001, 5010])
        assert blocks_of_a_claim(connection, 10) < 4000 / 10
        old.rollback()


@pytest.mark.fault(23)
def test_nothing_hangs_on_a_session():
    """Behind a pooler a session is somebody else's with the next transaction: no lock, table or setting may outlive one.
    Commands that people start, such as the migrations, go to the database directly."""
    files = [*(ROOT / "runtime").rglob("*.py"), *(ROOT / "runtime").rglob("*.sql"), *(ROOT / "builder").rglob("*.py")]
    for path in (path for path in files if "commands" not in path.parts):
        found = re.findall(r"pg_(?:try_)?advisory_lock|create temp|set session|prepare transaction|declare \w+ cursor with hold",
                           path.read_text(), re.IGNORECASE)  # fmt: skip
        assert not found, f"{path}: {found}"


@pytest.mark.fault(24)
def test_no_transaction_is_open_during_a_call(engine):
    run = engine.start(engine.publish([{"id": "call", "type": "probe", "config": {"hold": "go"}}]))
    engine.worker()
    eventually(lambda: engine.ledger(run))
    since = engine.sql("select clock_timestamp()")[0][0]
    eventually(lambda: Worker.objects.get().beat_at > since + timedelta(seconds=2))
    open_still = """select application_name, query from pg_stat_activity where application_name like 'holdfast%%'
                    and datname = current_database() and xact_start < %s"""
    assert engine.sql(open_still, since + timedelta(seconds=1)) == []
    engine.release("go")
    engine.ends(run)
