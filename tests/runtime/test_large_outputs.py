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
from runtime.models import Blob, Membership, Run, StepResult
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
