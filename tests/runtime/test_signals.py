"""Callbacks by name and key, schemas of what is sent, and what people do to waits. On real workers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from builder.tokens import make_token
from runtime import acts, signals, waits
from runtime.models import AuditEntry, Membership, Team, Wait
from runtime.steps import step_types
from runtime.tokens import callback_url
from tests.runtime.engine import at_once, eventually
from tests.runtime.support import context

PAID = {"signal": "order_paid", "key": "{{ trigger.body.order }}", "expires": "1d"}
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


def flow(engine, **config):
    return engine.publish([{"id": "paid", "type": "callback", "config": config}])


def team() -> int:
    return Team.objects.get(name="Engine").pk


def test_a_signal_finds_the_run_that_waits_for_its_key(engine):
    version = flow(engine, **PAID)
    engine.worker()
    first, second = engine.start(version, {"order": 17}), engine.start(version, {"order": "18"})
    engine.parked(first), engine.parked(second)
    assert signals.send(team(), "order_paid", "18", {"amount": 5}, "a") == "taken"
    engine.ends(second)
    assert engine.output(second, "paid") == {"amount": 5} and engine.state(first) == "open"
    assert signals.send(team(), "order_paid", "18", {"amount": 5}, "a") == "before"
    assert signals.send(Team.objects.create(name="Others").pk, "order_paid", "17", None, "a") == "kept"
    assert engine.state(first) == "open"
    signals.send(team(), "order_paid", "17", None, "a")
    assert engine.ends(first) and engine.output(first, "paid") is None


@pytest.mark.parametrize("first", ["waits", "is sent"])
def test_a_test_run_takes_no_real_signal_and_a_run_none_of_a_test(engine, first):
    """Of a draft that somebody tries with a real order: neither takes what the other waits for, in whichever order they come."""
    version = flow(engine, **PAID)
    engine.worker()
    if first == "is sent":
        told = [signals.send(version.workflow.team_id, "order_paid", "17", n, "a", test=n == 2) for n in (1, 2)]
        assert told == ["kept", "kept"]
    test, run = engine.start(version, {"order": 17}, test=True), engine.start(version, {"order": 17})
    if first == "waits":
        engine.parked(test)
        engine.parked(run)
        assert signals.send(team(), "order_paid", "17", 1, "a") == signals.send(team(), "order_paid", "17", 2, "a", test=True) == "taken"
    engine.ends(run), engine.ends(test)
    assert (engine.output(run, "paid"), engine.output(test, "paid")) == (1, 2)
    alone = engine.start(version, {"order": 19}, test=True)
    engine.parked(alone)
    assert signals.send(team(), "order_paid", "19", 3, "a") == "kept" and engine.state(alone) == "open"
    later = engine.start(version, {"order": 19})
    engine.ends(later)
    assert engine.output(later, "paid") == 3 and engine.state(alone) == "open"


@pytest.mark.parametrize("failpoint", ["", "journal.after:1", "journal.before:2"])
@pytest.mark.fault(6)
def test_a_signal_that_comes_early_is_kept_whatever_dies(engine, failpoint):
    version = flow(engine, **PAID)
    assert signals.send(team(), "order_paid", "17", {"amount": 1}, "a") == "kept"
    assert signals.send(team(), "order_paid", "17", {"amount": 2}, "b") == "kept"
    run = engine.start(version, {"order": 17})
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    engine.ends(run)
    assert engine.output(run, "paid") == {"amount": 1}
    later = engine.start(version, {"order": 17})
    engine.ends(later)
    assert engine.output(later, "paid") == {"amount": 2}


def named(id: str) -> dict:
    return {"id": id, "type": "callback", "config": {"signal": "order_paid", "key": "17", "expires": "1d"}}


def keep(version, count: int) -> None:
    for n in range(count):
        assert signals.send(version.workflow.team_id, "order_paid", "17", {"n": n}, f"{version.pk} {n}") == "kept"


def test_each_of_the_waits_that_come_at_once_takes_one_of_the_signals_that_came_before(engine):
    lanes = [{"id": "a", "steps": [named("one")]}, {"id": "b", "steps": [named("two")]}]
    both = engine.publish([{"id": "both", "type": "parallel", "branches": lanes}])
    keep(both, 2)
    run = engine.start(both)
    engine.worker()
    engine.ends(run)
    version = engine.publish([named("one")])
    keep(version, 10)
    runs = [engine.start(version) for _ in range(10)]
    engine.worker()
    for run in runs:
        engine.ends(run)
    assert sorted(engine.output(run, "one")["n"] for run in runs) == list(range(10))


def test_a_signal_that_came_in_time_for_a_run_that_had_failed_is_taken_when_it_goes_on(engine, clock):
    lanes = [
        {"id": "a", "steps": [named("one")]},
        {"id": "b", "steps": [{"id": "bad", "type": "probe", "config": {"fail": 9, "retry": False}}]},
    ]
    version = engine.publish([{"id": "both", "type": "parallel", "branches": lanes}])
    run = engine.start(version)
    engine.worker()
    engine.ends(run, "failed")
    assert Wait.objects.get(run_id=run, path="both/a/one").state == "suspended"
    keep(version, 1)
    clock.advance(days=2)
    engine.release("healed")
    assert acts.requeue(run)
    engine.ends(run)


def test_signals_and_waits_that_meet_never_miss_each_other(engine):
    version = flow(engine, **PAID)
    engine.worker(), engine.worker()
    runs = [engine.start(version, {"order": n}) for n in range(24)]
    told = at_once(*[lambda n=n: signals.send(team(), "order_paid", str(n), n, "a") for n in range(24)])
    assert set(told) <= {"taken", "kept"}
    for n, run in enumerate(runs):
        engine.ends(run)
        assert engine.output(run, "paid") == n


@pytest.mark.parametrize("named", [False, True])
def test_a_callback_that_is_retried_takes_the_same_report_again_and_once(engine, named):
    second = {"id": "two", "type": "callback"}
    version = engine.publish([{"id": "paid", "type": "callback", "config": PAID if named else {}}, second])
    engine.worker()
    run = engine.start(version, {"order": 17})

    def report() -> bool:
        if named:
            return signals.send(team(), "order_paid", "17", {"status": "ok"}, "a") == "taken"
        return waits.signal(run, "paid", {"status": "ok"}, "a")

    for turn in range(3):
        assert not turn or acts.retry(run, "paid")
        engine.wait(run, "paid")
        engine.parked(run)
        assert report() and not report()
        engine.wait(run, "two")
        engine.parked(run)
    assert acts.retry(run, "two"), "what comes after it is done again, and what came before is not reported again"
    engine.wait(run, "two")
    engine.parked(run)
    assert not report()


def test_the_api_takes_signals_from_operators(engine):
    version = flow(engine, **PAID)
    engine.worker()
    run = engine.start(version, {"order": 17})
    engine.parked(run)
    user = get_user_model().objects.create_user("bot", "bot@example.com", "x")
    Membership.objects.create(user=user, team_id=team(), role="operator")
    headers = {"Authorization": f"Bearer {make_token(user, 'test')[1]}"}
    given = {"name": "order_paid", "key": "17", "payload": {"amount": 3}}
    answer = Client().post("/api/v1/signals", given, content_type="application/json", headers=headers)
    assert answer.status_code == 200 and answer.json() == {"state": "taken"}
    engine.ends(run)
    again = Client().post("/api/v1/signals", given, content_type="application/json", headers=headers)
    assert again.json() == {"state": "before"}
    of_a_test = Client().post("/api/v1/signals", given | {"test": True}, content_type="application/json", headers=headers)
    assert of_a_test.json() == {"state": "kept"}
    Membership.objects.update(role="viewer")
    assert Client().post("/api/v1/signals", given, content_type="application/json", headers=headers).status_code == 403


def test_what_does_not_fit_is_refused_to_its_sender_and_the_run_waits_on(engine):
    engine.worker()
    run = engine.start(flow(engine, schema=SCHEMA))
    engine.parked(run)
    address = callback_url(run, "paid").partition("8000")[2]
    refused = [Client().post(address, '{"amount": "much"}', content_type="application/json") for _ in range(22)]
    assert refused[0].status_code == 422 and "payload.amount" in refused[0].json()["error"]["message"]
    assert refused[-1].status_code == 429 and int(refused[-1]["Retry-After"]) > 0, "to be checked costs more than to be sent"
    engine.sql("delete from rate_limit")
    assert engine.state(run) == "open"
    assert Client().post(address, '{"amount": 3}', content_type="application/json").status_code == 202
    engine.ends(run)


def test_a_large_value_that_is_checked_holds_up_no_other_run():
    """They share a loop, and the other system decides how large it is."""
    rows = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}}
    ctx, turns = context("callback", {"schema": rows}), 0

    async def both() -> bool:
        nonlocal turns
        checked = asyncio.ensure_future(step_types()["callback"].resume(ctx, {"by": "signal", "payload": [{"n": 1}] * 20_000}, {}))
        while not checked.done():
            await asyncio.sleep(0)
            turns += 1
        return len(checked.result().output) == 20_000

    assert asyncio.run(both()) and turns > 10


def test_without_a_call_it_fails_or_goes_on_as_it_says(engine, clock):
    engine.worker()
    fails, goes = engine.start(flow(engine, expires="1h")), engine.start(flow(engine, expires="1h", on_expired="go_on"))
    engine.parked(fails), engine.parked(goes)
    clock.advance(hours=1, seconds=1)
    assert "Nobody called back" in engine.ends(fails, "failed").error["message"]
    engine.ends(goes)
    assert engine.output(goes, "paid") is None


@pytest.mark.parametrize(
    "waits_for",
    [
        {"type": "callback", "config": {"expires": "1h"}},
        {"type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "Go?", "expires": "1h", "on_expired": "fail"}},
    ],
)
def test_a_time_out_has_a_lane_of_its_own(engine, clock, waits_for):
    late = {"id": "late", "type": "set", "config": {"values": {"told": True}}}
    after = {"id": "after", "type": "set", "config": {"values": {"on": True}}}
    engine.worker()
    run = engine.start(engine.publish([{"id": "answer", **waits_for, "on_error": {"steps": [late]}}, after]))
    engine.parked(run)
    clock.advance(hours=1, seconds=1)
    engine.ends(run)
    assert engine.output(run, "answer/on_error/late") == {"told": True} and engine.output(run, "after") == {"on": True}


@pytest.mark.parametrize("path", ["reply", "each[1]/reply"])
def test_what_is_sent_to_a_place_before_it_waits_is_taken_there(engine, path):
    reply = {"id": "reply", "type": "callback"}
    each = {"id": "each", "type": "loop", "config": {"items": "[1, 2]"}, "steps": [reply]}
    run = engine.start(engine.publish([each if "[" in path else reply]))
    for place in {path, path.replace("1", "0")}:
        assert waits.signal(run, place, {"n": place}, "1")
    engine.worker()
    engine.ends(run)
    assert engine.output(run, path)["n"] == path


def test_a_person_ends_a_wait_early_or_moves_its_end(engine, clock):
    engine.worker()
    version = engine.publish([{"id": "wait", "type": "delay", "config": {"for": "1d"}}])
    early, late = engine.start(version), engine.start(version)
    engine.parked(early), engine.parked(late)
    boss = get_user_model().objects.create_user("boss", "boss@example.com", "x")
    assert waits.fire(engine.wait(early, "wait").pk, user=boss)
    engine.ends(early)
    assert "Ended the wait early by boss." in engine.log(early)
    wait = engine.wait(late, "wait")
    assert waits.extend(wait.pk, wait.due_at + timedelta(days=1), user=boss)
    clock.advance(days=1, seconds=5)
    eventually(lambda: engine.parked(late).due_at == wait.due_at + timedelta(days=1))
    assert engine.state(late) == "open"
    clock.advance(days=1)
    engine.ends(late)
    assert not waits.fire(wait.pk) and not waits.extend(wait.pk, wait.due_at)
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == ["publish", "fire", "extend"]


def test_a_wait_moved_while_its_run_is_held_ends_at_the_new_time(engine, clock):
    """The other lane keeps the run with its worker, which has to learn the new time."""
    engine.worker()
    lanes = [{"id": "a", "steps": [{"id": "wait", "type": "delay", "config": {"for": "5d"}}]},
             {"id": "b", "steps": [{"id": "busy", "type": "probe", "config": {"hold": "gate"}}]}]  # fmt: skip
    run = engine.start(engine.publish([{"id": "both", "type": "parallel", "branches": lanes}]))
    wait = engine.wait(run, "both/a/wait")
    waits.extend(wait.pk, clock.now() + timedelta(hours=1))
    clock.advance(hours=1, seconds=1)
    eventually(lambda: Wait.objects.get(pk=wait.pk).state == "resolved", what=lambda: engine.told(run))
    engine.release("gate")
    engine.ends(run)
