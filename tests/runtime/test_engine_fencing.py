"""Two workers never advance one run, and the journal knows what became of every batch."""

from __future__ import annotations

import signal
import tempfile
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from django.db.models import F

from runtime import acts, waits
from runtime.models import Dispatch, Run, StepResult, Wait
from runtime.models import Worker as WorkerRow
from tests.runtime.engine import eventually
from tests.servers.pgproxy import PostgresProxy

CALLS = [{"id": f"s{n}", "type": "probe", "on_interrupted": "ask"} for n in range(3)]


LEASE = 4.0


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def holder(run: int) -> int | None:
    """The process id of the worker that holds the run."""
    worker = Dispatch.objects.filter(run_id=run).values_list("worker_id", flat=True).first()
    return WorkerRow.objects.filter(pk=worker).values_list("pid", flat=True).first()


@pytest.mark.fault(14)
def test_a_worker_that_was_stopped_past_its_lease_writes_nothing(engine):
    lanes = [
        {
            "id": "a",
            "steps": [
                {"id": "slow", "type": "probe", "on_interrupted": "repeat", "config": {"hold": "go", "value": "x"}},
                {"id": "next", "type": "probe"},
            ],
        },
        {"id": "b", "steps": [{"id": "reply", "type": "callback"}]},
    ]
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    late = engine.worker(lease_seconds=3)
    eventually(lambda: engine.ledger(run))
    engine.wait(run, "both/b/reply")
    late.signal(signal.SIGSTOP)
    other = engine.worker()
    eventually(lambda: holder(run) == other.pid, what=lambda: engine.told(run))
    eventually(lambda: len(engine.ledger(run)) == 2)
    engine.release("go")
    eventually(lambda: "both/a/next" in engine.results(run))
    before = (engine.results(run), [(a.path, a.n, a.outcome, a.token) for a in engine.attempts(run)], engine.ledger())
    late.signal(signal.SIGCONT)
    eventually(lambda: "the lease was lost" in late.tail() or "the event loop hangs" in late.tail(), what=late.tail)
    late.stop()
    after = (engine.results(run), [(a.path, a.n, a.outcome, a.token) for a in engine.attempts(run)], engine.ledger())
    assert before == after
    assert holder(run) in (other.pid, None)
    tokens = set(StepResult.objects.filter(run_id=run).values_list("token", flat=True))
    assert len(tokens) == 1


def test_a_loop_that_hangs_ends_its_process_before_its_leases(engine):
    run = engine.start(engine.publish([{"id": "bad", "type": "lethal", "config": {"how": "block"}}]))
    hanging = engine.worker(lease_seconds=3)
    eventually(lambda: (engine.folder / "deaths").exists())
    lease = "select leased_until < clock_timestamp() from dispatch where run_id = %s and token is not null"
    assert hanging.ended() == 70
    assert engine.sql(lease, run) == [(False,)], "it outlived its lease"


def test_a_loop_of_c_that_lets_no_thread_turn_ends_its_process_too(engine):
    engine.start(engine.publish([{"id": "bad", "type": "lethal", "config": {"how": "spin"}}]))
    worker = engine.worker(lease_seconds=3)
    assert worker.ended() == -signal.SIGXCPU, worker.tail()


@pytest.mark.fault(19)
def test_a_worker_whose_journal_or_reader_gets_no_answer_ends_though_its_loop_turns_and_its_leases_are_renewed(engine):
    runs, workers, deaths = [], [], engine.folder / "deaths"
    for how in ("mute", "deaf"):
        runs.append(engine.start(engine.publish([{"id": "bad", "type": "lethal", "config": {"how": how}}])))
        workers.append(engine.worker(lease_seconds=3, concurrency=1))
        eventually(lambda: deaths.exists() and len(deaths.read_text().split()) == len(runs), what=workers[-1].tail)
    (engine.folder / "harmless").touch()
    assert [worker.ended() for worker in workers] == [72, 72], workers[0].tail() + workers[1].tail()
    engine.worker(lease_seconds=3)
    for run in runs:
        engine.ends(run, seconds=90)
    assert engine.output(runs[0], "bad") == {"survived": True}


def test_a_run_that_kills_its_worker_is_quarantined_and_two_hundred_beside_it_are_not(engine):
    """The others are in calls that take as long as the test likes; new runs go through all the while."""
    good = [engine.start(engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "go"}}]))]
    good += [engine.start(Run.objects.get(pk=good[0]).version) for _ in range(199)]
    bad = engine.start(engine.publish([{"id": "bad", "type": "lethal"}]))
    small = engine.publish([{"id": "x", "type": "probe"}])
    quarantined = Wait.objects.filter(run_id=bad, kind="person")
    open_still = Run.objects.filter(state="open")
    workers: list = []
    ends, begun = [time.monotonic()], [engine.start(small)]

    def turn() -> bool:
        workers[:] = [worker for worker in workers if worker.status() is None]
        while len(workers) < 2:  # as their supervisor does
            workers.append(engine.worker(concurrency=300, lease_seconds=LEASE))
        if open_still.filter(pk=begun[-1]).exists() and time.monotonic() - ends[-1] < LEASE / 3:
            return False
        if time.monotonic() - ends[-1] < 0.2:
            return False
        if not open_still.filter(pk=begun[-1]).exists():
            ends.append(time.monotonic())
        begun.append(engine.start(small))
        return quarantined.exists()

    eventually(turn, 240, what=lambda: engine.told(bad))
    deaths = len((engine.folder / "deaths").read_text().split())
    assert deaths <= 9, "two workers, wards of a quarter, a sixteenth, and at most two of the rest, three times alone"
    gaps = [later - sooner for sooner, later in pairwise(ends)]
    assert len(gaps) > 10 and max(gaps) < 18, "there was a time in which nothing went through"
    assert open_still.filter(version=small).count() < len(begun) / 10
    after = [engine.start(small) for _ in range(10)]
    for run in after:
        engine.ends(run)
    healed = Run.objects.filter(pk__in=after, ended_at__lt=F("created_at") + timedelta(seconds=LEASE))
    assert len(healed) == len(after), "what is started after the quarantine ends within a lease, as it did before"
    held = Dispatch.objects.filter(run_id__in=good, state="claimed")
    eventually(lambda: held.count() == len(good), what="all others are in their calls again")
    assert engine.state(bad) == "attention" and quarantined.get().data["reason"] == "quarantine"
    assert any("Quarantined" in line for line in engine.log(bad))
    assert max(len(engine.attempts(run)) for run in good) <= deaths - 2
    engine.release("go")
    for run in good:
        engine.ends(run)
    assert Run.objects.filter(state="attention").count() == 1
    engine.release("harmless")
    assert acts.requeue(bad) and not acts.requeue(bad)
    engine.ends(bad)


def test_a_run_that_has_to_be_alone_gets_its_turn_under_load(engine):
    busy = engine.publish([{"id": "x", "type": "probe", "config": {"seconds": 0.3}}])
    for _ in range(600):
        engine.start(busy)
    suspect = engine.start(engine.publish([{"id": "x", "type": "probe"}]))
    engine.sql("update dispatch set lost = 3 where run_id = %s", suspect)
    engine.worker(concurrency=10)
    engine.ends(suspect)
    assert Dispatch.objects.exists(), "it had to wait until nothing else was left to do"


def test_wards_end_with_their_worker_in_order_or_at_once(engine):
    """A stop hands back what is in a ward; a kill leaves it to the lease. Neither leaves a process behind."""
    version = engine.publish([{"id": "x", "type": "probe", "config": {"hold": "go"}}])
    run = engine.start(version)
    engine.sql("update dispatch set lost = 3 where run_id = %s", run)
    for end, state in ((lambda worker: worker.stop(), "ready"), (lambda worker: worker.kill(), "claimed")):
        before = len(engine.ledger(run))
        worker = engine.worker(lease_seconds=60)
        eventually(lambda before=before: len(engine.ledger(run)) > before)
        ward = holder(run)
        assert ward != worker.pid and not gone(ward)
        end(worker)
        eventually(lambda ward=ward: gone(ward))
        assert Dispatch.objects.get(run_id=run).state == state, engine.told(run)


# The journal


def test_a_lost_reply_to_a_commit_is_settled_by_reading_back(engine, postgres):
    short = tempfile.mkdtemp(prefix="hfp-", dir="/tmp")  # a socket's address holds a hundred bytes
    with PostgresProxy(Path(short), str(postgres.sockets)) as proxy:
        version = engine.publish(
            [*CALLS, {"id": "reply", "type": "callback", "config": {"expires": "1h"}}, {"id": "end", "type": "probe"}]
        )
        engine.worker(sockets=str(proxy.folder))
        for nth in range(1, 7):
            proxy.cut_after_commit(nth)
            run = engine.start(version)
            engine.wait(run, "reply")
            assert waits.signal(run, "reply", None, "1")
            engine.ends(run)
            assert [line["path"] for line in engine.ledger(run)] == ["s0", "s1", "s2", "end"]
            assert {a.outcome for a in engine.attempts(run)} == {"answered"} and len(engine.attempts(run)) == 4
        assert proxy.cuts >= 5


def test_a_journal_session_that_is_ended_again_and_again_loses_nothing(engine):
    version = engine.publish(CALLS)
    runs = [engine.start(version) for _ in range(150)]
    engine.worker()
    ended = 0
    for calls in range(20, 450, 40):  # each time with batches on their way
        eventually(lambda calls=calls: len(engine.ledger()) >= calls)
        ended += len(
            engine.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast journal'"
            )
        )
    assert ended
    for run in runs:
        engine.ends(run)
    calls = sorted((line["run"], line["path"]) for line in engine.ledger())
    assert calls == sorted((run, f"s{n}") for run in runs for n in range(3)), "a call was made twice, or was lost"


def test_a_worker_that_was_forgotten_ends_and_another_goes_on(engine):
    """As after a machine's week of sleep: whoever registered meanwhile has removed it."""
    run = engine.start(engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "go"}}, {"id": "next", "type": "probe"}]))
    forgotten = engine.worker(lease_seconds=LEASE)
    eventually(lambda: engine.ledger(run))
    engine.sql("delete from journal_mark")
    engine.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast journal'")
    engine.release("go")
    assert forgotten.ended() == 72
    assert "is not known any more" in forgotten.tail()
    engine.worker(lease_seconds=LEASE)
    engine.ends(run)


def test_a_row_that_postgres_refuses_fails_its_run_alone(engine):
    good_version = engine.publish(CALLS)
    bad = engine.start(
        engine.publish(
            [{"id": "bad", "type": "probe", "config": {"tokens": 2**40}}, {"id": "reply", "type": "callback"}]
        )
    )
    parked = engine.start(
        engine.publish(
            [
                {
                    "id": "both",
                    "type": "parallel",
                    "branches": [
                        {"id": "a", "steps": [{"id": "bad", "type": "probe", "config": {"tokens": 2**40}}]},
                        {"id": "b", "steps": [{"id": "reply", "type": "callback"}]},
                    ],
                },
                {"id": "reply2", "type": "callback"},
            ]
        )
    )
    good = [engine.start(good_version) for _ in range(30)]
    engine.worker()
    for run in (bad, parked):
        assert "database refused" in engine.ends(run, "failed").error["message"]
    for run in good:
        engine.ends(run)


def test_a_connection_that_was_shut_out_writes_nothing_and_is_replaced(engine):
    run = engine.start(engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "go"}}, *CALLS]))
    engine.worker()
    eventually(lambda: engine.ledger(run))
    engine.sql("update journal_mark set epoch = epoch + 1")
    engine.release("go")
    engine.ends(run)
    assert len(engine.ledger(run)) == 4


@pytest.mark.fault(18)
def test_claims_whose_reply_was_lost_are_given_back(engine):
    """Held by a worker that knows nothing of it: the reply to its claim was lost."""
    other = engine.start(engine.publish([{"id": "slow", "type": "probe", "config": {"hold": "go"}}]))
    engine.worker()
    eventually(lambda: engine.ledger(other))
    worker = Dispatch.objects.get(run_id=other).worker_id
    run = engine.start(engine.publish([{"id": "x", "type": "probe"}]), idempotency_key=None)
    engine.sql(
        """update dispatch set state = 'claimed', token = nextval('claim_token'), worker_id = %s,
           leased_until = clock_timestamp() + interval '1 hour' where run_id = %s and token is null""",
        worker,
        run,
    )
    engine.ends(run, seconds=10)
    engine.release("go")
    engine.ends(other)
    assert len(engine.ledger(other)) == 1
