"""Webhooks: what becomes a run, what is refused and how, and what happens the second time."""

from __future__ import annotations

import logging

import pytest
from django.test import Client
from django.urls import reverse

from builder.logs import ScrubbedFormatter
from runtime.jsonvalues import MIB
from runtime.models import Dispatch, Run, Trigger, Workflow
from tests.builder.posting import JSON, hook, message, no_run_was_started, post, team  # noqa: F401 - two are fixtures
from tests.builder.test_callbacks import waiting_run  # noqa: F401

pytestmark = pytest.mark.django_db


def test_a_request_becomes_a_run_that_is_ready_to_be_claimed(hook, settings):
    trigger = hook()
    response = post(
        trigger,
        {"company": "Halden"},
        query="?source=site&tag=a&tag=b",
        x_event_id="e1",
        authorization="Bearer x",
        cookie="a=b",
    )
    assert response.status_code == 202
    run = Run.objects.get()
    assert response.json() == {"run": run.pk, "url": f"{settings.HOLDFAST_PUBLIC_URL}/runs/{run.pk}/"}
    assert run.input["body"] == {"company": "Halden"}
    assert run.input["query"] == {"source": "site", "tag": ["a", "b"]}
    assert run.input["headers"]["x-event-id"] == "e1"
    assert not {"authorization", "cookie"} & set(run.input["headers"])
    assert run.input["method"] == "POST"
    assert (run.version, run.trigger_key) == (trigger.workflow.live_version, "lead")
    assert Dispatch.objects.get(run=run).state == "ready"


def test_the_address_works_with_and_without_its_last_slash(hook):
    assert Client().post(f"/hooks/{hook().token}", "{}", content_type=JSON).status_code == 202


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"a": 1,}', "line 1, column 9"),
        ("", "empty"),
        ("[" * 100_000, "64 levels"),
        (r'{"items": [{"name": "\u0000"}]}', "body.items[0].name"),
        (r'{"a": "\ud800"}', "body.a"),
        ('{"a": NaN}', "body.a"),
        ('{"a": Infinity}', "body.a"),
        ('{"a": %s}' % ("7" * 5000), "body.a"),
        ('{"a": 1, "a": 2}', "twice"),
        (b'{"a": "\xff"}', "UTF-8"),
    ],
)
def test_bodies_that_cannot_be_held_are_refused_with_their_place(hook, body, words):
    response = post(hook(), body)
    assert response.status_code == 400
    assert words in message(response)
    assert no_run_was_started()


@pytest.mark.parametrize(
    "content_type", [JSON, "application/cloudevents+json", "application/json; charset=utf-8", "text/plain", None]
)
def test_the_address_and_not_the_content_type_fixes_the_parser(hook, content_type):
    assert post(hook(), {"a": 1}, content_type).status_code == 202
    assert Run.objects.get().input["body"] == {"a": 1}


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "multipart/mixed"]
)
def test_other_kinds_of_bodies_are_refused_where_json_is_expected(hook, content_type):
    assert post(hook(), '{"files[0].path": "/etc/passwd"}', content_type).status_code == 415
    assert no_run_was_started()


@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "identity, gzip"])
def test_compressed_bodies_are_refused(hook, encoding):
    assert post(hook(), "{}", content_encoding=encoding).status_code == 415


def test_one_byte_over_the_limit_is_refused_and_the_last_byte_below_it_is_not(hook):
    trigger = hook()
    full = '"' + "x" * (MIB - 2) + '"'
    assert post(trigger, full).status_code == 202
    assert post(trigger, full + " ").status_code == 413
    assert Run.objects.count() == 1


FORM = "application/x-www-form-urlencoded"


def test_a_form_is_taken_where_the_workflow_says_so(hook):
    assert post(hook(format="form"), "name=Dana+L%C3%BC&tag=a&tag=b&empty=", FORM).status_code == 202
    assert Run.objects.get().input["body"] == {"name": "Dana Lü", "tag": ["a", "b"], "empty": ""}


def test_a_form_field_named_like_a_path_is_text_and_nothing_else(hook):
    assert post(hook(format="form"), "trigger.body=x&__proto__=y&body%5Badmin%5D=1", FORM).status_code == 202
    assert Run.objects.get().input["body"] == {"trigger.body": "x", "__proto__": "y", "body[admin]": "1"}


@pytest.mark.parametrize(
    ("body", "words"), [("a=%00", "body.a"), ("a=%ff", "UTF-8"), ("&".join(f"a{n}=1" for n in range(1001)), "1,000")]
)
def test_forms_that_cannot_be_held_are_refused(hook, body, words):
    response = post(hook(format="form"), body, FORM)
    assert (response.status_code, words in message(response)) == (400, True)


def test_json_is_refused_where_a_form_is_expected(hook):
    assert post(hook(format="form"), {"a": 1}).status_code == 415


def test_a_query_that_cannot_be_held_is_refused(hook):
    response = post(hook(), query="?a=%00")
    assert (response.status_code, "query.a" in message(response)) == (400, True)


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "patch"])
def test_only_post_starts_runs(hook, method):
    trigger = hook()
    for token in (trigger.token, "unknown-token-0123456789"):
        response = getattr(Client(), method)(f"/hooks/{token}/")
        assert (response.status_code, response["Allow"]) == (405, "POST")
    assert no_run_was_started()


def test_disabled_deleted_unpublished_and_unknown_addresses_look_the_same(hook):
    disabled, deleted, unpublished, removed = hook(), hook(), hook(), hook()
    Trigger.objects.filter(pk=disabled.pk).update(enabled=False)
    Workflow.objects.filter(pk=deleted.workflow_id).update(deleted_at="2027-01-01T00:00Z")
    Workflow.objects.filter(pk=unpublished.workflow_id).update(live_version=None)
    Trigger.objects.filter(pk=removed.pk).update(type="schedule")
    odd = ["unknown-token-0123456789", "x", "a" * 500, "%00", "ü" * 20]
    answers = {
        (response.status_code, response.content, tuple(sorted(response.headers.items())))
        for response in (post(one) for one in [disabled, deleted, unpublished, removed, *odd])
    }
    assert len(answers) == 1
    assert answers.pop()[0] == 404


def test_a_paused_workflow_asks_the_sender_to_come_again(hook):
    trigger = hook()
    Workflow.objects.filter(pk=trigger.workflow_id).update(paused=True)
    response = post(trigger)
    assert (response.status_code, response["Retry-After"]) == (503, "60")
    assert no_run_was_started()


def test_the_same_event_starts_one_run(hook):
    trigger = hook(dedupe="headers['x-event-id']")
    first, second, other = (post(trigger, {"n": n}, x_event_id=event) for n, event in enumerate(["e1", "e1", "e2"]))
    assert (first.status_code, second.status_code, other.status_code) == (202, 200, 202)
    assert first.json() == second.json()
    assert first.json()["run"] != other.json()["run"]
    assert Run.objects.count() == Dispatch.objects.count() == 2


@pytest.mark.parametrize(
    ("rule", "one", "same", "other"),
    [
        ("body.id", {"id": 1}, {"id": 1, "x": 2}, {"id": "1x"}),
        ("body.key", {"key": {"a": 1, "b": 2}}, {"key": {"b": 2, "a": 1}}, {"key": {"a": 1}}),
        ("trigger.body.id", {"id": "x" * 5000}, {"id": "x" * 5000}, {"id": "x" * 4999}),
        ("body.id + query.part", {"id": "a"}, {"id": "a"}, {"id": "b"}),
    ],
)
def test_any_value_may_tell_events_apart(hook, rule, one, same, other):
    trigger = hook(dedupe=rule)
    ids = [post(trigger, body, query="?part=1").json()["run"] for body in (one, same, other)]
    assert ids[0] == ids[1] != ids[2]


def test_an_event_that_lacks_what_the_rule_reads_is_refused_and_named(hook):
    response = post(hook(dedupe="headers['x-event-id']"))
    assert response.status_code == 400
    (problem,) = response.json()["error"]["problems"]
    assert (problem["step"], problem["field"]) == ("lead", "config.dedupe")
    assert "x-event-id" in problem["message"]
    assert no_run_was_started()


def test_a_rule_that_gives_null_lets_every_request_start_a_run(hook):
    trigger = hook(dedupe="has(body.id) ? body.id : null")
    assert post(trigger).json()["run"] != post(trigger).json()["run"]
    assert post(trigger, {"id": "a"}).json()["run"] == post(trigger, {"id": "a"}).json()["run"]


def test_an_idempotency_key_names_one_run_and_one_body(hook):
    trigger = hook()
    first, second = post(trigger, {"a": 1}, idempotency_key="k"), post(trigger, {"a": 1}, idempotency_key="k")
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["run"] == second.json()["run"]
    assert post(trigger, {"a": 2}, idempotency_key="k").status_code == 409
    assert post(trigger, {"a": 2}, idempotency_key="k" * 256).status_code == 400
    assert Run.objects.count() == 1


def test_an_events_id_and_an_idempotency_key_are_never_taken_for_each_other(hook):
    trigger = hook(dedupe="has(body.id) ? body.id : null")
    by_rule, by_key = post(trigger, {"id": "key:k"}), post(trigger, {}, idempotency_key="k")
    assert by_rule.json()["run"] != by_key.json()["run"]


def test_two_webhooks_may_see_the_same_event(hook):
    one, other = hook(dedupe="body.id"), hook(dedupe="body.id")
    assert post(one, {"id": "e"}).json()["run"] != post(other, {"id": "e"}).json()["run"]


def test_tokens_do_not_reach_the_log(hook, caplog):
    trigger = hook()
    Trigger.objects.filter(pk=trigger.pk).update(enabled=False)
    with caplog.at_level(logging.DEBUG):
        post(trigger)
    assert any(trigger.token in record.getMessage() for record in caplog.records), "the request was logged at all"
    assert not any(trigger.token in ScrubbedFormatter().format(record) for record in caplog.records)


def test_both_addresses_are_known_by_name(hook):
    assert reverse("hook", args=["t"]) == "/hooks/t/"
    assert reverse("callback", args=[1, "s", "a/b"]) == "/callbacks/1/s/a/b/"


# Rates


def test_a_webhook_takes_so_many_a_minute_and_says_when_to_come_again(hook, settings):
    settings.HOLDFAST_HOOKS_PER_MINUTE = 2
    busy, other = hook(), hook()
    assert [post(busy).status_code for _ in range(3)] == [202, 202, 429]
    refused = post(busy)
    assert 0 < int(refused["Retry-After"]) <= 30 and "2 requests a minute" in message(refused)
    assert post(other).status_code == 202 and Run.objects.count() == 3


def test_who_guesses_tokens_and_signatures_is_slowed_down_and_nobody_else(hook, settings, waiting_run):
    settings.HOLDFAST_MISSES_PER_MINUTE = 4
    signed = hook(signature={"kind": "github"})
    guesses = [
        lambda: post("no-such-token-anywhere"),
        lambda: post(signed),
        lambda: Client().post("/callbacks/1/wrong/step/"),
        lambda: Client().get("/a/no-such-approval-anywhere/"),
        lambda: Client().get("/api/v1/runs", headers={"Authorization": "Bearer no"}),
        lambda: post("no-such-token-anywhere"),
    ]
    assert [guess().status_code for guess in guesses] == [404, 401, 404, 404, 429, 429]
    assert post(hook()).status_code == 202, "what is for us is taken from the same address"
    elsewhere = Client(REMOTE_ADDR="203.0.113.9").post("/hooks/no-such-token-anywhere/")
    assert elsewhere.status_code == 404


# What is asked for beside the token


def test_methods_filter_and_places(hook):
    trigger = hook(methods=["GET", "POST"], only="body == null || body.type == 'paid'", allowed=["127.0.0.0/8", "2001:db8::1"])
    refused = Client().put(f"/hooks/{trigger.token}/", "{}", content_type=JSON)
    assert refused.status_code == 405 and refused["Allow"] == "GET, POST"
    asked = Client().get(f"/hooks/{trigger.token}/?challenge=x")
    assert asked.status_code == 202
    assert Run.objects.get().input == {"body": None, "headers": {}, "query": {"challenge": "x"}, "method": "GET"}
    assert post(trigger, {"type": "sent"}).json()["run"] is None and Run.objects.count() == 1
    assert post(trigger, {"type": "paid"}).status_code == 202
    assert post(trigger, {"none": 1}).status_code == 400 and Run.objects.count() == 2
    elsewhere = Client(REMOTE_ADDR="192.0.2.7").post(f"/hooks/{trigger.token}/", "{}", content_type=JSON)
    assert elsewhere.status_code == 403 and Run.objects.count() == 2


@pytest.mark.parametrize(
    ("config", "field"),
    [({"methods": ["FETCH"]}, "config.methods"), ({"allowed": ["everywhere"]}, "config.allowed"), ({"only": "1 +"}, "config.only"),
     ({"signature": {"kind": "basic"}}, "config.signature"), ({"respond_within": 600}, "config.respond_within")],
)  # fmt: skip
def test_what_a_webhook_cannot_ask_for_is_said_at_saving(config, field):
    from runtime.definition import check

    found = check({"format": 1, "name": "x", "triggers": [{"id": "lead", "type": "webhook", "config": config}], "steps": []})
    assert [problem.field for problem in found] == [field]


def test_an_answer_that_would_take_too_long_is_the_runs_number(hook):
    trigger = hook(respond="at_end", respond_within=1)
    answer = post(trigger)
    assert answer.status_code == 202 and answer.json()["run"] == Run.objects.get().pk


# What a request costs, and what it does not go without


def test_what_machines_are_answered_is_as_guarded_as_a_page_and_knows_no_session(hook, waiting_run):
    page = Client().get("/login/")
    for answer in (post(hook()), post("no-such-token-anywhere"), Client().post("/callbacks/1/wrong/step/")):
        for header in ("X-Frame-Options", "X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy"):
            assert answer[header] == page[header]
        assert "default-src 'none'" in answer["Content-Security-Policy"] and answer["Cache-Control"] == "no-store"
        assert not answer.cookies and "Vary" not in answer
    assert Client(headers={"Host": "elsewhere.example"}).post("/hooks/no-such-token-anywhere/").status_code == 400
