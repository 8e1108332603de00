"""API calls that follow pages: each is an attempt, durable before the next, and whoever dies in between costs none that was there."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from builder import uncertain
from runtime import acts
from runtime.credentials import seal
from runtime.models import Attempt, Credential, Run, Team
from tests.runtime.calling import allowed, failing, server  # noqa: F401 - two are fixtures
from tests.runtime.engine import eventually
from tests.runtime.support import context, run_in, run_step


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


@pytest.mark.parametrize("page_next", [None, "response.body.?next_cursor"])
def test_a_last_page_may_leave_its_cursor_out(server, page_next):
    config = {"url": server.url + "/list?sparing=1", "pages": "cursor", "page_items": "response.body.items", "page_next": page_next}
    output = run_step("http", config).output
    assert (output["items"], output["pages"], output["more"]) == (list(range(5)), 3, False)


def test_a_next_page_elsewhere_is_not_followed(server):
    config = {"url": server.url + "/list", "pages": "next_link", "page_next": "response.body.foreign", "page_items": "response.body.items"}
    assert "It is not followed" in failing(config).message
    assert failing({"url": server.url + "/list", "pages": "page"}).field == "page_items"


def test_calls_keep_to_a_rate_of_their_host_too_and_each_page_counts(server):
    config = {"url": server.url + "/linked", "pages": "next_link", "page_items": "response.body.items", "host_per_minute": 60}
    ctx = context("http", config)
    assert run_in("http", ctx).output["pages"] == 3
    assert ctx.admitted == [("host:127.0.0.1", 60)] * 3


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
