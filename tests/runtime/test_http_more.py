"""API calls beyond one request and one JSON body: forms, files, tokens, pages, conditions, rates. Against real servers."""

from __future__ import annotations

import json
import threading
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from builder import uncertain
from runtime import acts
from runtime.credentials import seal
from runtime.definition import check
from runtime.models import Attempt, Credential, Run, Team
from runtime.states import AttemptOutcome
from runtime.steps import oauth, step_types
from runtime.steps.base import Connection, StepError
from tests.runtime.engine import eventually
from tests.runtime.support import context, run_in, run_step


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    oauth._tokens.clear()
    oauth._in_form.clear()


class Server:
    """Answers by path; `seen` holds (method, path with query, headers, body)."""

    def __init__(self):
        self.seen, self.tokens, self.refuse, self.lives, self.in_form = [], 0, set(), 3600, False
        self.busy: dict[str, int] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.seen.append((self.command, self.path, dict(self.headers), body))
                status, given, headers = outer.answer(self.command, urlsplit(self.path), self.headers, body)
                data = given if isinstance(given, bytes) else json.dumps(given).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_OPTIONS = answer

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, method, parts, headers, body):
        query = dict(parse_qsl(parts.query))
        if self.busy.get(parts.query, 0):
            self.busy[parts.query] -= 1
            return 503, {}, {"Retry-After": "0"}
        if parts.path == "/token":
            self.tokens += 1
            wrong = headers.get("Authorization") != "Basic aG9sZGZhc3Q6czNjcmV0JTJGeA=="
            if self.in_form:
                wrong = parse_qs(body.decode()).get("client_secret") != ["s3cret/x"]
            return (401 if wrong else 200), {"access_token": f"token-{self.tokens}", "expires_in": self.lives}, {}
        if parts.path == "/secret":
            good = headers.get("Authorization", "") not in self.refuse and headers.get("Authorization", "").startswith("Bearer token-")
            return (200 if good else 401), {"ok": good}, {}
        if parts.path == "/big":
            return 201, b"x" * (2 << 20), {"Content-Type": "text/plain"}
        if parts.path in ("/list", "/linked"):
            first = 0 if "from_zero" in query else 1
            start = int(query.get("offset", 2 * (int(query.get("page", first)) - first) or query.get("cursor", 0)))
            items = list(range(5))[start : start + 2]
            onward = start + 2 if start + 2 < 5 else None
            link = {"Link": f'</linked?offset={onward}>; rel="next", </>; rel="first"'} if onward else {}
            cursor = {} if onward is None and "sparing" in query else {"next_cursor": onward}
            return 200, {"items": items, **cursor, "foreign": "https://elsewhere.example/"}, link
        return 200, {"ok": query.get("ok") != "no"}, {}


@pytest.fixture
def server():
    made = Server()
    yield made
    made.server.shutdown()
    made.server.server_close()


def failing(config, **more) -> StepError:
    with pytest.raises(StepError) as caught:
        run_step("http", config, **more)
    return caught.value


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


@pytest.mark.parametrize(
    ("config", "pages", "more"),
    [({"pages": "offset"}, 4, False), ({"pages": "page"}, 4, False), ({"pages": "cursor"}, 3, False),
     ({"pages": "next_link", "page_next": "'/list?offset=' + string(response.body.next_cursor)", "most_pages": 2}, 2, True),
     ({"pages": "next_link"}, 3, False), ({"pages": "offset", "most_pages": 1}, 1, True)],
)  # fmt: skip
def test_pages_are_followed_and_each_is_an_attempt(server, config, pages, more):
    path = "/linked" if config == {"pages": "next_link"} else "/list"
    ctx = context("http", {"url": server.url + path, "page_items": "response.body.items"} | config)
    output = run_in("http", ctx).output
    assert output["items"] == list(range(5))[: 2 * pages] and (output["pages"], output["more"]) == (pages, more)
    assert len(ctx.attempts) == len(server.seen) == len(ctx.kept) + 1 == pages


def test_pages_that_are_counted_from_0_go_on_from_there(server):
    config = {"url": server.url + "/list?from_zero=1", "query": {"page": "0"}, "pages": "page", "page_items": "response.body.items"}
    assert run_step("http", config).output["items"] == list(range(5))
    assert [parse_qs(urlsplit(path).query)["page"] for _, path, _, _ in server.seen] == [["0"], ["1"], ["2"], ["3"]]


def test_options_can_be_asked_for_and_is_repeated_as_get_is(server):
    ctx = context("http", {"method": "OPTIONS", "url": server.url + "/"})
    assert run_in("http", ctx).output["status"] == 200
    assert server.seen[0][0] == "OPTIONS" and "Idempotency-Key" not in server.seen[0][2]
    assert step_types()["http"].interrupted({"method": "OPTIONS"}) == "repeat"


@pytest.mark.parametrize("page_next", [None, "response.body.?next_cursor"])
def test_a_last_page_may_leave_its_cursor_out(server, page_next):
    config = {"url": server.url + "/list?sparing=1", "pages": "cursor", "page_items": "response.body.items", "page_next": page_next}
    output = run_step("http", config).output
    assert (output["items"], output["pages"], output["more"]) == (list(range(5)), 3, False)


def test_a_next_page_elsewhere_is_not_followed(server):
    config = {"url": server.url + "/list", "pages": "next_link", "page_next": "response.body.foreign", "page_items": "response.body.items"}
    assert "It is not followed" in failing(config).message
    assert failing({"url": server.url + "/list", "pages": "page"}).field == "page_items"


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
    from runtime.credentials import seal

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


def test_pages_of_a_real_run_are_durable_one_by_one(engine, server):
    config = {"url": server.url + "/list", "pages": "cursor", "page_items": "response.body.items"}
    run = engine.start(engine.publish([{"id": "call", "type": "http", "config": config}]))
    engine.worker()
    engine.ends(run)
    kept = engine.attempts(run)
    assert [(one.n, one.outcome, one.response["body"]["items"]) for one in kept] == [
        (1, "answered", [0, 1]), (2, "answered", [2, 3]), (3, "answered", [4]),
    ]  # fmt: skip
    assert engine.output(run, "call")["items"] == [0, 1, 2, 3, 4]
    assert all("first_byte" in one.response["timings"] for one in kept)


def paged(server, **more):
    config = {"url": server.url + "/list", "pages": "cursor", "page_items": "response.body.items"}
    return {"id": "call", "type": "http", "config": config} | more


@pytest.mark.parametrize("more", [{}, {"on_interrupted": "ask"}], ids=["repeat", "ask"])
@pytest.mark.parametrize(("failpoint", "again"), [("attempt.before:3", 0), ("attempt.after:3", 0), ("call.during:3", 1)])
def test_a_worker_that_dies_between_pages_costs_none_that_was_there(engine, server, failpoint, again, more):
    run = engine.start(engine.publish([paged(server, **more)]))
    engine.dies(engine.worker(failpoint=failpoint))
    engine.worker()
    if more and failpoint != "attempt.before:3":  # the call for the last page may have happened, so a person is asked
        assert engine.wait(run, "call", "person").data["attempt"] == 3
    else:
        engine.ends(run)
        assert engine.output(run, "call")["items"] == [0, 1, 2, 3, 4] and engine.output(run, "call")["pages"] == 3
    paths = [path for _, path, *_ in server.seen]
    assert paths[:2] == ["/list", "/list?cursor=2"] and paths[2:] in (["/list?cursor=4"] * n for n in (again, again + 1))


def test_run_it_again_goes_on_at_the_page_that_is_uncertain(engine, server):
    """However often it is said; and who says it reads which pages are kept. A retry from the step begins at the first."""
    run = engine.start(engine.publish([paged(server, on_interrupted="ask"), {"id": "wait", "type": "callback"}]))
    for page in (2, 3):
        engine.dies(engine.worker(failpoint="attempt.after:2"))
        engine.worker()
        wait = engine.wait(run, "call", "person")
        attempt = Attempt.objects.get(run_id=run, path="call", take=wait.take, n=wait.data["attempt"])
        assert attempt.operation == f"page.{page}"
        told = uncertain.sent_again(Run.objects.get(pk=run), attempt)
        assert f"cursor={2 * page - 2} goes out once more" in told
        assert ("The page before it is kept" if page == 2 else "The 2 pages before it are kept") in told
        if page == 2:
            engine.kill_all()
        assert acts.answer(wait.pk, "again")
    engine.wait(run, "wait")
    assert engine.output(run, "call")["items"] == [0, 1, 2, 3, 4] and engine.output(run, "call")["pages"] == 3
    assert [path for _, path, *_ in server.seen] == ["/list", "/list?cursor=2", "/list?cursor=4"]
    engine.parked(run)
    server.seen.clear()
    acts.retry(run, "call")
    eventually(lambda: [path for _, path, *_ in server.seen] == ["/list", "/list?cursor=2", "/list?cursor=4"])


def test_each_page_has_its_own_retries_and_is_asked_for_alone(engine, server):
    server.busy = {"": 1, "cursor=2": 1, "cursor=4": 1}
    run = engine.start(engine.publish([paged(server, retry={"max_attempts": 2, "first": "1s"})]))
    engine.worker()
    engine.ends(run)
    assert [path for _, path, *_ in server.seen] == ["/list"] * 2 + ["/list?cursor=2"] * 2 + ["/list?cursor=4"] * 2
    kept = [(one.operation, one.outcome) for one in engine.attempts(run)]
    assert kept == [(page, how) for page in ("call", "page.2", "page.3") for how in ("refused", "answered")]
    assert engine.output(run, "call")["items"] == [0, 1, 2, 3, 4]


def test_a_page_that_a_secret_leads_to_is_found_anew(engine, server):
    from runtime.credentials import seal

    team, _ = Team.objects.get_or_create(name="Engine")
    seal(Credential(team=team, name="crm", kind="bearer", hosts=["127.0.0.1"], config={}), {"token": "cursor=4"})
    step = paged(server)
    step["config"]["connection"] = "crm"
    run = engine.start(engine.publish([step]))
    engine.dies(engine.worker(failpoint="attempt.after:3"))
    engine.worker()
    engine.ends(run)
    assert [path for _, path, *_ in server.seen] == ["/list", "/list?cursor=2", "/list?cursor=2", "/list?cursor=4"]
    assert engine.output(run, "call")["items"] == [0, 1, 2, 3, 4]


def test_pages_that_cannot_be_kept_are_no_failures(engine, server):
    """The address of each next page holds the secret: after a death, or a pause, they are asked for anew."""
    refused = []

    def answer(method, parts, headers, body):
        page = int(parse_qs(parts.query).get("page", ["1"])[0])
        if page == 5 and len(refused) < 2:
            refused.append(page)
            return 503, {}, {}
        following = f"{server.url}/list?page={page + 1}&key=s3cret-s3cret" if page < 5 else None
        return 200, {"items": [page], "next": following}, {}

    server.answer = answer
    team, _ = Team.objects.get_or_create(name="Engine")
    seal(Credential(team=team, name="Pages", kind="bearer", hosts=["127.0.0.1"], config={}), {"token": "s3cret-s3cret"})
    config = {"url": server.url + "/list", "connection": "Pages", "pages": "next_link", "page_next": "response.body.next",
              "page_items": "response.body.items"}  # fmt: skip
    retry = {"max_attempts": 4, "first": "1s"}
    run = engine.start(engine.publish([{"id": "call", "type": "http", "config": config, "retry": retry}]))
    engine.worker()
    engine.ends(run)
    assert len(refused) == 2


@pytest.mark.parametrize("charset", ["undefined", "idna", "no-such-charset"])
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_in_an_odd_charset_is_an_answer(server, status, charset):
    server.answer = lambda *_: (status, b"thanks \x80", {"Content-Type": f"text/plain; charset={charset}"})
    post = {"method": "POST", "url": server.url + "/x", "json": {"a": 1}}
    if status == 200:
        assert run_step("http", post).output["body"].startswith("thanks")
    else:
        with pytest.raises(StepError) as wrong:
            run_step("http", post)
        assert wrong.value.outcome == AttemptOutcome.ANSWERED


@pytest.mark.parametrize("name", ["idna''%80.pdf", "undefined''%80.pdf"])
def test_a_file_with_an_odd_name_is_a_file(server, name):
    headers = {"Content-Type": "application/pdf", "Content-Disposition": f"attachment; filename*={name}"}
    server.answer = lambda *_: (200, b"bytes", headers)
    assert run_step("http", {"url": server.url + "/bill", "response": "file"}).output["body"]["size"] == 5


def test_calls_keep_to_a_rate_of_their_host_too_and_each_page_counts(server):
    config = {"url": server.url + "/linked", "pages": "next_link", "page_items": "response.body.items", "host_per_minute": 60}
    ctx = context("http", config)
    assert run_in("http", ctx).output["pages"] == 3
    assert ctx.admitted == [("host:127.0.0.1", 60)] * 3
