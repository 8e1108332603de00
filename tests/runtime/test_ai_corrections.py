"""Models that are told what was wrong, models that stand in for others, and budgets. Against a real server."""

from __future__ import annotations

from decimal import Decimal

import httpx2
import pytest

from runtime import acts
from runtime.ai import providers
from runtime.credentials import seal
from runtime.definition import check
from runtime.models import Credential, Run, Team
from runtime.steps.base import Connection, StepError
from tests.runtime.support import context, run_in
from tests.servers.ai import AiServer

SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
EXTRACT = {"task": "extract", "prompt": "Score: hello", "schema": SCHEMA, "connection": "ai", "model": "m-1"}


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture
def ai():
    providers._learnt.clear()
    with AiServer() as running:
        yield running


def asking(ai, **config):
    connection = Connection("ai", "openai", ("127.0.0.1",), {"base_url": ai.base_url}, {"api_key": "sk-x"})
    other = Connection("other", "anthropic", ("127.0.0.1",), {"base_url": ai.url, "model": "claude-x"}, {"api_key": "sk-y"})
    return context("ai", EXTRACT | config, connections={"ai": connection, "other": other})


def prompts(ai) -> list[str]:
    return [request["body"]["messages"][-1]["content"] for request in ai.requests()]


def test_a_model_is_told_what_is_wrong_and_each_question_has_its_cost(ai):
    ai.control(answers=[{"score": "high"}, "no idea", {"score": 7}], cost=0.5)
    ctx = asking(ai, corrections=2)
    done = run_in("ai", ctx)
    assert done.output == {"score": 7} and len(ctx.attempts) == 3
    first, second, third = prompts(ai)
    assert first == "Score: hello"
    assert "Your last answer was:\n{\"score\": \"high\"}" in second and "answer.score" in second
    assert "no idea" in third and "is not JSON" in third
    assert [spent["cost"] for _, spent in ctx.answers] == [Decimal("0.5")] * 2 and done.cost == Decimal("0.5")
    keys = {request["headers"]["idempotency-key"] for request in ai.requests()}
    assert len(keys) == 3


def test_it_ends_with_the_number_of_corrections(ai):
    ai.control(answer={"score": "high"})
    ctx = asking(ai, corrections=1)
    with pytest.raises(StepError, match="does not fit the schema") as caught:
        run_in("ai", ctx)
    assert len(ctx.attempts) == 2 and caught.value.retry and caught.value.field == "schema"


def test_another_model_is_asked_where_one_cannot_be_had(ai):
    ai.control(refuse=503, refuse_times=2)
    ctx = asking(ai, fallbacks=["m-2", "other: claude-y"])
    assert run_in("ai", ctx).output == {"score": 82, "reason": "Asked for a price"}
    assert [request["body"]["model"] for request in ai.requests()] == ["m-1", "m-2", "claude-y"]
    assert [spent["outcome"] for _, spent in ctx.answers] == ["unknown", "unknown"]
    assert ctx.lines[0][1].endswith("The next model is asked.")


def test_examples_are_told(ai):
    run_in("ai", asking(ai, examples={"Hi there": '{"score": 1}'}))
    assert 'Examples:\nInput: Hi there\nAnswer: {"score": 1}' in ai.requests()[0]["body"]["messages"][0]["content"]


@pytest.mark.parametrize("answers", [[{"score": "s3cret answer"}, "s3cret words"], [{"score": "s3cret answer"}, {"score": 3}]])
def test_input_and_answer_can_be_kept_out_of_the_log(ai, answers):
    ai.control(answers=answers, cost=0.5)
    ctx = asking(ai, prompt="Score: s3cret input", system="s3cret background", log="masked")
    try:
        kept = run_in("ai", ctx).response
    except StepError as wrong:
        kept = [wrong.message, wrong.response]
    assert "s3cret" not in str([ctx.attempts, ctx.answers, ctx.lines, kept])
    assert "s3cret answer" in prompts(ai)[1] and ctx.attempts[0][1]["prompt"] == "••• (19 characters)"
    assert ctx.answers[0][1]["cost"] == Decimal("0.5")


def test_azure_is_told_its_version_after_the_path_and_the_key_in_its_own_header(ai):
    ctx = asking(ai)
    base = ai.base_url + "?api-version=2024-10-21"
    ctx.connections["ai"] = Connection("ai", "openai", ("127.0.0.1",), {"base_url": base}, {"api_key": "sk-x"})
    run_in("ai", ctx)
    assert ai.requests()[0]["path"] == "/v1/chat/completions?api-version=2024-10-21"
    azure = Connection("ai", "openai", ("*.openai.azure.com",), {}, {"api_key": "sk-x"})
    place = httpx2.URL("https://sales.openai.azure.com/openai/v1/chat/completions")
    assert providers.signed_in(azure, place) == {"api-key": "sk-x"}


# Budgets, on real workers


@pytest.fixture
def flow(engine, ai):
    team, _ = Team.objects.get_or_create(name="Engine")
    seal(Credential(team=team, name="ai", kind="openai", hosts=["127.0.0.1"], config={"base_url": ai.base_url}), {"api_key": "sk-x"})
    ai.control(cost=0.4)
    steps = [{"id": f"ask{n}", "type": "ai", "config": EXTRACT} for n in (1, 2, 3)]
    engine.worker()

    def make(**more):
        return engine.publish(steps, **more)

    return make


def test_a_run_that_has_spent_its_budget_asks_a_person_and_goes_on_or_fails(engine, ai, flow):
    version = flow(budget_run=0.5)
    goes, fails = engine.start(version), engine.start(version)
    for run in (goes, fails):
        wait = engine.wait(run, "ask3", "person")
        assert wait.data["reason"] == "budget" and "The budget of a run is $0.50" in wait.data["error"]
        assert engine.state(run) == "attention" and len(engine.attempts(run)) == 2
        engine.parked(run)
    for worker in engine.workers:
        worker.kill()
    engine.leases_end()
    engine.worker()
    acts.answer(engine.wait(goes, "ask3", "person").pk, "again")
    acts.answer(engine.wait(fails, "ask3", "person").pk, "fail")
    assert engine.ends(goes).cost == Decimal("1.2")
    assert engine.ends(fails, "failed").cost == Decimal("0.8")


def test_a_days_budget_counts_all_runs_and_begins_anew(engine, flow, clock):
    version = flow(budget_day=1.0)
    first = engine.start(version)
    engine.ends(first)
    second = engine.start(version)
    assert "The budget of a day is $1.00" in engine.wait(second, "ask1", "person").data["error"]
    clock.advance(days=1)
    third = engine.start(version)
    engine.ends(third)
    assert Run.objects.get(pk=third).cost == Decimal("1.2")


def test_config_problems_name_their_field():
    definition = {"format": 1, "name": "x", "budget_run": 0, "steps": []}
    assert [problem.field for problem in check(definition)] == ["budget_run"]
    step = {"id": "ask", "type": "ai", "config": EXTRACT | {"corrections": 9}}
    assert [problem.field for problem in check({"format": 1, "name": "x", "steps": [step]})] == ["config.corrections"]


def test_a_run_whose_calls_cost_more_than_can_be_told_ends(engine, clock):
    """A gateway that says that each costs thousands."""
    run = engine.start(engine.publish([{"id": "wait", "type": "delay", "config": {"for": "1h"}}]))
    engine.worker()
    engine.parked(run)
    engine.sql(
        "insert into attempt (run_id, scope, path, take, n, operation, token, started_at, ended_at, outcome, cost) "
        "select %s, '', 'wait', 1, n, 'call', 1, now(), now(), 'answered', 9999 from generate_series(1, 200) n returning n", run
    )  # fmt: skip
    clock.advance(hours=1)
    assert engine.ends(run).cost == 999_999
