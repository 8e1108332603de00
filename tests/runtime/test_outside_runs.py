"""Whole runs that reach outside, by a real worker: provider, approver's mail, CRM, mail server."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from runtime import approvals, credentials
from runtime.models import Credential, OutboxMessage, Team
from tests.runtime.engine import eventually
from tests.servers.ai import AiServer
from tests.servers.misbehaving import Misbehaving
from tests.servers.smtp import SmtpServer

AI_KEY, CRM_TOKEN = "sk-never-to-be-seen-again", "crm token/with+signs"
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}


@pytest.fixture
def ai():
    with AiServer(key=AI_KEY) as server:
        yield server


@pytest.fixture
def smtp():
    with SmtpServer() as server:
        yield server


@pytest.fixture
def connections(engine, ai):
    team, _ = Team.objects.get_or_create(name="Engine")
    provider = Credential(team=team, name="ai", kind="openai", config={"base_url": ai.base_url, "model": "m-1"})
    credentials.seal(provider, {"api_key": AI_KEY})
    other = Credential(team=team, name="crm", kind="bearer", hosts=["127.0.0.1"])
    credentials.seal(other, {"token": CRM_TOKEN})


def qualify(**more):
    config = {"task": "extract", "prompt": "Score: {{ trigger.body }}", "schema": SCHEMA, "connection": "ai"}
    return {"id": "qualify", "type": "ai", "config": config, **more}


def link_in(message) -> str:
    text = message.get_body(("plain",)).get_content()
    return next(word for word in text.split() if "/a/" in word).rstrip("/").rpartition("/")[2]


def ask(**more):
    config = {"approvers": ["dana@example.com"], "subject": "Deal for {{ steps.qualify.output.score }}?", **more}
    return {"id": "ok", "type": "approval", "config": config}


def test_a_lead_goes_all_the_way_and_no_secret_is_kept_anywhere(engine, connections, ai, crm, smtp):
    with Misbehaving() as echo:
        call = {"method": "POST", "connection": "crm", "url": crm.url + "/leads/{{ run.id }}"}
        score = {"score": "{{ steps.qualify.output.score }}"}
        version = engine.publish(
            [
                qualify(),
                ask(),
                {"id": "deal", "type": "http", "config": call | {"json": score}},
                {"id": "echo", "type": "http", "config": {"url": f"{echo.url}/echo", "connection": "crm"}},
                {"id": "mail", "type": "email", "config": {"to": ["{{ trigger.body.email }}"], "subject": "Hello"}},
            ]
        )  # fmt: skip
        run = engine.start(version, {"email": "ann@example.com"})
        engine.worker(email=smtp.options)
        [asked] = smtp.wait(1)
        assert asked["message"]["Subject"] == "Deal for 82?" and asked["recipients"] == ["dana@example.com"]
        recipient = approvals.find(link_in(asked["message"]))
        assert approvals.decide(recipient.approval, "approve", recipient=recipient, comment="Go").state == "decided"
        engine.ends(run)
    [deal] = [row for row in crm.ledger() if row["path"] == f"/leads/{run}"]
    assert deal["body"] == {"score": 82} and deal["key"]
    assert engine.output(run, "ok")["comment"] == "Go"
    [attempt] = engine.attempts(run, "qualify")
    assert (attempt.tokens_in, attempt.tokens_out, attempt.cost) == (120, 30, None)
    assert smtp.wait(2)[1]["recipients"] == ["ann@example.com"]
    assert "Bearer •••" in engine.output(run, "echo")["body"]
    for table in ("run", "step_result", "attempt", "log_line", "wait", "approval", "outbox"):
        kept = json.dumps(engine.sql(f"select to_jsonb(t)::text from {table} t"))
        assert AI_KEY not in kept and CRM_TOKEN not in kept


def test_a_rejection_ends_the_run_before_the_deal(engine, connections, ai, crm, smtp):
    deal = {"id": "deal", "type": "http", "config": {"method": "POST", "url": crm.url + "/deals/{{ run.id }}"}}
    run = engine.start(engine.publish([qualify(), ask(), deal]))
    engine.worker(email=smtp.options)
    recipient = approvals.find(link_in(smtp.wait(1)[0]["message"]))
    approvals.decide(recipient.approval, "reject", recipient=recipient, comment="Too early")
    engine.ends(run)
    assert not [row for row in crm.ledger() if row["path"] == f"/deals/{run}"]
    assert any("Rejected by dana@example.com: Too early" in line for line in engine.log(run))


def test_an_answer_that_is_no_json_is_asked_for_again_and_then_fails_by_name(engine, connections, ai):
    ai.control(answer="I would rather not say.")
    run = engine.start(engine.publish([qualify(retry={"max_attempts": 2, "first": "10ms"})]))
    engine.worker()
    error = engine.ends(run, "failed").error
    assert error["step"] == "qualify" and error["field"] == "schema" and "not JSON" in error["message"]
    assert [attempt.tokens_in for attempt in engine.attempts(run)] == [120] * 4, "two attempts, each corrected once, all paid for"


def test_the_other_sides_wish_to_wait_is_a_floor(engine, crm, clock):
    crm.control(refuse=429, refuse_times=1, refuse_headers={"Retry-After": "120"})
    call = {"id": "call", "type": "http", "config": {"method": "POST", "url": crm.url + "/later/{{ run.id }}"}}
    run = engine.start(engine.publish([call]))
    engine.worker()
    wait = engine.wait(run, "call", "retry")
    assert wait.due_at - wait.created_at > timedelta(seconds=119.9)
    engine.parked(run)
    clock.advance(seconds=121)
    engine.ends(run)
    assert [attempt.outcome for attempt in engine.attempts(run)] == ["refused", "answered"]


def test_a_mail_that_is_refused_does_not_fail_the_run_and_is_told_in_its_log(engine, smtp):
    steps = [
        {"id": "mail", "type": "email", "config": {"to": ["refused@example.com", "ann@example.com"], "subject": "x"}}
    ]
    run = engine.start(engine.publish(steps))
    engine.worker(email=smtp.options)
    engine.ends(run)
    smtp.wait(1)
    eventually(lambda: OutboxMessage.objects.filter(run_id=run, state="failed").exists())
    assert any("refused@example.com was not sent: 550" in line for line in engine.log(run))
