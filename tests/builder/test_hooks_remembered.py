"""A webhook that has started a run is remembered: the next request costs one statement, and nothing that holds is passed over."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from runtime import hooks
from runtime.models import Dispatch, RateLimit, Run, Team, Trigger, Workflow
from runtime.publish import make_live, publish
from runtime.triggers.signatures import generated_secrets

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def flow() -> Workflow:
    return Workflow.objects.create(team=Team.objects.create(name="Sales"), name="Leads")


def webhook(flow: Workflow, limits: dict[str, Any] | None = None, **config: Any) -> str:
    """Publishes the flow with this webhook, and gives its address."""
    trigger = {"id": "lead", "type": "webhook", "config": config}
    publish(flow, {"format": 1, "name": "Leads", "triggers": [trigger], "steps": [], "limits": limits or {}})
    return f"/hooks/{Trigger.objects.get(workflow=flow).token}/"


def post(address: str, body: str = "{}", **headers: str) -> Any:
    return Client(headers=headers).post(address, body, content_type="application/json")


def remembered(flow: Workflow, **config: Any) -> str:
    address = webhook(flow, **config)
    assert post(address).status_code == 202
    assert hooks.remembered(address.split("/")[2])
    return address


@pytest.fixture
def written() -> Iterator[Callable[[str], list[tuple[str, str]]]]:
    """(how its commit waits, transaction) of each time that a row was written to `run`, or a webhook's to `rate_limit`."""

    def rows(table: str) -> list[tuple[str, str]]:
        with connection.cursor() as cursor:
            cursor.execute("select how, number::text from noted where what = %s", [table])
            return cursor.fetchall()

    with connection.cursor() as cursor:
        cursor.execute("create table noted (what text, how text, number xid8)")
        cursor.execute("create function note_it() returns trigger language plpgsql as $$ begin insert into noted values "
                       "(tg_table_name, current_setting('synchronous_commit'), pg_current_xact_id()); return null; end $$")  # fmt: skip
        cursor.execute("create trigger note_it after insert on run for each row execute function note_it()")
        cursor.execute("create trigger note_it after insert or update on rate_limit for each row when (new.key like 'hook:%') "
                       "execute function note_it()")  # fmt: skip
    yield rows
    with connection.cursor() as cursor:
        cursor.execute("drop function note_it() cascade")
        cursor.execute("drop table noted")


def test_the_first_request_takes_two_statements_and_the_next_one_beside_the_bell(flow, django_assert_num_queries, monkeypatch):
    monkeypatch.setattr("runtime.limits.FORGET_ONCE_IN", 10**9)
    monkeypatch.setattr("runtime.starts.ring_after_commit", lambda: None)
    address = webhook(flow)
    for statements in (2, 1, 1):
        with django_assert_num_queries(statements):
            assert post(address, '{"n": 1}').status_code == 202
    assert [run.input["body"] for run in Run.objects.all()] == [{"n": 1}] * 3
    assert Dispatch.objects.filter(state="ready").count() == 3


def test_the_count_waits_for_no_disk_and_the_run_does(flow, written):
    address = remembered(flow)
    with connection.cursor() as cursor:
        cursor.execute("set synchronous_commit = on")  # the tests' own server waits for nothing
    assert post(address).status_code == 202
    (how, number), (waits, in_another) = written("rate_limit")[-1], written("run")[-1]
    assert (how, waits) == ("off", "on")
    assert number != in_another, "the count would hold others back until the run is committed"
    connection.close()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda flow: Trigger.objects.update(enabled=False), 404),
        (lambda flow: Trigger.objects.update(token="another-token-0123456789"), 404),
        (lambda flow: make_live(flow, None), 404),
        (lambda flow: Workflow.objects.update(deleted_at="2027-01-01T00:00Z"), 404),
        (lambda flow: Workflow.objects.update(paused=True), 503),
        (lambda flow: webhook(flow, signature={"kind": "github"}), 401),
        (lambda flow: webhook(flow, allowed=["192.0.2.0/24"]), 403),
        (lambda flow: webhook(flow, methods=["PUT"]), 405),
        (lambda flow: webhook(flow, format="form"), 415),
        (lambda flow: webhook(flow, dedupe="body.id"), 400),
        (lambda flow: webhook(flow, only="false"), 200),
        (lambda flow: Trigger.objects.all().delete(), 404),
    ],
    ids=["disabled", "token", "offline", "deleted", "paused", "signed", "elsewhere", "method", "form", "dedupe", "only", "gone"],
)
def test_what_is_changed_holds_from_the_next_request_on(flow, change, status):
    address = remembered(flow)
    change(flow)
    assert [post(address).status_code, post(address).status_code] == [status, status]
    assert Run.objects.count() == 1


def test_runs_are_of_the_newest_version_and_on_its_terms(flow):
    address = remembered(flow)
    webhook(flow, {"at_most": 1, "priority": 7})
    assert post(address).status_code == 202
    webhook(flow, {"at_most": 1, "priority": 8})
    assert [post(address).status_code for _ in range(2)] == [202, 202]
    assert list(Run.objects.order_by("pk").values_list("version__number", flat=True)) == [1, 2, 3, 3]
    rows = Dispatch.objects.order_by("pk").values_list("priority", "queued", "slot_of")
    assert list(rows) == [(0, False, None), (7, True, flow.pk), (8, True, flow.pk), (8, True, flow.pk)]


def test_what_a_flow_drops_is_dropped(flow):
    address = webhook(flow, {"at_most": 1, "more": "drop"})
    assert [post(address).status_code for _ in range(3)] == [202, 409, 409]


def test_the_same_event_and_another_body_under_one_key(flow):
    address = remembered(flow)
    first = post(address, '{"a": 1}', **{"Idempotency-Key": "k"})
    again = post(address, '{"a": 1}', **{"Idempotency-Key": "k"})
    other = post(address, '{"a": 2}', **{"Idempotency-Key": "k"})
    assert [first.status_code, again.status_code, other.status_code] == [202, 200, 409]
    assert first.json() == again.json() and Run.objects.count() == 2


def test_the_rate_holds_and_each_request_counts_once_whatever_becomes_of_it(flow, settings, written):
    address = webhook(flow, signature={"kind": "github"}, dedupe="body.id")
    (secret,) = generated_secrets(Trigger.objects.get().token)

    def signed(body: str) -> int:
        told = hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
        return post(address, body, **{"X-Hub-Signature-256": f"sha256={told}"}).status_code

    bodies = ['{"id": 1}', '{"id": 2}', "{", '{"id": 3}', '{"id": 3}', '{"no": 3}']
    for number, (body, status) in enumerate(zip(bodies, [202, 202, 400, 202, 200, 400], strict=True), 1):
        assert (signed(body), len(written("rate_limit"))) == (status, number)
    assert signed('{"id": 4}') == 202 and post(address, "{}").status_code == 401 and len(written("rate_limit")) == 8
    assert RateLimit.objects.filter(key__startswith="miss:").count() == 1
    assert signed('{"id": 5}') == signed('{"id": 6}') == 202
    RateLimit.objects.filter(key__startswith="hook:").delete()
    settings.HOLDFAST_HOOKS_PER_MINUTE = 2
    assert [signed(f'{{"id": {n}}}') for n in range(10, 14)] == [202, 202, 429, 429]
    assert Run.objects.count() == 8


def test_only_so_many_are_remembered_and_no_sample(flow, monkeypatch):
    monkeypatch.setattr(hooks, "MOST_REMEMBERED", 1)
    first = remembered(flow, sample={"large": "x"}, format="json")
    assert hooks.remembered(first.split("/")[2]).config["format"] == "json"
    assert "sample" not in hooks.remembered(first.split("/")[2]).config
    remembered(Workflow.objects.create(team=flow.team, name="Others"))
    assert hooks.remembered(first.split("/")[2]) is None and post(first).status_code == 202
