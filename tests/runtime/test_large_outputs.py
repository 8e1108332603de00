"""Large outputs: kept apart by reference, read when a step refers to them, refused above the limit with a remedy."""

from __future__ import annotations

import asyncio
import json

import psycopg
import pytest
from django.conf import settings
from django.urls import reverse

from builder.largevalues import SHOWN
from builder.tokens import make_token
from runtime import acts, memory, retention, waits
from runtime.models import Blob, Membership, Run, RunSearch, StepResult, Workflow
from tests.builder import factories
from tests.runtime.engine import eventually

BIG = {"text": "é" * 400_000, "n": 7}
GIVES = {"id": "big", "type": "probe", "config": {"value": "{{ trigger.body }}"}}
READS = {"id": "read", "type": "set", "config": {"values": {
    "long": "{{ size(steps.big.output.text) }}", "n": "{{ steps.big.output.n }}"}}}


@pytest.mark.parametrize("failpoint", ["", "journal.inside:2", "journal.after:2"])
def test_it_is_kept_apart_and_read_by_the_step_that_refers_to_it(engine, failpoint):
    wait = {"id": "wait", "type": "callback", "config": {}}
    run = engine.start(engine.publish([GIVES, wait, READS]), BIG)
    if failpoint:
        engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    engine.parked(run)
    row = StepResult.objects.get(run_id=run, path="big")
    assert row.output == {"n": 7} and row.output_size > 800_000 and row.value == BIG
    engine.drive(None, [run], lambda: engine.state(run) != "open")
    engine.ends(run)
    assert engine.output(run, "read") == {"long": 400_000, "n": 7}
    assert len({line["key"] for line in engine.ledger(run)}) == 1


def test_a_resume_leaves_it_where_it_is(engine, database_url):
    run = engine.start(engine.publish([GIVES, {"id": "wait", "type": "callback", "config": {}}]), BIG)
    engine.worker()
    engine.parked(run)

    async def loaded():
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as own:
            return (await memory.load(own, [run], ["*"], []))[run]

    assert asyncio.run(loaded()).results["big"].output == memory.Elsewhere("big", 1)


def test_above_the_limit_the_step_fails_and_says_what_to_do(engine):
    run = engine.start(engine.publish([GIVES]), {"text": "x" * 1_100_000})
    engine.worker(largest_output_mib=1)
    error = engine.ends(run, "failed").error
    assert error["step"] == "big" and "larger than 1 MiB" in error["message"] and "fewer fields" in error["message"]
    assert not Blob.objects.exists()


def test_loops_collect_and_remember_large_outputs(engine):
    body = [{"id": "big", "type": "probe", "config": {"value": "{{ trigger.body }}"}},
            {"id": "wait", "type": "callback", "config": {}}]
    loop = {"id": "each", "type": "loop", "steps": body,
            "config": {"items": "[1, 2]", "collect": "steps.big.output.text"}}
    after = {"id": "after", "type": "set", "config": {"values": {"long": "{{ size(steps.each.output.results[1]) }}"}}}
    run = engine.start(engine.publish([loop, after]), BIG)
    engine.worker()
    engine.drive(None, [run], lambda: engine.state(run) != "open")
    engine.ends(run)
    assert engine.output(run, "after") == {"long": 400_000}
    row = StepResult.objects.get(run_id=run, path="each")
    assert row.output == {"count": 2, "succeeded": 2, "failed": 0} and row.output_size > 1_600_000


def test_a_loop_goes_through_it(engine):
    """A hundred items of it are one row."""
    body = [{"id": "one", "type": "set", "config": {"values": {"n": "{{ size(loop.item.text) }}"}}},
            {"id": "wait", "type": "callback", "config": {}}]
    loop = {"id": "each", "type": "loop", "steps": body, "config": {
        "items": "steps.big.output.items", "collect": "loop.item.text + string(steps.one.output.n)", "concurrency": 100}}
    run = engine.start(engine.publish([GIVES, loop]), {"items": [{"text": "x" * 30_000}] * 100})
    worker = engine.worker()
    engine.wait(run, "each[99]/wait")
    worker.kill()
    engine.leases_end()
    engine.worker()
    engine.drive(None, [run], lambda: engine.state(run) != "open")
    engine.ends(run)
    assert StepResult.objects.get(run_id=run, path="each").value["results"] == ["x" * 30_000 + "30000"] * 100


ASKS = {"subject": "Go?", "approvers": ["dana@example.com"]}


@pytest.mark.parametrize(("type", "config", "field"), [
    ("stop", {"output": "{{ steps.big.output }}"}, "output"),
    ("email", {"to": ["dana@example.com"], "subject": "It", "body": "{{ steps.big.output.text }}"}, "body"),
    ("approval", ASKS | {"details": {"It": "{{ steps.big.output.text }}"}}, "details"),
    ("approval", ASKS | {"message": "{{ steps.big.output.text }}"}, "message"),
    ("workflow", {"flow": "Itself", "input": "{{ steps.big.output }}"}, "input"),
    ("loop", {"items": "[1, 2, 3]", "collect": "steps.big.output.text"}, "config.collect"),
])
def test_what_does_not_take_as_much_fails_its_step_and_names_the_field(engine, type, config, field):
    step = {"id": "reads", "type": type, "config": config}
    if type == "loop":
        step["steps"] = [{"id": "inside", "type": "probe"}]
    version = engine.publish([GIVES, step])
    Workflow.objects.filter(pk=version.workflow_id).update(name="Itself")
    run = engine.start(version, {"text": "x" * 1_200_000})
    engine.worker(largest_output_mib=2)
    error = engine.ends(run, "failed").error
    assert (error["step"], error["field"]) == ("reads", field)
    assert "MiB. " in error["message"] and "fewer fields" in error["message"]


@pytest.mark.parametrize("dies", [False, True])
def test_title_and_search_read_it_after_a_resume(engine, dies):
    wait = {"id": "wait", "type": "callback", "config": {}}
    hold = {"id": "hold", "type": "probe", "config": {"hold": "go"}}
    shown = {"title": "Order {{ steps.big.output.order }}", "search": ["steps.big.output.order"]}
    run = engine.start(engine.publish([wait, GIVES, hold if dies else wait | {"id": "more"}], **shown), BIG | {"order": "A 17"})
    worker = engine.worker()
    engine.wait(run, "wait")
    waits.signal(run, "wait", {}, "once")
    if dies:
        eventually(lambda: len(engine.ledger(run)) == 2)
        worker.kill()
        engine.leases_end()
        engine.release("go")
        engine.worker()
    else:
        engine.wait(run, "more")
        engine.parked(run)
        waits.signal(run, "more", {}, "once")
    assert engine.ends(run).title == "Order A 17"
    assert list(RunSearch.objects.filter(run_id=run).values_list("value", flat=True)) == ["a 17"]


def test_a_run_that_waits_after_a_death_is_titled_by_it(engine):
    hold = {"id": "hold", "type": "probe", "config": {"hold": "go"}}
    wait = {"id": "wait", "type": "callback", "config": {}}
    run = engine.start(engine.publish([GIVES, hold, wait], title="{{ steps.big.output.n }}"), BIG)
    engine.dies(engine.worker(failpoint="attempt.after:2"))
    engine.release("go")
    engine.worker()
    engine.parked(run)
    assert Run.objects.get(pk=run).title == "7"


def test_a_payload_is_an_output_as_any_other(engine):
    run = engine.start(engine.publish([{"id": "big", "type": "callback"}, READS]))
    engine.worker(largest_output_mib=1)
    engine.wait(run, "big")
    waits.signal(run, "big", BIG, "once")
    engine.ends(run)
    assert engine.output(run, "read") == {"long": 400_000, "n": 7}
    assert StepResult.objects.get(run_id=run, path="big").output_size > 800_000
    other = engine.start(engine.publish([{"id": "big", "type": "callback"}]))
    engine.wait(other, "big")
    waits.signal(other, "big", "x" * 1_100_000, "once")
    error = engine.ends(other, "failed").error
    assert error["step"] == "big" and "HOLDFAST_LARGEST_OUTPUT_MIB" in error["message"]


def test_people_see_it_in_parts_and_programs_as_a_whole(engine, client):
    run = engine.start(engine.publish([GIVES]), BIG)
    engine.worker()
    engine.ends(run)
    person = factories.user("operator")
    Membership.objects.create(user=person, team=Run.objects.get(pk=run).workflow.team, role="operator")
    client.force_login(person)
    page = client.get(reverse("run", args=[run]), {"step": "big", "tab": "output"}).content.decode()
    assert "Show more" in page and len(page) < 200_000
    address = reverse("run_output", args=[run])
    part = client.get(address, {"step": "big", "take": 1, "start": SHOWN}).content.decode()
    assert part.count("é") == SHOWN and "Show more" in part
    whole = client.get(reverse("run_output_file", args=[run]), {"step": "big"})
    assert json.loads(b"".join(whole.streaming_content)) == BIG
    assert client.get(address, {"step": "none"}).status_code == 404
    given = {"Authorization": f"Bearer {make_token(person, 'test')[1]}"}
    told = client.get(f"/api/v1/runs/{run}/steps", headers=given).json()["items"][0]
    assert told["output"] == {"n": 7} and told["output_size"] > 800_000
    whole = client.get(f"/api/v1/runs/{run}/output", {"path": "big"}, headers=given)
    assert json.loads(b"".join(whole.streaming_content)) == BIG


def test_it_goes_with_its_run(engine, database_url, clock, monkeypatch):
    run = engine.start(engine.publish([GIVES]), BIG)
    engine.worker()
    engine.ends(run)
    assert Blob.objects.count() == 1
    monkeypatch.setattr(settings, "HOLDFAST_RETENTION_DAYS", 1)
    clock.advance(days=3)

    async def delete() -> int:
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as own:
            return (await retention.delete_batch(own, wait=True)).deleted

    eventually(lambda: asyncio.run(delete()) == 1)
    assert not Blob.objects.exists()


def test_a_requeue_gives_it_anew(engine):
    fails = {"id": "fails", "type": "probe", "config": {"fail": 1, "retry": False, "note": "{{ steps.big.output.n }}"}}
    run = engine.start(engine.publish([GIVES, fails]), BIG)
    engine.worker()
    engine.ends(run, "failed")
    (engine.folder / "healed").touch()
    assert acts.requeue(run)
    engine.ends(run)
    assert [line["note"] for line in engine.ledger(run)][-1] == 7


def test_a_while_loop_sees_a_large_output_of_the_iteration_before_after_a_resume(engine):
    big = {"id": "big", "type": "probe", "config": {"value": {"more": True, "text": "{{ trigger.body.text }}"}}}
    goes_on = "loop.index == 0 || loop.index < 2 && loop.last.big.output.more"
    each = {"id": "each", "type": "loop", "config": {"while": goes_on}, "steps": [big, {"id": "wait", "type": "callback"}]}
    run = engine.start(engine.publish([each]), {"text": "x" * 400_000})
    engine.worker()
    for n in range(2):
        engine.wait(run, f"each[{n}]/wait")
        engine.parked(run)
        waits.signal(run, f"each[{n}]/wait", {}, "once")
    engine.ends(run)
