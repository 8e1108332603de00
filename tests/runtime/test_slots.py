"""Limits of flows: so many runs at a time, in all and by key, by priority and age, whoever dies. On real workers."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from django.db import connection

from runtime import acts, claims, slots
from runtime.admission import END_OLD, END_OLD_WITH
from runtime.definition import check
from runtime.models import Dispatch, FlowLimit, Run, Workflow
from runtime.publish import make_live, publish
from runtime.slots import HIGHEST
from runtime.starts import start, start_many
from tests.plans import blocks_of_a_claim
from tests.runtime.engine import at_once, eventually

HELD = [{"id": "call", "type": "probe", "config": {"hold": "go-{{ trigger.body.n }}", "note": "{{ trigger.body.n }}"}}]
QUICK = [{"id": "call", "type": "probe", "config": {"note": "{{ trigger.body.n }}"}}]


def slots_held(version) -> int:
    return Dispatch.objects.filter(slot_of=version.workflow_id, queued=False).count()


def admit(version) -> int:
    with connection.cursor() as cursor:
        cursor.execute("select holdfast_admit(%s)", [version.workflow_id])
        return cursor.fetchone()[0]


def let_in(runs) -> list[int]:
    return list(Dispatch.objects.filter(run_id__in=runs, queued=False).order_by("run_id").values_list("run_id", flat=True))


def test_no_more_than_so_many_go_on_and_the_others_follow_by_age(engine):
    version = engine.publish(HELD, limits={"at_most": 2})
    runs = [engine.start(version, {"n": n}) for n in range(5)]
    engine.worker(), engine.worker()
    eventually(lambda: len(engine.ledger()) == 2)
    assert sorted(line["run"] for line in engine.ledger()) == runs[:2] and slots_held(version) == 2
    standing = slots.standings(runs)
    assert [standing[run].before for run in runs[2:]] == [0, 1, 2] and runs[0] not in standing
    assert "At most 2" in standing[runs[2]].why
    for n in range(5):
        engine.release(f"go-{n}")
    for run in runs:
        engine.ends(run)
    assert [line["run"] for line in engine.ledger()][2] == runs[2]


def test_every_key_has_its_own_slots(engine):
    version = engine.publish(HELD, limits={"key": "trigger.body.who", "per_key": 1})
    first, second = engine.start(version, {"n": 1, "who": "acme"}), engine.start(version, {"n": 2, "who": "acme"})
    other, odd = engine.start(version, {"n": 3, "who": "globex"}), engine.start(version, {"n": 4})
    engine.worker()
    eventually(lambda: {line["run"] for line in engine.ledger()} == {first, other, odd})
    assert "acme" in slots.standings([second])[second].why
    assert any("key of the flow's limit" in line for line in engine.log(odd))
    for n in range(1, 5):
        engine.release(f"go-{n}")
    for run in (first, second, other, odd):
        engine.ends(run)


def test_never_more_than_so_many_while_workers_are_killed(engine):
    version = engine.publish(QUICK, limits={"at_most": 3})
    runs = [engine.start(version, {"n": n}) for n in range(24)]
    for _ in range(2):
        engine.dies(engine.worker(failpoint="journal.inside:4"))
        assert slots_held(version) <= 3
    engine.worker()

    def done() -> bool:
        assert slots_held(version) <= 3
        return not Dispatch.objects.filter(run_id__in=runs).exists()

    eventually(done, 90)
    assert {engine.state(run) for run in runs} == {"succeeded"}


def test_a_slot_goes_with_its_run_whatever_ends_it(engine):
    version = engine.publish(HELD, limits={"at_most": 1})
    runs = [engine.start(version, {"n": n}) for n in range(3)]
    assert admit(version) == 1 and admit(version) == 0
    assert acts.cancel(runs[0]) and admit(version) == 1
    assert acts.force_fail(runs[1]) and admit(version) == 1 and let_in(runs) == [runs[2]]
    assert acts.requeue(runs[1]) and admit(version) == 0 and Dispatch.objects.get(pk=runs[1]).queued
    assert acts.cancel(runs[2]) and admit(version) == 1 and let_in(runs) == [runs[1]]


def test_of_those_that_queue_the_highest_priority_goes_first_then_the_oldest(engine):
    version = engine.publish(QUICK, limits={"at_most": 2, "priority": "trigger.body.urgent ? 5 : 0"})
    runs = [engine.start(version, {"urgent": n in (2, 4)}) for n in range(5)]
    assert admit(version) == 2 and let_in(runs) == [runs[2], runs[4]]
    assert acts.cancel(runs[2]) and admit(version) == 1 and let_in(runs) == [runs[0], runs[4]]
    assert slots.standings(runs)[runs[3]].before == 1


def test_due_runs_of_higher_priority_are_claimed_first(engine, database_url):
    usual = engine.publish(QUICK)
    urgent, minor = engine.publish(QUICK, limits={"priority": HIGHEST}), engine.publish(QUICK, limits={"priority": f"-{HIGHEST}"})
    low, first, second, high = (engine.start(version) for version in (minor, usual, usual, urgent))
    assert Dispatch.objects.get(pk=high).priority == HIGHEST and not Dispatch.objects.get(pk=high).queued
    with psycopg.connect(database_url, autocommit=True) as own:
        order = []
        for limit in (1, 2, 5):
            rows = own.execute(claims.CLAIM, {"limit": limit, "lease": 60, "unable": [], "worker": 1, **claims.LOST_NONE}).fetchall()
            order.append(sorted(row[7] for row in rows))
    assert order == [[high], [first, second], [low]]


@pytest.mark.parametrize("holds", [True, False])
def test_whether_a_waiting_run_keeps_its_slot_is_a_setting(engine, clock, holds):
    steps = [{"id": "wait", "type": "delay", "config": {"for": "1d"}}, *HELD]
    version = engine.publish(steps, limits={"at_most": 1, "waiting_holds": holds})
    first, second = engine.start(version, {"n": 1}), engine.start(version, {"n": 2})
    engine.worker()
    engine.parked(first)
    if holds:
        assert slots_held(version) == 1 and Dispatch.objects.get(pk=second).claims == 0
        acts.cancel(first)
        engine.parked(second)
        return
    engine.parked(second)  # for the first gave its slot up
    assert slots_held(version) == 0
    clock.advance(days=1, minutes=1)
    eventually(lambda: len(engine.ledger()) == 1)
    assert engine.ledger()[0]["run"] == first and slots.standings([second])[second].before == 0
    engine.release("go-1"), engine.release("go-2")
    engine.ends(first), engine.ends(second)


def test_a_run_between_two_attempts_keeps_its_slot(engine):
    steps = [{"id": "call", "type": "probe", "config": {"fail": 9}, "retry": {"first": "1h", "longest": "1h", "total": "9h"}}]
    version = engine.publish(steps, limits={"at_most": 1, "waiting_holds": False})
    first, second = engine.start(version), engine.start(version)
    engine.worker()
    engine.wait(first, "call", "retry")
    engine.parked(first)
    assert let_in([first, second]) == [first]


def test_what_is_too_much_is_dropped_where_the_flow_says_so(engine):
    version = engine.publish(HELD, limits={"at_most": 1, "more": "drop"})
    one = start(version, trigger_key="api", input={"body": {"n": 1}}, idempotency_key="a")
    two = start(version, trigger_key="api", input={"body": {"n": 2}}, idempotency_key="b")
    assert not one.dropped and "At most 1" in two.dropped and two.created
    again = start(version, trigger_key="api", input={"body": {"n": 1}}, idempotency_key="a")
    assert (again.run_id, again.created, again.dropped) == (one.run_id, False, "")
    entry = Run.objects.get(pk=two.run_id)
    assert entry.state == "cancelled" and entry.error["dropped"] and entry.idempotency_key is None
    assert not Dispatch.objects.filter(pk=two.run_id).exists() and not Dispatch.objects.get(pk=one.run_id).queued
    acts.cancel(one.run_id)
    assert not start(version, trigger_key="api", input={"body": {"n": 2}}, idempotency_key="b").dropped
    before = Run.objects.filter(state="cancelled").count()
    assert start_many(version, [({"body": n}, None) for n in range(3)], trigger_key="api") == []
    assert Run.objects.filter(state="cancelled").count() == before + 3


def test_starts_at_once_take_no_more_than_there_is(engine):
    version = engine.publish(QUICK, limits={"at_most": 3, "more": "drop"})
    starts = at_once(*[lambda n=n: start(version, trigger_key="api", input={"body": n}) for n in range(8)])
    assert sorted(bool(made.dropped) for made in starts) == [False] * 3 + [True] * 5


def test_starts_that_may_be_dropped_and_publishing_wait_for_each_other_in_one_order(engine):
    version = engine.publish(QUICK, limits={"at_most": 1000, "more": "drop"})

    def starts() -> str:
        for n in range(100):
            engine.start(version, n)
        return "started"

    def publishes() -> str:
        for n in range(100):
            engine.publish(QUICK, workflow=version.workflow, limits={"at_most": 1000 + n, "more": "drop"})
        return "published"

    assert at_once(starts, starts, publishes) == ["started", "started", "published"]


def test_a_dropped_sub_flow_fails_its_step(engine):
    inner = engine.publish(HELD, limits={"at_most": 1, "more": "drop"})
    Workflow.objects.filter(pk=inner.workflow_id).update(name="Inner")
    call = {"id": "sub", "type": "workflow", "config": {"flow": "Inner", "input": {"n": "{{ trigger.body.n }}"}}}
    outer = engine.publish([call])
    engine.start(inner, {"n": 0})
    run = engine.start(outer, {"n": 1})
    engine.worker()
    assert "At most 1" in engine.ends(run, "failed").error["message"]


def test_a_flow_that_waits_for_itself_goes_on_when_waiting_runs_give_their_slot_up(engine):
    call = {"id": "sub", "type": "workflow", "config": {"flow": "Self", "input": {"n": 1}}}
    once = {"id": "if", "type": "condition", "branches": [
        {"id": "deeper", "when": 'trigger.body.n == 0', "steps": [call]}, {"id": "else", "steps": []}]}
    version = engine.publish([once], limits={"at_most": 1, "waiting_holds": False})
    Workflow.objects.filter(pk=version.workflow_id).update(name="Self")
    run = engine.start(version, {"n": 0})
    engine.worker()
    engine.ends(run)


def test_no_more_than_so_many_begin_in_a_minute(engine):
    version = engine.publish(QUICK, limits={"per_minute": 3})
    runs = [engine.start(version, {"n": n}) for n in range(5)]
    assert admit(version) == 3 and admit(version) == 0 and let_in(runs) == runs[:3]
    assert "begin in a minute" in slots.standings(runs)[runs[3]].why
    engine.sql("update rate_limit set until = until - interval '20 seconds' where key = %s", f"flow:{version.workflow_id}")
    assert admit(version) == 1
    engine.sql("update rate_limit set until = until + interval '1 hour'")
    assert admit(version) == 1, "the clock leapt back since"
    dropping = engine.publish(QUICK, limits={"per_minute": 2, "more": "drop"})
    made = [start(dropping, trigger_key="api", input={"body": n}).dropped for n in range(3)]
    assert made[:2] == ["", ""] and "begin in a minute" in made[2]


def test_a_run_that_is_too_old_fails_wherever_it_stands_and_says_why(engine, clock):
    watcher = engine.publish([{"id": "tell", "type": "probe"}])
    Workflow.objects.filter(pk=watcher.workflow_id).update(name="Watcher")
    version = engine.publish(
        [{"id": "wait", "type": "delay", "config": {"for": "30d"}}], limits={"max_age": "2d"}, on_failure="Watcher"
    )
    run, young = engine.start(version), engine.start(version)
    engine.worker()
    engine.parked(run), engine.parked(young)
    engine.sql("update dispatch set expires_at = expires_at + interval '3 days' where run_id = %s", young)
    clock.advance(days=2, minutes=1)
    failed = engine.ends(run, "failed")
    assert "longer than its flow allows" in failed.error["message"] and engine.state(young) == "open"
    assert any("longer than its flow allows" in line for line in engine.log(run))
    told = eventually(lambda: Run.objects.filter(workflow=watcher.workflow).first())
    assert told.input["run"]["id"] == run
    assert acts.requeue(run)  # and has the same time once more
    engine.parked(run)
    assert Dispatch.objects.get(pk=run).expires_at > clock.now()


def test_a_run_in_somebodys_hands_that_is_too_old_is_taken_from_them(engine, clock):
    version = engine.publish([*HELD, {"id": "after", "type": "probe"}], limits={"max_age": "1h"})
    run = engine.start(version, {"n": 1})
    engine.worker()
    eventually(lambda: engine.ledger(run))
    clock.advance(hours=2)
    engine.ends(run, "failed")
    engine.release("go-1")
    eventually(lambda: engine.attempts(run, "call")[0].ended_at)
    assert len(engine.ledger(run)) == 1


def test_limits_are_those_of_the_live_version_and_go_with_them(engine):
    version = engine.publish(HELD, limits={"at_most": 1})
    runs = [engine.start(version, {"n": n}) for n in range(4)]
    assert admit(version) == 1
    wider = publish(version.workflow, {**version.definition, "limits": {"at_most": 2}})
    assert admit(version) == 1
    free = {key: value for key, value in version.definition.items() if key != "limits"}
    unlimited = publish(version.workflow, free)
    assert FlowLimit.objects.get(pk=version.workflow_id).at_most is None
    assert admit(version) == 2 and let_in(runs) == runs
    assert Dispatch.objects.get(pk=engine.start(unlimited, {"n": 9})).slot_of is None
    make_live(version.workflow, wider)
    assert FlowLimit.objects.get(pk=version.workflow_id).at_most == 2


def test_test_runs_have_no_limits(engine):
    version = engine.publish(QUICK, limits={"at_most": 1, "more": "drop", "priority": 5, "max_age": "1h"})
    made = [start(version, trigger_key="api", input={"body": n}, test=True) for n in range(3)]
    rows = Dispatch.objects.filter(pk__in=[one.run_id for one in made])
    assert not any(one.dropped for one in made) and {(row.priority, row.slot_of, row.expires_at) for row in rows} == {(0, None, None)}


def test_a_claim_reads_no_more_beside_runs_that_queue_or_wait_at_a_high_priority(engine):
    engine.sql("""
        insert into dispatch (run_id, version_id, state, due_at, claims, wakes, lost, alone, deaths, priority, queued, slot_of, slot_key)
        select 1000000 + i, 1, 'ready', now() + case when i % 2 = 0 then interval '1 day' else interval '-1 hour' end, 0, 0, 0,
               false, 0, 9, i % 2 = 1, case when i % 2 = 1 then 77 end, case when i % 2 = 1 then '' end
        from generate_series(1, 20000) i""")
    engine.sql("analyze dispatch")
    run = engine.start(engine.publish(QUICK))
    assert blocks_of_a_claim(connection.connection, 10) < 200
    assert Dispatch.objects.get(pk=run).state == "claimed"


def test_of_two_that_end_what_is_old_each_ends_it_once(engine, database_url, clock):
    version = engine.publish(QUICK, limits={"max_age": "1h"})
    runs = {engine.start(version) for _ in range(20)}
    clock.advance(hours=2)

    async def end() -> list[int]:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as own:
            return [run for (run,) in await (await own.execute(END_OLD, END_OLD_WITH)).fetchall()]

    ended = [run for found in at_once(*[lambda: asyncio.run(end())] * 3) for run in found]
    assert sorted(ended) == sorted(runs)


@pytest.mark.parametrize("limits,field", [
    ({"per_key": 2}, "limits.key"),
    ({"key": "trigger.body.a"}, "limits.per_key"),
    ({"key": "steps.a.output", "per_key": 1}, "limits.key"),
    ({"priority": "99"}, "limits.priority"),
    ({"priority": "'high'"}, "limits.priority"),
    ({"at_most": 0}, "limits.at_most"),
    ({"max_age": "soon"}, "limits.max_age"),
    ({"most": 3}, "limits.most"),
])
def test_what_makes_no_sense_is_refused_with_its_field(limits, field):
    problems = check({"format": 1, "name": "F", "steps": [], "limits": limits})
    assert [problem.field for problem in problems] == [field]


def test_priorities_and_whole_limits_are_accepted():
    limits = {"at_most": 5, "key": "trigger.body.customer", "per_key": 1, "more": "drop", "priority": 3, "waiting_holds": False,
              "per_minute": 60, "max_age": "7d"}
    assert check({"format": 1, "name": "F", "steps": [], "limits": limits}) == []
