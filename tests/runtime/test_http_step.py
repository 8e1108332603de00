"""The API call step against real servers."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import httpx2
import pytest

from runtime.definition import check
from runtime.states import AttemptOutcome
from runtime.steps import calls, step_types
from runtime.steps.base import Connection, StepError
from tests.runtime.support import context, run_in, run_step
from tests.servers.crm import Crm
from tests.servers.misbehaving import Misbehaving

REFUSED, ANSWERED, UNKNOWN = AttemptOutcome.REFUSED, AttemptOutcome.ANSWERED, AttemptOutcome.UNKNOWN


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture(scope="module")
def odd():
    with Misbehaving() as running:
        yield running


@pytest.fixture
def crm(tmp_path):
    with Crm(tmp_path / "crm.db") as running:
        yield running


def failing(config, **more) -> StepError:
    with pytest.raises(StepError) as caught:
        run_step("http", config, **more)
    return caught.value


def problem(**config) -> str:
    step = {"id": "call", "type": "http", "config": config}
    return "; ".join(map(str, check({"format": 1, "name": "x", "steps": [step]})))


def bearer(name: str, *hosts: str, **config) -> Connection:
    return Connection(name, "bearer", hosts, config, {"token": "s3cret-token"})


# A call and its answer


def test_a_call_makes_its_attempt_first_and_gives_status_headers_and_body(crm):
    ctx = context(
        "http",
        {
            "method": "POST",
            "url": f"{crm.url}/deals",
            "json": {"email": "{{ trigger.body.email }}", "n": "{{ 1 + 1 }}"},
        },
        trigger={"body": {"email": "ann@example.com"}},
    )
    done = run_in("http", ctx)
    assert done.output["status"] == 201 and done.output["body"] == {"id": 1, "email": "ann@example.com", "n": 2}
    assert done.output["headers"]["content-type"] == "application/json"
    [(operation, request)] = ctx.attempts
    assert operation == "call" and request["method"] == "POST" and request["json"]["email"] == "ann@example.com"
    assert done.response["status"] == 201


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_changes_something_carries_the_key_of_its_take(crm, method):
    for _ in range(2):
        run_step("http", {"method": method, "url": f"{crm.url}/people/7"})
    first, second = crm.ledger()
    assert first["key"] == second["key"] == "hf-48213-call"
    assert first["effect"] and not second["effect"], "the other system recognised the repeat"


def test_what_only_reads_carries_no_key(crm):
    run_step("http", {"url": f"{crm.url}/people"})
    assert "idempotency-key" not in crm.requests()[0]["headers"]


def test_the_key_can_have_another_header_or_none(crm):
    run_step("http", {"method": "POST", "url": f"{crm.url}/a", "idempotency_header": "X-Request-Id"})
    run_step("http", {"method": "POST", "url": f"{crm.url}/a", "idempotency_header": ""})
    run_step("http", {"method": "POST", "url": f"{crm.url}/a", "headers": {"Idempotency-Key": "mine"}})
    first, second, third = (request["headers"] for request in crm.requests())
    assert first["x-request-id"] == "hf-48213-call" and "idempotency-key" not in first
    assert "hf-48213-call" not in json.dumps(second)
    assert third["idempotency-key"] == "mine"


def test_query_and_headers_are_filled_in(crm):
    config = {
        "url": f"{crm.url}/find?a=1",
        "query": {"q": "a&b=c", "n": "{{ 5 }}", "yes": "{{ true }}", "left_out": "{{ null }}"},
        "headers": {"X-Number": "{{ 7 }}", "Accept": "text/csv"},
    }
    run_step("http", config)
    [request] = crm.requests()
    assert request["path"] == "/find?a=1&q=a%26b%3Dc&n=5&yes=true"
    assert request["headers"]["x-number"] == "7" and request["headers"]["accept"] == "text/csv"


def test_a_text_body_is_sent_as_it_is(crm):
    run_step(
        "http",
        {"method": "POST", "url": f"{crm.url}/raw", "body": "a=1&b=ü", "headers": {"Content-Type": "text/x-own"}},
    )
    [request] = crm.requests()
    assert request["body"] == "a=1&b=ü" and request["headers"]["content-type"] == "text/x-own"


def test_other_statuses_can_count_as_success(odd):
    assert run_step("http", {"url": f"{odd.url}/status?code=404", "success": "2xx, 404"}).output["status"] == 404
    assert failing({"url": f"{odd.url}/status?code=410", "success": "2xx, 404"}).outcome == ANSWERED


# Reading the answer


def body_of(odd, kind: str, body: str, **config):
    return run_step("http", {"url": f"{odd.url}/text?{urlencode({'type': kind, 'body': body})}", **config}).output[
        "body"
    ]


def test_json_is_read_where_the_answer_says_so_or_the_step_wants_it(odd):
    assert body_of(odd, "application/vnd.api+json; charset=utf-8", '{"a": [1]}') == {"a": [1]}
    assert body_of(odd, "text/html", '{"a": 1}') == '{"a": 1}'
    assert body_of(odd, "text/html", '{"a": 1}', response="json") == {"a": 1}
    assert body_of(odd, "application/json", '{"a": 1}', response="text") == '{"a": 1}'
    assert body_of(odd, "application/json", "") is None


@pytest.mark.parametrize(
    "body", ['{"a": NaN}', '{"a": "\\u0000"}', '{"a": "\\ud800"}', "[" * 200, '{"a": 1e999}', "{oops", "9" * 5000]
)
def test_json_that_nothing_downstream_can_hold_fails_by_name_and_for_good(odd, body):
    failed = failing({"url": f"{odd.url}/json?body={quote(body)}"})
    assert failed.field == "response" and failed.outcome == ANSWERED and not failed.retry
    assert "body" in failed.message and failed.response["status"] == 200


def test_text_in_another_charset_and_what_cannot_be_stored(odd):
    query = urlencode({"type": "text/plain; charset=iso-8859-1", "body": "Grüße", "charset": "iso-8859-1"})
    assert run_step("http", {"url": f"{odd.url}/text?{query}"}).output["body"] == "Grüße"
    assert body_of(odd, "text/plain", "a\x00b") == "a\ufffdb"
    assert body_of(odd, "text/plain; charset=no-such", "ok") == "ok"


def test_a_binary_answer_succeeds_and_is_not_kept(odd):
    ctx = context("http", {"url": f"{odd.url}/binary"})
    assert run_in("http", ctx).output["body"] is None
    assert "image/png" in ctx.lines[0][1]


# Failures and what they allow


@pytest.mark.parametrize(
    ("status", "outcome", "retry"),
    [(400, ANSWERED, False), (401, ANSWERED, False), (404, ANSWERED, False), (409, ANSWERED, False),
     (422, ANSWERED, False),
     (408, REFUSED, True), (425, REFUSED, True), (429, REFUSED, True),
     (500, UNKNOWN, True), (502, UNKNOWN, True), (503, UNKNOWN, True), (504, UNKNOWN, True)],
)  # fmt: skip
def test_a_status_says_whether_it_may_have_happened_and_whether_to_try_again(odd, status, outcome, retry):
    failed = failing({"method": "POST", "url": f"{odd.url}/status?code={status}"})
    assert (failed.outcome, failed.retry) == (outcome, retry)
    assert str(status) in failed.message and failed.response["body"] == "because"


def test_503_with_a_time_to_come_back_was_refused(crm):
    crm.control(refuse=503, refuse_headers={"Retry-After": "7"})
    failed = failing({"method": "POST", "url": f"{crm.url}/deals"})
    assert failed.outcome == REFUSED and failed.retry_after == 7 and crm.ledger() == []


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("Wed, 21 Oct 2026 07:30:00 GMT", 120),
        ("Wed, 21 Oct 2026 07:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
    ],
)
def test_retry_after_in_both_its_forms(odd, value, seconds):
    assert failing({"url": f"{odd.url}/retry-after?value={quote(value)}"}).retry_after == seconds


def test_a_date_to_come_back_at_is_measured_by_the_others_clock():
    assert (
        calls.retry_after({"retry-after": "Sat, 01 Jan 2000 00:00:30 GMT", "date": "Sat, 01 Jan 2000 00:00:00 GMT"})
        == 30
    )


@pytest.mark.parametrize("end", ["die", "reset", "hang"])
def test_an_effect_without_an_answer_leaves_it_unknown(crm, end):
    crm.control(after_commit=end)
    failed = failing({"method": "POST", "url": f"{crm.url}/deals", "json": {"n": 1}}, timeout=1.0)
    assert failed.outcome == UNKNOWN and failed.retry
    if end == "die":
        crm.wait_dead()
        crm.start()
    assert len(crm.effects()) == 1, "and it had happened"


def test_a_redirected_post_says_where_to(odd):
    failed = failing({"method": "POST", "url": f"{odd.url}/redirect?to=/plain"})
    assert failed.outcome == ANSWERED and not failed.retry and "/plain" in failed.message


def test_a_short_body_may_be_retried(odd):
    assert failing({"url": f"{odd.url}/short"}).retry


def test_a_failed_status_with_a_body_that_never_ends_is_judged_by_the_status(odd):
    failed = failing({"url": f"{odd.url}/error-drip"}, timeout=0.5)
    assert failed.outcome == ANSWERED and not failed.retry


# Connections


def test_a_credential_is_sent_to_its_host_and_named_in_the_attempt(crm):
    crm.control(require="Bearer s3cret-token")
    ctx = context(
        "http", {"url": f"{crm.url}/me", "connection": "crm"}, connections={"crm": bearer("crm", "127.0.0.1")}
    )
    assert run_in("http", ctx).output["status"] == 200
    assert ctx.attempts[0][1]["connection"] == "crm" and "s3cret" not in json.dumps(ctx.attempts)


def test_who_is_not_let_in_is_sent_to_the_connection_and_nowhere_without_one(crm):
    crm.control(require="Bearer another-token")
    given = {"url": f"{crm.url}/me", "connection": "crm"}
    assert failing(given, connections={"crm": bearer("crm", "127.0.0.1")}).field == "connection"
    assert failing({"url": f"{crm.url}/me"}).field is None


@pytest.mark.parametrize("hosts", [(), ("crm.example",), ("127.0.0.1:1",), ("*.0.0.1.example",), ("127.0.0.10",)])
def test_a_credential_is_sent_nowhere_else(crm, hosts):
    failed = failing({"url": f"{crm.url}/me", "connection": "crm"}, connections={"crm": bearer("crm", *hosts)})
    assert failed.field == "connection" and "127.0.0.1" in failed.message and crm.requests() == []


def test_a_credential_does_not_travel_unencrypted_beyond_the_operators_own_places(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = []
    failed = failing(
        {"url": "http://crm.example/", "connection": "crm"}, connections={"crm": bearer("crm", "crm.example")}
    )
    assert "https" in failed.message


@pytest.mark.parametrize(
    ("host", "entry", "bound"),
    [("crm.example", "crm.example", True), ("CRM.example", "crm.example", True),
     ("a.crm.example", "*.crm.example", True),
     ("crm.example", "*.crm.example", False), ("evilcrm.example", "*.crm.example", False),
     ("a.crm.example", "crm.example", False),
     ("crm.example:8443", "crm.example:8443", True), ("crm.example:9", "crm.example:8443", False),
     ("crm.example", "crm.example:443", True), ("crm.example.evil.com", "crm.example", False)],
)  # fmt: skip
def test_how_a_credential_is_bound(host, entry, bound):
    assert calls.bound_to(bearer("crm", entry), httpx2.URL(f"https://{host}/")) is bound


def test_every_kind_says_who_it_is(crm):
    basic = Connection("b", "basic", ("127.0.0.1",), {"username": "ann"}, {"password": "pä:ss"})
    header = Connection("h", "header", ("127.0.0.1",), {"header": "X-Key"}, {"value": "v4lue"})
    for connection in (basic, header):
        run_step("http", {"url": f"{crm.url}/me", "connection": "c"}, connections={"c": connection})
    first, second = (request["headers"] for request in crm.requests())
    assert first["authorization"] == "Basic YW5uOnDDpDpzcw==" and second["x-key"] == "v4lue"


def test_a_base_address_goes_before_a_path(crm):
    connection = bearer("crm", "127.0.0.1", base_url=f"{crm.url}/api/")
    run_step("http", {"url": "/v1/deals", "connection": "crm"}, connections={"crm": connection})
    assert crm.requests()[0]["path"] == "/api/v1/deals"
    failed = failing({"url": "/v1/deals", "connection": "crm"}, connections={"crm": bearer("crm", "127.0.0.1")})
    assert "base address" in failed.message


# What is refused at save, and what only shows when it runs


@pytest.mark.parametrize(
    ("url", "words"),
    [("file:///etc/passwd", "https://"), ("gopher://host/", "https://"), ("https://user:pw@host/", "user or password"),
     ("https://user:{{ trigger.pw }}@host/", "user or password"), ("crm.example/deals", "https://"),
     ("https://", "no host"),
     ("/deals", "connection"), ("https://crm.example/{{ 1 + }}", "value is missing")],
)  # fmt: skip
def test_an_address_is_refused_at_save(url, words):
    found = problem(url=url)
    assert words in found and found.startswith("call: config")


@pytest.mark.parametrize(
    "url",
    [
        "https://crm.example/people/{{ trigger.body.id }}",
        "{{ trigger.body.url }}",
        "https://{{ trigger.body.host }}/x",
        "http://h/",
    ],
)
def test_an_address_that_may_turn_out_well_is_accepted(url):
    assert problem(url=url) == ""


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://user:pw@host/", "https://ho st/", "x"])
def test_an_address_that_turns_out_badly_fails_before_any_attempt(url):
    ctx = context("http", {"url": "{{ trigger.url }}"}, trigger={"url": url})
    with pytest.raises(StepError) as caught:
        run_in("http", ctx)
    assert caught.value.field == "url" and ctx.attempts == []


def test_a_line_break_in_a_header_names_the_header(crm):
    ctx = context(
        "http", {"url": crm.url, "headers": {"X-Note": "{{ trigger.note }}"}}, trigger={"note": "a\r\nX-Evil: 1"}
    )
    with pytest.raises(StepError, match="X-Note") as caught:
        run_in("http", ctx)
    assert caught.value.field == "headers" and ctx.attempts == [] and crm.requests() == []


def test_config_problems_name_field_and_remedy():
    assert "config.headers" in problem(url="https://a/", headers={"Host": "b"})
    assert "config.success" in problem(url="https://a/", success="ok")
    assert "either" in problem(url="https://a/", json={}, body="x")
    assert "config.idempotency_header" in problem(url="https://a/", idempotency_header="no good")


def test_only_what_may_be_repeated_is_repeated_by_default():
    http = step_types()["http"]
    assert {http.interrupted({"method": method}) for method in ("GET", "HEAD", "PUT", "DELETE")} == {"repeat"}
    assert {http.interrupted({"method": method}) for method in ("POST", "PATCH")} == {"ask"}


def test_loopback_is_not_called_unless_named(crm, settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = []
    failed = failing({"url": crm.url})
    assert failed.outcome == AttemptOutcome.NOT_SENT and not failed.retry and crm.requests() == []
