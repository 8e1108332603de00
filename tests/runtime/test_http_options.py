"""API calls beyond one request and one JSON body: forms, files, tokens, conditions, rates. Against real servers."""

from __future__ import annotations

import json
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qs, parse_qsl

import pytest

from runtime.credentials import seal
from runtime.definition import check
from runtime.models import Credential, Team
from runtime.states import AttemptOutcome
from runtime.steps import oauth, step_types
from runtime.steps.base import Connection
from tests.runtime.calling import allowed, failing, server  # noqa: F401 - two are fixtures
from tests.runtime.support import context, run_in, run_step


def test_a_form_is_sent_as_forms_are(server):
    config = {"method": "POST", "url": server.url + "/", "form": {"name": "Ann & Bob", "tags": "{{ trigger.tags }}", "n": "{{ 2 + 3 }}"}}
    ctx = context("http", config, trigger={"tags": ["a", "b"]})
    run_in("http", ctx)
    _, _, headers, body = server.seen[0]
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert parse_qsl(body.decode()) == [("name", "Ann & Bob"), ("tags", "a"), ("tags", "b"), ("n", "5")]
    assert ctx.attempts[0][1]["form"]["name"] == "Ann & Bob"


def test_a_multipart_form_carries_files_from_step_data(server):
    file = {"filename": 'a"b.txt', "content": "aGVsbG8=", "base64": True, "type": "text/plain"}
    config = {"method": "POST", "url": server.url + "/", "form": {"note": "hi", "file": "{{ trigger.file }}"}, "form_as": "multipart"}
    ctx = context("http", config, trigger={"file": file})
    run_in("http", ctx)
    _, _, headers, body = server.seen[0]
    parsed = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
    note, sent = parsed.iter_parts()
    assert note.get_content() == "hi" and note["Content-Disposition"].params["name"] == "note"
    assert sent.get_payload(decode=True) == b"hello" and sent.get_content_type() == "text/plain"
    assert "aGVsbG8" not in json.dumps(ctx.attempts) and ctx.attempts[0][1]["form"]["file"]["size"] == 8
    assert failing(config, trigger={"file": {"content": "§", "base64": True}}).field == "form"


def test_a_file_of_step_data_may_be_as_large_as_any_output(server, settings):
    config = {"method": "POST", "url": server.url + "/", "form": {"file": "{{ trigger.file }}"}, "form_as": "multipart"}
    given = {"file": {"filename": "a.txt", "content": "x" * (9 << 20)}}
    run_step("http", config, trigger=given)
    assert len(server.seen[0][3]) > 9 << 20
    settings.HOLDFAST_LARGEST_OUTPUT_MIB = 8
    assert "larger than 8 MiB" in failing(config, trigger=given).message and len(server.seen) == 1


def oauth2(server, secret="s3cret/x", **config) -> dict[str, Connection]:
    config = {"token_url": server.url + "/token", "client_id": "holdfast"} | config
    return {"crm": Connection("crm", "oauth2", ("127.0.0.1",), config, {"client_secret": secret})}


def test_a_token_is_fetched_once_and_anew_when_it_is_not_taken_any_more(server):
    config = {"url": server.url + "/secret", "connection": "crm"}
    for _ in range(3):
        ctx = context("http", config, connections=oauth2(server))
        assert run_in("http", ctx).output["status"] == 200
    assert server.tokens == 1 and ctx.masker.mask("token-1") != "token-1"
    server.refuse.add("Bearer token-1")
    assert run_in("http", context("http", config, connections=oauth2(server))).output["body"] == {"ok": True}
    assert server.tokens == 2
    asked = [body for _, path, _, body in server.seen if path == "/token"]
    assert asked[0] == b"grant_type=client_credentials"


def test_a_token_is_fetched_anew_before_it_ends(server):
    server.lives = int(oauth.EARLY)
    for _ in range(2):
        run_step("http", {"url": server.url + "/secret", "connection": "crm"}, connections=oauth2(server))
    assert server.tokens == 2 and [path for _, path, _, _ in server.seen] == ["/token", "/secret"] * 2


def test_a_server_that_wants_the_secret_in_the_form_is_asked_so_from_then_on(server):
    server.in_form = True
    for _ in range(2):
        oauth._tokens.clear()
        run_step("http", {"url": server.url + "/secret", "connection": "crm"}, connections=oauth2(server))
    asked = [(headers.get("Authorization"), parse_qs(body.decode()).get("client_secret")) for _, path, headers, body in server.seen if path == "/token"]
    assert [bool(header) for header, _ in asked] == [True, False, False] and asked[1][1] == asked[2][1] == ["s3cret/x"]


def test_without_a_token_nothing_is_sent(server):
    config = {"url": server.url + "/secret", "connection": "crm"}
    refused = failing(config, connections=oauth2(server, secret="wrong"))
    assert refused.outcome == AttemptOutcome.NOT_SENT and refused.field == "connection" and not refused.retry
    away = failing(config, connections=oauth2(server, token_url="http://127.0.0.1:9/token"))
    assert away.outcome == AttemptOutcome.NOT_SENT and away.retry
    assert all(path == "/token" for _, path, _, _ in server.seen)


def test_options_can_be_asked_for_and_is_repeated_as_get_is(server):
    ctx = context("http", {"method": "OPTIONS", "url": server.url + "/"})
    assert run_in("http", ctx).output["status"] == 200
    assert server.seen[0][0] == "OPTIONS" and "Idempotency-Key" not in server.seen[0][2]
    assert step_types()["http"].interrupted({"method": "OPTIONS"}) == "repeat"


def test_an_answer_succeeds_only_if_it_says_so(server):
    config = {"url": server.url + "/", "success_if": "response.body.ok"}
    assert run_step("http", config).output["body"] == {"ok": True}
    failed = failing(config | {"query": {"ok": "no"}})
    assert failed.field == "success_if" and failed.outcome == AttemptOutcome.ANSWERED and not failed.retry
    assert failed.response["body"] == {"ok": False}


def test_an_answer_that_is_too_large_does_not_undo_what_the_call_did(server):
    ctx = context("http", {"method": "POST", "url": server.url + "/big"})
    output = run_in("http", ctx).output
    assert (output["status"], output["cut"], len(output["body"])) == (201, True, 256 * 1024)
    assert "larger than 1 MiB" in ctx.lines[0][1]
    assert "larger than 1 MiB" in (said := failing({"url": server.url + "/big"}).message)  # a GET can be asked again
    assert "read the answer as a file" in said and "read the answer as a file" in ctx.lines[0][1]


@pytest.mark.parametrize(
    "config",
    [{"method": "POST", "form": {"a": "b"}, "body": "x"}, {"method": "POST", "pages": "page"}, {"form_as": "xml"}, {"most_pages": 0}],
)
def test_what_does_not_fit_together_is_said_at_saving(config):
    step = {"id": "call", "type": "http", "config": {"url": "https://a.example/"} | config}
    assert check({"format": 1, "name": "x", "steps": [step]})


def test_calls_of_one_connection_keep_to_its_rate_over_all_workers(engine, server):
    team, _ = Team.objects.get_or_create(name="Engine")
    config = {"base_url": server.url, "per_minute": "120"}
    seal(Credential(team=team, name="crm", kind="bearer", hosts=["127.0.0.1"], config=config), {"token": "t"})
    step = {"id": "call", "type": "http", "config": {"url": "/", "connection": "crm"}}
    version = engine.publish([{"id": "each", "type": "loop", "config": {"items": "trigger.body", "concurrency": 20}, "steps": [step]}])
    engine.worker(), engine.worker()
    # A minute's worth is used up: from here on one comes every half second.
    engine.sql("insert into rate_limit values (%s, clock_timestamp() + interval '1 minute')", f"team:{team.pk}:connection:crm")
    began = engine.sql("select clock_timestamp()")[0][0]
    runs = [engine.start(version, list(range(3))) for _ in range(2)]
    for run in runs:
        engine.ends(run, seconds=60)
    took = (engine.sql("select clock_timestamp()")[0][0] - began).total_seconds()
    assert len(server.seen) == 6 and took >= 2.5
    assert [attempt.n for run in runs for attempt in engine.attempts(run)] == [1] * 6


@pytest.mark.parametrize("charset", ["undefined", "idna", "no-such-charset"])
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_in_an_odd_charset_is_an_answer(server, status, charset):
    server.answer = lambda *_: (status, b"thanks \x80", {"Content-Type": f"text/plain; charset={charset}"})
    post = {"method": "POST", "url": server.url + "/x", "json": {"a": 1}}
    if status == 200:
        assert run_step("http", post).output["body"].startswith("thanks")
    else:
        assert failing(post).outcome == AttemptOutcome.ANSWERED


@pytest.mark.parametrize("name", ["idna''%80.pdf", "undefined''%80.pdf"])
def test_a_file_with_an_odd_name_is_a_file(server, name):
    headers = {"Content-Type": "application/pdf", "Content-Disposition": f"attachment; filename*={name}"}
    server.answer = lambda *_: (200, b"bytes", headers)
    assert run_step("http", {"url": server.url + "/bill", "response": "file"}).output["body"]["size"] == 5
