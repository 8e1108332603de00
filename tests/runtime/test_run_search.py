"""What a flow declares is what its runs are found by: early, complete at the end, without secrets, and gone with the run."""

from __future__ import annotations

import pytest
from django.db import connection

from builder import runfilter
from builder.commandline import EVERYBODY
from runtime import credentials
from runtime.models import Credential, RunSearch, Team
from tests.runtime.engine import eventually

SEARCH = ["trigger.body.email", "trigger.body.tags", "steps.later.output.order", "steps.never.output.x"]


def found(text: str) -> list[int]:
    chosen = runfilter.Filter.of({"q": text})
    return list(runfilter.matching(EVERYBODY, chosen).order_by("pk").values_list("pk", flat=True))


def test_runs_are_found_by_what_their_flow_declares(engine, clock):
    steps = [
        {"id": "hour", "type": "delay", "config": {"for": "1h"}},
        {"id": "later", "type": "set", "config": {"values": {"order": 77123}}},
    ]
    version = engine.publish(steps, search=SEARCH)
    body = {"email": "Ada@Example.com", "tags": ["vip", None, {"a": 1}, 5]}
    run, other = engine.start(version, body), engine.start(version, {"email": "bob@example.com", "tags": []})
    engine.worker()
    for number in (run, other):
        engine.parked(number)
    assert found("ada@EXAMPLE.com") == [run], "while it waits"
    assert found("Ada@") == [run] and found("vip") == [run] and found("5") == [run] and found("77123") == []
    engine.drive(clock, [run, other], lambda: {engine.state(one) for one in (run, other)} == {"succeeded"})
    assert found("77123") == [run, other] and found("771") == [run, other] and found("nobody@") == []
    assert set(RunSearch.objects.filter(run_id=run).values_list("value", flat=True)) == {
        "ada@example.com", "vip", "5", "77123",
    }  # fmt: skip


def test_a_secret_is_not_among_it(engine, crm):
    team, _ = Team.objects.get_or_create(name="Engine")
    crm_connection = Credential(team=team, name="crm", kind="bearer", hosts=["127.0.0.1"])
    credentials.seal(crm_connection, {"token": "s3cret-token-of-the-crm"})
    config = {"method": "PUT", "connection": "crm", "url": crm.url + "/{{ run.id }}"}
    version = engine.publish([{"id": "call", "type": "http", "config": config}], search=["trigger.body.token"])
    run = engine.start(version, {"token": "s3cret-token-of-the-crm"})
    engine.worker()
    engine.ends(run)
    [value] = eventually(lambda: RunSearch.objects.filter(run_id=run).values_list("value", flat=True))
    assert "s3cret" not in value


@pytest.mark.django_db
def test_a_search_reads_no_more_than_an_index_gives():
    with connection.cursor() as cursor:
        for other in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"set local enable_{other} = off")
    plan = RunSearch.objects.filter(value="ada").order_by("-run_id")[:1000].explain()
    plan += RunSearch.objects.filter(value__gte="ada", value__lt="ada\U0010ffff")[:1000].explain()
    assert plan.count("using run_search_value") == 2 and "Sort" not in plan, plan
