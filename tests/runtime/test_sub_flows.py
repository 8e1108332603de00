"""Runs that start runs, and flows that the end of a run starts. On real workers, also killed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest

from runtime import acts, endings, waits
from runtime.definition import check
from runtime.models import Run, RunEnd, Workflow
from runtime.publish import publish, snapshot
from tests.runtime.engine import WAITING_FOR_A_LOCK, at_once, eventually


def child(engine, steps, name="Child"):
    version = engine.publish(steps)
    Workflow.objects.filter(pk=version.workflow_id).update(name=name)
    return version


def parent(engine, **config):
    step = {"id": "sub", "type": "workflow", "config": {"flow": "Child", "input": {"n": "{{ trigger.body.n }}"}} | config}
    return engine.publish([step, {"id": "after", "type": "set", "config": {"values": {"got": "{{ steps.sub.output }}"}}}])


GIVES = [{"id": "end", "type": "stop", "config": {"output": {"twice": "{{ trigger.body.n * 2 }}"}}}]


@pytest.mark.parametrize("failpoint", ["", "journal.before:1", "journal.inside:1", "journal.after:1", "journal.after:2", "journal.before:3"])
def test_a_sub_flow_runs_once_and_its_output_comes_back(engine, failpoint):
    child(engine, GIVES)
    run = engine.start(parent(engine), {"n": 21})
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    engine.ends(run)
    started = Run.objects.get(parent_id=run)
    assert started.input == {"body": {"n": 21}} and started.depth == 1
    assert engine.output(run, "after")["got"] == {"run": started.pk, "state": "succeeded", "output": {"twice": 42}}


def test_it_can_go_on_at_once(engine):
    child(engine, [{"id": "wait", "type": "delay", "config": {"for": "1d"}}])
    engine.worker()
    run = engine.start(parent(engine, wait=False), {"n": 1})
    engine.ends(run)
    started = Run.objects.get(parent_id=run)
    assert engine.output(run, "sub") == {"run": started.pk} and started.state == "open"


def test_a_failure_comes_up_and_a_requeue_starts_another_run(engine):
    version = child(engine, [{"id": "end", "type": "stop", "config": {"outcome": "failed", "message": "no stock"}}])
    engine.worker()
    run = engine.start(parent(engine), {"n": 1})
    failed = engine.ends(run, "failed")
    assert "failed: no stock" in failed.error["message"] and failed.error["step"] == "sub"
    better = engine.publish(GIVES, workflow=version.workflow)
    Workflow.objects.filter(pk=version.workflow_id).update(name="Child")
    assert acts.requeue(run)
    engine.ends(run)
    assert list(Run.objects.filter(parent_id=run).order_by("pk").values_list("version_id", "state")) == [
        (version.pk, "failed"), (better.pk, "succeeded"),
    ]  # fmt: skip


def test_a_cancel_goes_down_and_a_cancelled_child_is_told_up(engine):
    child(engine, [{"id": "wait", "type": "delay", "config": {"for": "1d"}}])
    engine.worker()
    version = parent(engine)
    above, other = engine.start(version, {"n": 1}), engine.start(version, {"n": 1})
    engine.wait(above, "sub", "child"), engine.wait(other, "sub", "child")
    below = Run.objects.get(parent_id=above)
    acts.cancel(above)
    assert engine.ends(below.pk, "cancelled")
    acts.cancel(Run.objects.get(parent_id=other).pk)
    assert "was cancelled" in engine.ends(other, "failed").error["message"]
    eventually(lambda: not RunEnd.objects.exists())


def test_a_cancel_takes_the_runs_of_a_tree_in_the_order_in_which_the_journal_does(engine, database_url):
    """A grandchild by an older child than its younger uncle: by generations its number is out of order."""
    version = engine.publish([{"id": "reply", "type": "callback"}])
    top, old, young, grandchild = (engine.start(version) for _ in range(4))
    for run, above in ((old, top), (young, top), (grandchild, old)):
        engine.sql("update run set parent_id = %s where id = %s", above, run)
    with (
        psycopg.connect(database_url) as journal,
        psycopg.connect(database_url, autocommit=True) as sees,
        ThreadPoolExecutor(1) as thread,
    ):
        journal.execute(waits.LOCK, [young])
        cancelled = thread.submit(lambda: at_once(lambda: acts.cancel(top)))
        eventually(lambda: sees.execute(WAITING_FOR_A_LOCK).fetchone() or cancelled.done())
        journal.execute(waits.LOCK, [grandchild])
        journal.commit()
        assert cancelled.result() == [True]
    assert {engine.state(run) for run in (top, old, young, grandchild)} == {"cancelled"}


def test_a_child_ends_when_its_lane_is_not_waited_for(engine):
    child(engine, [{"id": "wait", "type": "delay", "config": {"for": "1d"}}])
    lanes = [{"id": "slow", "steps": [{"id": "sub", "type": "workflow", "config": {"flow": "Child"}}]},
             {"id": "quick", "steps": [{"id": "nap", "type": "callback", "config": {}}]}]  # fmt: skip
    engine.worker()
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "config": {"join": "any"}, "branches": lanes}]))
    engine.wait(run, "both/slow/sub", "child")
    from runtime import waits

    waits.signal(run, "both/quick/nap", None, "a")
    engine.ends(run)
    engine.ends(Run.objects.get(parent_id=run).pk, "cancelled")


def test_what_it_costs_is_counted_above(engine):
    version = child(engine, [{"id": "call", "type": "probe"}])
    engine.worker()
    run = engine.start(parent(engine), {"n": 1})
    engine.ends(run)
    below = Run.objects.get(parent_id=run)
    assert below.version_id == version.pk
    engine.sql("update attempt set cost = 0.5 where run_id = %s", below.pk)
    engine.sql("update run set cost = 0.5 where id = %s", below.pk)
    again = engine.start(parent(engine), {"n": 1})
    engine.ends(again)
    engine.sql("update run set parent_id = %s where id = %s", again, below.pk)
    from runtime.journal_sql import ROWS

    engine.sql(ROWS["cost"].sql, *ROWS["cost"].columns([(again,)]))
    assert Run.objects.get(pk=again).cost == Decimal("0.5")


def test_a_flow_that_starts_itself_ends_at_its_depth(engine):
    version = engine.publish([{"id": "again", "type": "workflow", "config": {"flow": "Child"}}])
    Workflow.objects.filter(pk=version.workflow_id).update(name="Child")
    engine.worker()
    run = engine.start(version)
    error = engine.ends(run, "failed", 90).error
    assert "deeper than that they may not" in error["message"] and Run.objects.count() == 11


@pytest.mark.parametrize(("flow", "words"), [("Nowhere", "There is no flow “Nowhere”"), ("Child", "The flow “Child” is paused")])
def test_a_flow_that_cannot_be_started_fails_by_name(engine, flow, words):
    Workflow.objects.filter(pk=child(engine, GIVES).workflow_id).update(paused=True)
    engine.worker()
    error = engine.ends(engine.start(parent(engine, flow=flow), {"n": 1}), "failed").error
    assert words in error["message"] and error["field"] == "flow"


# Ends that start flows

FAILS = [{"id": "bad", "type": "stop", "config": {"outcome": "failed", "message": "no stock"}}]
NOTES = [{"id": "note", "type": "set", "config": {"values": {"of": "{{ trigger.run.id }}", "why": "{{ trigger.error.message }}"}}}]


def ended(**config):
    return [{"id": "after", "type": "ended", "config": config}]


@pytest.mark.parametrize("failpoint", ["", "journal.after:1"])
def test_a_failure_starts_the_flow_that_looks_after_failures_once(engine, failpoint):
    watcher = engine.publish(NOTES, triggers=ended())
    version = engine.publish(FAILS)
    run = engine.start(version)
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
    engine.worker(), engine.worker()
    engine.ends(run, "failed")
    started = eventually(lambda: Run.objects.filter(workflow=watcher.workflow).first())
    engine.ends(started.pk)
    assert engine.output(started.pk, "note") == {"of": run, "why": "no stock"}
    assert started.input["flow"] == {"name": version.workflow.name, "version": 1} and started.trigger_key == "after"
    eventually(lambda: not RunEnd.objects.exists())
    assert Run.objects.filter(workflow=watcher.workflow).count() == 1


def test_a_run_that_fails_once_more_starts_it_once_more(engine):
    watcher = engine.publish([], triggers=ended())
    engine.worker()
    run = engine.start(engine.publish([{"id": "bad", "type": "set", "config": {"values": {"x": "{{ trigger.body.none.there }}"}}}]))
    for count in (1, 2):
        engine.ends(run, "failed")
        eventually(lambda count=count: Run.objects.filter(workflow=watcher.workflow).count() == count)
        acts.requeue(run)


def follow(database_url) -> int:
    """Do once what workers do about ends."""

    async def once() -> int:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
            return await endings.follow_ends(connection)

    return asyncio.run(once())


def test_an_end_that_a_requeue_took_back_is_followed_by_nothing_and_keeps_no_other_waiting(engine, database_url):
    """The parent of such a run waits for its next end, and is not told that it ended as `open`."""
    watcher = engine.publish([], triggers=ended(when="any"))
    below, above, other, lone = (engine.start(engine.publish([])) for _ in range(4))
    engine.sql("update run set parent_id = %s where id = %s", above, below)
    engine.sql("insert into wait (run_id, scope, path, take, kind, n, state, data, created_at) values"
               " (%s, '', 'sub', 1, 'child', 1, 'open', json_build_object('run', %s::bigint), holdfast_now())", above, below)  # fmt: skip
    for run in (below, other, lone):
        assert acts.force_fail(run)
    assert acts.requeue(below) and acts.requeue(other) and RunEnd.objects.count() == 3
    assert follow(database_url) == 3
    assert not RunEnd.objects.exists() and engine.wait(above, "sub").state == "open"
    assert [run.input["run"]["id"] for run in Run.objects.filter(workflow=watcher.workflow)] == [lone]
    assert acts.force_fail(below) and follow(database_url) == 1
    assert engine.wait(above, "sub", state="resolved").outcome["state"] == "failed"


def test_an_end_that_cannot_be_followed_keeps_no_other_waiting(engine, database_url):
    watcher = engine.publish([], triggers=ended(when="any"))
    bad, good = (engine.start(engine.publish([])) for _ in range(2))
    engine.sql("create function refuse_its_end() returns trigger language plpgsql as $$ begin"
               f" if new.input #>> '{{run,id}}' = '{bad}' then raise 'not this one'; end if; return new; end $$")  # fmt: skip
    engine.sql("create trigger refuse_its_end before insert on run for each row execute function refuse_its_end()")
    try:
        assert acts.force_fail(bad) and acts.force_fail(good)
        assert follow(database_url) == 1 and list(RunEnd.objects.values_list("run_id", flat=True)) == [bad]
        assert [run.input["run"]["id"] for run in Run.objects.filter(workflow=watcher.workflow)] == [good]
    finally:
        engine.sql("drop function refuse_its_end() cascade")
    assert follow(database_url) == 1 and Run.objects.filter(workflow=watcher.workflow).count() == 2


def test_only_the_ends_that_are_meant_start_it(engine):
    good = engine.publish(GIVES)
    Workflow.objects.filter(pk=good.workflow_id).update(name="Orders")
    mine = engine.publish(NOTES[:0], triggers=ended(when="succeeded", flow="Orders"))
    engine.worker()
    other, test = engine.start(engine.publish(GIVES), {"n": 1}), engine.start(good, {"n": 1}, test=True)
    engine.ends(other), engine.ends(test)
    run = engine.start(good, {"n": 2})
    engine.ends(run)
    started = eventually(lambda: Run.objects.filter(workflow=mine.workflow).first())
    eventually(lambda: not RunEnd.objects.exists())
    assert started.input["run"]["id"] == run and started.input["output"] == {"twice": 4}
    assert Run.objects.filter(workflow=mine.workflow).count() == 1


def test_flows_that_start_each_other_stop(engine):
    first = engine.publish([], triggers=ended(when="any"))
    engine.publish([], triggers=ended(when="any"))
    engine.worker()
    engine.start(first)
    eventually(lambda: Run.objects.filter(state="succeeded", depth=8).exists(), 60)
    eventually(lambda: not RunEnd.objects.exists())
    assert Run.objects.count() == 9


def test_a_flow_names_the_one_that_its_failures_start(engine):
    alarm = engine.publish(NOTES)
    Workflow.objects.filter(pk=alarm.workflow_id).update(name="Alarm")
    engine.worker()
    run = engine.start(engine.publish(FAILS, on_failure="Alarm"))
    engine.ends(run, "failed")
    started = eventually(lambda: Run.objects.filter(workflow=alarm.workflow).first())
    engine.ends(started.pk)
    assert started.trigger_key == "failure" and engine.output(started.pk, "note")["of"] == run


def test_config_problems_name_their_field():
    definition = {"format": 1, "name": "x", "steps": [{"id": "sub", "type": "workflow", "config": {}}], "triggers": ended(when="often")}
    assert [problem.field for problem in check(definition)] == ["config.when", "config.flow"]


def test_what_names_a_flow_means_it_whatever_it_is_called_later(engine):
    inner = child(engine, GIVES)
    calls = parent(engine)
    ended = {"id": "ended", "type": "ended", "config": {"when": "succeeded", "flow": "Child"}}
    follows = engine.publish([{"id": "note", "type": "probe"}], triggers=[ended])
    fails = engine.publish([{"id": "end", "type": "stop", "config": {"outcome": "failed"}}], on_failure="Child")
    Workflow.objects.filter(pk=inner.workflow_id).update(name="Renamed")
    other = child(engine, [{"id": "end", "type": "stop", "config": {"output": "another"}}])  # it takes the name
    engine.worker()
    run = engine.start(calls, {"n": 21})
    engine.ends(run)
    assert engine.output(run, "sub")["output"] == {"twice": 42}
    eventually(lambda: Run.objects.filter(workflow=follows.workflow).exists())
    engine.ends(engine.start(fails), "failed")
    eventually(lambda: Run.objects.filter(workflow=inner.workflow, trigger_key="failure").exists())
    later = parent(engine)  # made when the other had the name
    run = engine.start(later, {"n": 21})
    engine.ends(run)
    assert engine.output(run, "sub")["output"] == "another"
    Workflow.objects.filter(pk=other.workflow_id).update(name="Also renamed")
    last = parent(engine)  # nobody has it any more: the last that had it
    run = engine.start(last, {"n": 21})
    engine.ends(run)
    assert engine.output(run, "sub")["output"] == "another"


def test_a_test_run_means_the_flow_that_the_published_version_will(engine):
    inner = child(engine, GIVES)
    calls = parent(engine)
    draft = calls.definition | {"description": "Being tried"}
    before = snapshot(calls.workflow, draft)
    Workflow.objects.filter(pk=inner.workflow_id).update(name="Renamed")
    child(engine, [{"id": "end", "type": "stop", "config": {"output": "another"}}])  # it takes the name
    engine.worker()
    given = {}
    for version in (before, snapshot(calls.workflow, draft), publish(calls.workflow, draft)):
        run = engine.start(version, {"n": 21}, test=version.number is None)
        engine.ends(run)
        given[version] = engine.output(run, "sub")["output"]
    assert list(given.values()) == [{"twice": 42}, "another", "another"]
