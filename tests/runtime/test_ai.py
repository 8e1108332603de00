"""The AI step: providers that behave and ones that do not, and the model that is always there."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

from runtime.ai import builtin, minilm, providers
from runtime.ai.anthropic import _all_input
from runtime.ai.answers import BadAnswer, check_schema, read_answer
from runtime.ai.prices import price
from runtime.definition import check
from runtime.states import AttemptOutcome
from runtime.steps.base import Connection, StepError
from tests.runtime.support import context, on_loop, run_in, run_step
from tests.servers.ai import AiServer

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer"}, "reason": {"type": "string"}},
    "required": ["score"],
}
EXTRACT = {
    "task": "extract",
    "prompt": "Score: {{ trigger.text }}",
    "schema": SCHEMA,
    "connection": "ai",
    "model": "m-1",
}
LABELS = {
    "sales": "Wants to buy, asks for a price, an offer or a demo",
    "support": "Something does not work, an error, asks for help with the product",
    "jobs": "Applies for a job or asks about open positions",
}
CLASSIFY = {"task": "classify", "prompt": "{{ trigger.text }}", "labels": LABELS}


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture(params=["openai", "anthropic"])
def kind(request):
    return request.param


@pytest.fixture
def ai():
    providers._learnt.clear()
    with AiServer() as running:
        yield running


def connection(ai, kind="openai", **config) -> dict[str, Connection]:
    config = {"base_url": ai.base_url if kind == "openai" else ai.url, **config}
    return {"ai": Connection("ai", kind, ("127.0.0.1",), config, {"api_key": "sk-s3cret"})}


def asked(ai, config=EXTRACT, kind="openai", text="We want 200 licences"):
    return run_step("ai", config, trigger={"text": text}, connections=connection(ai, kind))


def failing(ai, config=EXTRACT, kind="openai", **more) -> StepError:
    with pytest.raises(StepError) as caught:
        run_step("ai", config, trigger={"text": "x"}, connections=connection(ai, kind), **more)
    return caught.value


# What a provider gives


def test_extract_gives_the_object_with_its_tokens(ai, kind):
    done = asked(ai, kind=kind)
    assert done.output == {"score": 82, "reason": "Asked for a price"}
    assert (done.tokens_in, done.tokens_out) == (120, 30)
    [request] = ai.requests()
    assert "We want 200 licences" in json.dumps(request["body"])
    assert request["headers"]["idempotency-key"] == "hf-48213-call"


def test_the_key_travels_in_its_header_and_in_no_attempt(ai, kind):
    ai.control(key="sk-s3cret")
    ctx = context("ai", EXTRACT, trigger={"text": "x"}, connections=connection(ai, kind))
    run_in("ai", ctx)
    assert "s3cret" not in json.dumps(ctx.attempts)
    assert ctx.attempts[0][1]["model"] == "m-1" and ctx.attempts[0][1]["prompt"] == "Score: x"


def test_classify_gives_one_of_the_labels(ai, kind):
    ai.control(answer={"label": "sales", "score": 0.9, "reason": "Wants licences"})
    done = asked(ai, CLASSIFY | {"connection": "ai", "model": "m"}, kind)
    assert done.output == {"label": "sales", "score": 0.9, "reason": "Wants licences"}
    assert LABELS["support"] in json.dumps(ai.requests()[0]["body"])


def test_a_label_that_nobody_offered_is_no_answer(ai, kind):
    ai.control(answer={"label": "refund everything", "score": 1, "reason": ""})
    failed = failing(ai, CLASSIFY | {"connection": "ai", "model": "m"}, kind)
    assert failed.retry and "answer.label" in failed.message


@pytest.mark.parametrize("task", ["generate", "summarise"])
def test_writing_gives_text(ai, kind, task):
    ai.control(answer="  Dear Ann, <script>alert(1)</script>\n")
    done = asked(ai, {"task": task, "prompt": "x", "connection": "ai", "model": "m"}, kind)
    assert done.output == {"text": "Dear Ann, <script>alert(1)</script>"}, "data, escaped wherever it is shown"


def test_a_schema_that_is_no_object_is_wrapped_and_unwrapped(ai, kind):
    ai.control(answer={"value": ["a", "b"]})
    config = EXTRACT | {"schema": {"type": "array", "items": {"type": "string"}}}
    assert asked(ai, config, kind).output == ["a", "b"]


def test_the_connections_model_is_used_where_the_step_names_none(ai):
    config = EXTRACT | {"model": ""}
    run_step("ai", config, trigger={"text": "x"}, connections=connection(ai, model="own-model"))
    assert ai.requests()[0]["body"]["model"] == "own-model"
    assert "Name a model" in failing(ai, config).message


# What it costs


def test_a_cost_that_is_told_is_the_cost(ai):
    ai.control(cost=0.00123)
    assert asked(ai).cost == Decimal("0.00123")


@pytest.mark.parametrize(
    ("told", "cost"), [("1e-9999999", 0), ("0e-9999999", 0), ("1e9999999", None), (1e-9, 0), (20_000, None), ("NaN", None), (-1, None), ("1.123456789", "1.12345679")]
)
def test_a_cost_that_could_not_be_stored_is_rounded_or_unknown(ai, told, cost):
    """Else the call has happened, and its run can keep nothing of it."""
    ai.control(cost=told)
    found = asked(ai).cost
    assert found == (None if cost is None else Decimal(cost)) and (found is None or found.as_tuple().exponent == -8)


def test_counts_of_tokens_that_could_not_be_stored_are_unknown(ai):
    assert _all_input({"input_tokens": 2**31 - 1, "cache_read_input_tokens": 2**31 - 1}) is None
    assert _all_input({"input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 2**40}) == 7


def test_an_unknown_cost_is_unknown_and_not_nothing(ai, kind):
    assert asked(ai, kind=kind).cost is None, "a server of one's own has no list price, whatever the model is called"
    ai.control(usage=None)
    done = asked(ai, kind=kind)
    assert done.cost is None and done.tokens_in is None and done.tokens_out is None


def test_known_providers_have_list_prices():
    assert on_loop(price("https://api.openai.com/v1", "gpt-4o-mini", 1_000_000, 0)) == Decimal("0.15")
    assert on_loop(price("https://api.openai.com/v1", "no-such-model", 1, 1)) is None
    assert on_loop(price("https://api.openai.com/v1", "gpt-4o-mini", None, 1)) is None


def test_a_useless_answer_has_been_paid_for(ai):
    ai.control(answer="no json", cost=0.5)
    failed = failing(ai)
    assert failed.cost == Decimal("0.5") and failed.tokens_in == 120


# Answers that are none


@pytest.mark.parametrize("answer", ["I cannot say.", '{"score": "high"}', "{}", '{"score": 1', '{"score": NaN}'])
def test_an_answer_that_does_not_fit_may_be_asked_for_again_and_is_named(ai, kind, answer):
    ai.control(answer=answer)
    failed = failing(ai, kind=kind)
    assert failed.retry and failed.field == "schema" and failed.outcome == AttemptOutcome.ANSWERED
    assert failed.message.startswith("The model's answer") and failed.response["answer"] == answer


@pytest.mark.parametrize(
    "answer", ['```json\n{"score": 7}\n```', 'Here you are: {"score": 7} Anything else?', ' {"score": 7}\n']
)
def test_json_is_found_where_models_like_to_put_it(ai, answer):
    ai.control(answer=answer)
    assert asked(ai).output == {"score": 7}


def test_an_answer_that_was_cut_off_says_what_to_do(ai, kind):
    ai.control(finish="length" if kind == "openai" else "max_tokens", answer='{"score": 1')
    failed = failing(ai, kind=kind)
    assert "Allow more tokens" in failed.message and failed.field == "max_tokens" and not failed.retry


def test_a_refusal_is_a_refusal(ai, kind):
    ai.control(finish="content_filter" if kind == "openai" else "refusal", answer="I will not.")
    failed = failing(ai, kind=kind)
    assert "refused" in failed.message and "I will not." in failed.message and not failed.retry


# Providers with peculiarities


def test_an_endpoint_without_schemas_is_told_in_words_and_remembered(ai):
    ai.control(schemas=False)
    ctx = context("ai", EXTRACT, trigger={"text": "x"}, connections=connection(ai))
    assert run_in("ai", ctx).output["score"] == 82
    first, second = ai.requests()
    assert "response_format" in first["body"] and "response_format" not in second["body"]
    assert '"score"' in second["body"]["messages"][0]["content"]
    assert len(ctx.attempts) == 2, "each call has an attempt of its own"
    assert first["headers"]["idempotency-key"] != second["headers"]["idempotency-key"], "another body, another key"
    asked(ai)
    assert len(ai.requests()) == 3


def test_the_newer_name_of_the_limit_is_learnt(ai):
    ai.control(limit="max_completion_tokens")
    assert asked(ai, EXTRACT | {"max_tokens": 50}).output["score"] == 82
    assert ai.requests()[-1]["body"]["max_completion_tokens"] == 50


@pytest.mark.parametrize(
    ("status", "outcome", "retry"),
    [(400, AttemptOutcome.ANSWERED, False), (429, AttemptOutcome.REFUSED, True), (500, AttemptOutcome.UNKNOWN, True)],
)
def test_a_provider_that_fails_is_quoted(ai, kind, status, outcome, retry):
    ai.control(
        refuse=status, refuse_body={"error": {"message": "The model is tired."}}, refuse_headers={"Retry-After": "3"}
    )
    failed = failing(ai, kind=kind)
    assert "The model is tired." in failed.message and (failed.outcome, failed.retry) == (outcome, retry)
    assert failed.retry_after == (3 if retry else None)


def test_a_wrong_key_names_the_connection(ai, kind):
    ai.control(key="another")
    failed = failing(ai, kind=kind)
    assert "401" in failed.message and "“ai”" in failed.message and not failed.retry


def test_a_base_address_that_leads_elsewhere_says_so(ai):
    with pytest.raises(StepError, match="404") as caught:
        run_step("ai", EXTRACT, trigger={"text": "x"}, connections=connection(ai, base_url=f"{ai.url}/wrong"))
    assert not caught.value.retry


def test_a_reply_that_is_held_ends_at_the_deadline(ai, kind):
    ai.control(hold="hang")
    failed = failing(ai, kind=kind, timeout=0.5)
    assert failed.outcome == AttemptOutcome.UNKNOWN and failed.retry


def test_a_credential_of_another_kind_is_refused(ai):
    wrong = {"ai": Connection("ai", "bearer", ("127.0.0.1",), {}, {"token": "x" * 8})}
    with pytest.raises(StepError, match="not one to an AI provider"):
        run_step("ai", EXTRACT, trigger={"text": "x"}, connections=wrong)


# Schemas


def test_a_pattern_that_would_take_for_ever_does_not():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    with pytest.raises(BadAnswer, match="answer.a"):
        read_answer("", {"a": "a" * 5000 + "!"}, schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [({"type": "nothing"}, "schema.type"), ({"$ref": "https://evil.example/s.json"}, "another document"),
     ({"type": "string", "pattern": "("}, "pattern"),
     ({"properties": {"a": {"minimum": "x"}}}, "schema.properties.a.minimum")],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_is_refused_at_save(schema, words):
    with pytest.raises(ValueError, match=words):
        check_schema(schema)
    [problem] = check(
        {"format": 1, "name": "x", "steps": [{"id": "a", "type": "ai", "config": EXTRACT | {"schema": schema}}]}
    )
    assert problem.step == "a" and problem.field == "config.schema" and words in problem.message


@pytest.mark.parametrize(
    "config", [EXTRACT | {"schema": {}}, CLASSIFY | {"labels": {"one": ""}}, EXTRACT | {"temperature": 3}]
)
def test_what_the_task_needs_is_asked_for_at_save(config):
    assert check({"format": 1, "name": "x", "steps": [{"id": "a", "type": "ai", "config": config}]})


# Without a provider


TEXTS = {
    "sales": ["What would 200 licences cost us per year?", "Please send us an offer for your fleet plan",
              "Could somebody show us the product next week?", "Is there a discount for schools?"],
    "support": ["The export has been broken since Monday, please help", "I get error 502 when I open the dashboard",
                "Our users cannot log in any more", "The app crashes whenever I upload a picture"],
    "jobs": ["I would like to apply as a backend developer", "Do you offer internships in Berlin?",
             "My CV is attached, I am looking forward to an interview", "Are you hiring designers at the moment?"],
}  # fmt: skip


def test_the_built_in_model_gets_at_least_ten_of_twelve():
    results = [
        (label, run_step("ai", CLASSIFY, trigger={"text": text})) for label, texts in TEXTS.items() for text in texts
    ]
    assert sum(done.output["label"] == label for label, done in results) >= 10
    assert all(1 / 3 < done.output["score"] <= 1 and done.output["reason"] for _, done in results)
    assert all(done.cost == 0 and done.tokens_in > 3 for _, done in results)


def test_what_the_built_in_model_reads_has_an_attempt():
    ctx = context("ai", CLASSIFY, trigger={"text": "What does it cost?"})
    run_in("ai", ctx)
    assert ctx.attempts == [("call", {"model": "built-in MiniLM", "task": "classify", "prompt": "What does it cost?"})]


REPORT = """Thanks for the call on Tuesday, it was good to meet the whole team.
The delivery of order 4711 is two weeks late, and our production line stands still because of it.
By the way, the coffee in your new office was excellent! We will be on holiday from the 23rd.
Please send the missing parts for order 4711 by express so that our line can start again.
Best regards, Ann"""


def test_without_a_provider_a_summary_is_the_sentence_that_says_most():
    ctx = context("ai", {"task": "summarise", "prompt": "{{ trigger.text }}"}, trigger={"text": REPORT})
    done = run_in("ai", ctx)
    assert done.output["text"] in REPORT and "order 4711" in done.output["text"]
    assert done.cost == 0 and done.tokens_in > 20 and len(ctx.attempts) == 1 and "quotes" in ctx.lines[0][1]


@pytest.mark.parametrize("text", ["One", "…", "a" * 20_000, "x. " * 500])
def test_any_text_has_a_key_sentence(text):
    assert run_step("ai", {"task": "summarise", "prompt": "{{ trigger.text }}"}, trigger={"text": text}).output["text"] in text


def test_other_tasks_say_how_to_connect_a_provider():
    ctx = context("ai", EXTRACT | {"connection": ""}, trigger={"text": "x"})
    with pytest.raises(StepError, match="needs an AI provider. Add one under Connections") as caught:
        run_in("ai", ctx)
    assert caught.value.field == "connection" and not caught.value.retry and ctx.attempts == []


def test_a_long_text_is_read_in_part_and_says_so():
    ctx = context("ai", CLASSIFY, trigger={"text": "What does it cost? " * 500})
    assert run_in("ai", ctx).output["label"] == "sales"
    assert ctx.lines[0][0] == "warning" and "beginning" in ctx.lines[0][1]


def test_an_empty_input_is_refused():
    with pytest.raises(StepError, match="empty"):
        run_step("ai", CLASSIFY, trigger={"text": "  "})


def test_the_event_loop_goes_on_while_the_model_thinks():
    async def work() -> int:
        await builtin.classify("warm", LABELS)
        ticks = 0
        thinking = asyncio.ensure_future(builtin.classify("How much is it for 7 people? " * 40, LABELS))
        while not thinking.done():
            await asyncio.sleep(0.001)
            ticks += 1
        return ticks

    assert on_loop(work()) > 5


def test_weights_that_are_not_the_checked_ones_are_refused(monkeypatch, tmp_path):
    for name in minilm.HASHES:
        (tmp_path / name).write_bytes(b"something else")
    monkeypatch.setattr(minilm, "model_folder", lambda: tmp_path)
    with pytest.raises(minilm.ModelMissing, match="not the one that was checked"):
        minilm.MiniLM()


def test_without_the_extra_the_step_says_what_to_install(monkeypatch):
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package_here")
    monkeypatch.setattr(builtin, "_model", minilm.MiniLM)
    with pytest.raises(StepError, match="extra “model”") as caught:
        run_step("ai", CLASSIFY, trigger={"text": "never seen before text"})
    assert not caught.value.retry and caught.value.outcome == AttemptOutcome.NOT_SENT
