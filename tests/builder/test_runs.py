"""Run list and run page: what they show, how little they read, and who may act."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from builder import runlist, uncertain
from builder.runfilter import Filter
from builder.runload import Wanted, fingerprint, load
from builder.testwatch import watched
from runtime.models import AuditEntry, Dispatch, Run, StepResult
from runtime.paths import key_of
from tests.builder import factories

pytestmark = pytest.mark.django_db

APPROVE = "hot/yes/meanwhile/outreach/approve_vip"
DEAL = "hot/yes/meanwhile/outreach/deal"


@pytest.fixture
def version():
    return factories.version()


def page(client, run: Run, **query) -> str:
    answer = client.get(reverse("run", args=[run.pk]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def titles(answer) -> list[str]:
    return [row["run"].title for row in answer.context["rows"]]


# The list


@pytest.mark.fault(39)
def test_the_list_is_newest_first_and_paged_by_key(client, operator, version, monkeypatch):
    monkeypatch.setattr(runlist, "PER_PAGE", 3)
    for number in range(8):
        factories.run(version, state="succeeded", title=f"T{number}")
    first = client.get("/runs/")
    assert titles(first) == ["T7", "T6", "T5"] and not first.context["newer_url"]
    second = client.get(first.context["older_url"])
    assert titles(second) == ["T4", "T3", "T2"]
    last = client.get(second.context["older_url"])
    assert titles(last) == ["T1", "T0"] and not last.context["older_url"]
    assert titles(client.get(last.context["newer_url"])) == ["T4", "T3", "T2"]


def test_states_are_told_apart_by_what_the_run_does_now(client, operator, version):
    factories.run(version, dispatch="claimed", title="R")
    factories.run(version, dispatch="ready", title="Q")
    factories.run(version, dispatch="waiting", title="W")
    for state in ("attention", "failed", "succeeded", "cancelled"):
        factories.run(version, state=state, title=state)
    assert titles(client.get("/runs/?state=running")) == ["Q", "R"]
    assert titles(client.get("/runs/?state=waiting")) == ["W"]
    for state in ("attention", "failed", "succeeded", "cancelled"):
        assert titles(client.get(f"/runs/?state={state}")) == [state]
    assert "Queued" in client.get("/runs/?state=running").content.decode()


@pytest.mark.fault(39)
def test_counts_stop_counting(client, operator, version, monkeypatch):
    monkeypatch.setattr(runlist, "COUNT_TO", 2)
    for _ in range(4):
        factories.run(version, state="failed")
    with CaptureQueriesContext(connection) as queries:
        answer = client.get("/runs/")
    assert {row["state"]: row["count"] for row in answer.context["states"]}["failed"] == "2+"
    counting = [query["sql"] for query in queries if "count(" in query["sql"].lower() and '"run"' in query["sql"]]
    assert counting and all("LIMIT" in sql for sql in counting)


def test_a_run_is_found_by_number_title_and_key(client, operator, version):
    one = factories.run(version, state="succeeded", title="Halden Robotics", idempotency_key="evt_8841")
    factories.run(version, state="succeeded", title="Other")
    for text in (str(one.pk), f"{one.pk:,}", f"Run {one.pk:,}", "halden", "evt_8841"):
        assert titles(client.get("/runs/", {"q": text})) == ["Halden Robotics"]
    assert titles(client.get("/runs/", {"q": "nobody"})) == []
    assert titles(client.get("/runs/", {"q": "9" * 400})) == []


def test_test_runs_are_shown_only_on_request(client, operator, version):
    factories.run(version, state="succeeded", title="real")
    factories.run(version, state="succeeded", title="trial", test=True)
    assert titles(client.get("/runs/")) == ["real"]
    assert titles(client.get("/runs/?tests=1")) == ["trial", "real"]


def test_the_list_says_where_each_run_stands(client, operator, version):
    waiting = factories.run(version)
    factories.wait(waiting, APPROVE, "approval", 5, due=10**9)
    failed = factories.run(version, state="failed", error={"path": DEAL, "step": "deal", "message": "503 Service Unavailable"})
    for n in range(1, 6):
        factories.attempt(failed, DEAL, n, n * 10, n * 10 + 1, "refused", error="503")
    looping = factories.run(version, dispatch="claimed")
    factories.frame(looping, "each", total=32, cursor=14, open=[13], succeeded=13)
    told = {run: (row.step, row.words, row.tries) for run, row in runlist.standings([waiting, failed, looping]).items()}
    assert told[waiting.pk][:2] == ("Approve VIP outreach", "Waits for an answer, expires")
    assert told[failed.pk] == ("Create deal in CRM", "503 Service Unavailable", 5)
    assert told[looping.pk][:2] == ("For each attendee", "Item 14 of 32")


def test_other_teams_runs_do_not_exist(client, operator, version):
    theirs = factories.run(factories.version(of=factories.team("Finance")), state="failed", title="theirs")
    assert titles(client.get("/runs/?state=failed")) == []
    for name in ("run", "run_live"):
        assert client.get(reverse(name, args=[theirs.pk])).status_code == 404
    for name in ("run_cancel", "run_requeue", "run_rerun"):
        assert client.post(reverse(name, args=[theirs.pk])).status_code == 404
    client.post("/runs/acts/", {"act": "requeue", "run": [theirs.pk]})
    theirs.refresh_from_db()
    assert theirs.state == "failed"


def test_a_list_that_looks_as_before_is_not_sent_again(client, operator, version):
    run = factories.run(version)
    live = {"headers": {"HX-Request": "true"}}
    etag = client.get("/runs/", **live)["ETag"]
    same = {"headers": {"HX-Request": "true", "If-None-Match": etag}}
    assert client.get("/runs/", **same).status_code == 204
    Run.objects.filter(pk=run.pk).update(title="New title")
    assert client.get("/runs/", **same).status_code == 200


def test_many_runs_are_requeued_and_the_rest_is_said(client, operator, version):
    failed = [factories.run(version, state="failed") for _ in range(3)]
    done = factories.run(version, state="succeeded")
    answer = client.post("/runs/acts/", {"act": "requeue", "run": [run.pk for run in (*failed, done)]}, follow=True)
    assert Run.objects.filter(state="open").count() == 3
    assert [str(message) for message in answer.context["messages"]] == ["Requeued 3 of 4; the others were not in a state for it."]


def test_all_that_a_filter_finds_is_taken_on_the_server(client, operator, version, monkeypatch):
    failed = [factories.run(version, state="failed") for _ in range(4)]
    factories.run(factories.version(number=1), state="failed")
    form = {"act": "requeue", "all": "1", "state": "failed", "flow": version.workflow_id}
    client.post("/runs/acts/", form)
    assert set(Run.objects.filter(state="open").values_list("pk", flat=True)) == {run.pk for run in failed}


def test_the_last_day_is_told_by_the_hour(client, operator, version, monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(hours=2, minutes=30))
    for state in ("succeeded", "succeeded", "succeeded", "failed"):
        factories.run(version, state=state, ended=10, cost="0.5")
    factories.run(version, created_at=timezone.now() - timedelta(minutes=5))
    factories.run(version, state="failed", created_at=timezone.now() - timedelta(hours=30))
    factories.run(factories.version(of=factories.team("Finance")), state="failed")
    told = runlist.last_day(operator)
    assert (told["runs"], told["failed"], told["rate"], told["cost"]) == (5, 1, "75.0%", 2)
    assert told["median"] == timedelta(seconds=10)
    assert [bool(bar["up"]) for bar in told["bars"]][-4:] == [False, True, False, True]
    assert [bool(bar["down"]) for bar in told["bars"]][-4:] == [False, True, False, False]
    assert "5 runs, 1 failed" in client.get("/runs/").content.decode()


def test_viewers_look_and_do_not_act(client, version):
    client.force_login(factories.user("viewer"))
    run = factories.run(version, state="failed")
    assert "Requeue" not in page(client, run)
    assert client.post(reverse("run_requeue", args=[run.pk])).status_code == 403
    assert client.post("/runs/acts/", {"act": "requeue", "run": [run.pk]}).status_code == 403
    run.refresh_from_db()
    assert run.state == "failed"


# The page


def test_the_page_shows_what_was_asked_of_whom(client, operator, version):
    run = factories.run(version)
    wait = factories.wait(run, APPROVE, "approval", 5, due=10**9)
    factories.approval(wait)
    shown = page(client, run)
    assert "Waiting for 1 of 2 people" in shown and "marcus@example.com" in shown
    assert reverse("approval", args=[wait.pk]) in shown


def test_a_call_of_a_cancelled_run_whose_worker_died_is_not_under_way_for_ever(client, operator, version):
    run = factories.run(version, state="cancelled")
    factories.attempt(run, "qualify", 1, 0, None)
    client.force_login(operator)
    shown = client.get(f"/runs/{run.pk}/?step=qualify&tab=attempts").content.decode()
    assert "its end is not known" in shown and "under way" not in shown


def test_the_page_shows_a_failure_with_its_attempts_and_what_to_do(client, operator, version):
    error = {"step": "deal", "name": "Create deal in CRM", "path": DEAL, "field": "", "message": "503 Service Unavailable"}
    run = factories.run(version, state="failed", error=error)
    for n in (1, 2):
        factories.attempt(run, DEAL, n, n, n + 1, "refused", error="503", response={"status": 503, "body": {"error": "upstream"}})
    factories.result(run, DEAL, 1, 3, "failed", error=error)
    shown = page(client, run)
    assert "503 Service Unavailable" in shown and "It gave up after 2 attempts" in shown and "upstream" in shown


def test_every_step_type_and_state_can_be_chosen(client, operator, version):
    run = factories.run(version, dispatch="claimed")
    factories.result(run, "hot", 4.81, 4.82, output={"branch": "yes"})
    for path in ("trigger", "qualify", "hot", "hot/yes/meanwhile", APPROVE, DEAL, "hot/no/later", "each", "each[]/add", "nonsense"):
        assert client.get(reverse("run", args=[run.pk]), {"step": path}).status_code == 200


@pytest.mark.parametrize("query", ["step=%00", "open=each[99999999999]", "open=[3]", "from=each:-1", "from=each:99999999", "before=x", "open=each[7]"])
def test_addresses_that_make_no_sense_show_the_page_anyway(client, operator, version, query):
    run = factories.run(version)
    factories.frame(run, "each", total=3, cursor=1, open=[0])
    assert client.get(f"{reverse('run', args=[run.pk])}?{query}").status_code == 200


def test_values_are_shown_as_text_whatever_they_hold(client, operator, version):
    run = factories.run(version, title="<script>alert(1)</script>", input={"body": {"<img src=x>": "</script><b>"}})
    factories.log(run, "<i>log</i>", "qualify")
    shown = page(client, run, step="trigger") + page(client, run, step="qualify")
    for bad in ("<script>alert(1)", "<img src=x>", "</script><b>", "<i>log"):
        assert bad not in shown


def test_a_cost_that_nobody_knows_is_called_so(client, operator, version):
    run, partly, free = factories.run(version), factories.run(version, cost="0.0041"), factories.run(version)
    factories.attempt(run, "qualify", 1, 1, 2, tokens_in=900, tokens_out=40)
    factories.attempt(partly, "qualify", 1, 1, 2, tokens_in=900, tokens_out=40)
    factories.attempt(partly, "qualify", 2, 3, 4, tokens_in=900, tokens_out=40, cost="0.0041")
    factories.attempt(free, DEAL, 1, 1, 2)
    for one, words in ((run, "unknown"), (partly, "over $0.0041")):
        shown = page(client, one, step="qualify")
        assert f"<dt>Cost</dt><dd>{words}</dd>" in shown and f'<td class="num nowrap">{words}</td>' in shown
        assert "900 tokens in, 40 out · cost unknown" in shown
    assert "unknown" not in page(client, free)
    listed = client.get(reverse("runs")).content.decode()
    assert [listed.count(f">{words}</td>") for words in ("unknown", "over $0.0041")] == [1, 1]


def test_what_is_left_of_the_time_is_called_waiting_only_where_something_waited(client, operator, version):
    run = factories.run(version, state="succeeded")
    assert "rest is waiting" not in page(client, run)
    factories.wait(run, "hot/no/later", "timer", 1, due=9, state="resolved")
    assert "rest is waiting" in page(client, run)


def test_an_uncertain_attempt_offers_three_answers(client, operator, version):
    run = factories.run(version, state="attention")
    factories.attempt(run, DEAL, 1, 20, 22, "unknown", error="The worker was lost during the call.")
    wait = factories.wait(run, DEAL, "person", 22, data={"reason": "uncertain", "attempt": 1, "error": "lost"})
    shown = page(client, run)
    assert all(words in shown for words in ("Did it happen?", "It happened", "Run it again", "Let it fail"))
    answer = client.post(reverse("run_answer", args=[run.pk, wait.pk]), {"answer": "happened", "output": '{"id": 7}'})
    assert answer.status_code == 302
    wait.refresh_from_db()
    run.refresh_from_db()
    assert wait.outcome["answer"] == "happened" and wait.outcome["output"] == {"id": 7}
    assert run.state == "open"


@pytest.mark.parametrize(("response", "words"), [(None, "never came"), ({"status": 500, "headers": {}}, "does not tell whether it was done")])
def test_the_question_says_what_is_known_of_the_answer(client, operator, version, response, words):
    run = factories.run(version, state="attention")
    factories.attempt(run, DEAL, 1, 20, 22, "unknown", response=response)
    factories.wait(run, DEAL, "person", 22, data={"reason": "uncertain", "attempt": 1, "error": "crm.example did something."})
    shown = page(client, run)
    assert f"and its answer {words}: crm.example did something." in shown
    assert "lanes and iterations beside it go on meanwhile" in shown and "other lanes" not in shown


@pytest.mark.parametrize(("steps", "path", "beside"), [
    (["call"], "call", False),
    ([{"id": "each", "type": "loop", "config": {"items": "[1]", "concurrency": 5}, "steps": ["call"]}], "each[0]/call", True),
    ([{"id": "each", "type": "loop", "config": {"items": "[1]"}, "steps": ["call"]}], "each[0]/call", False),
    ([{"id": "if", "type": "condition", "branches": [{"id": "yes", "steps": ["call"]}]}], "if/yes/call", False),
])  # fmt: skip
def test_lanes_are_spoken_of_only_where_there_are_some(steps, path, beside):
    call = {"id": "call", "type": "http", "config": {"method": "POST", "url": "https://crm.example/deals"}}

    def filled(step):
        return call if step == "call" else {
            **step,
            **({"steps": [call]} if "steps" in step else {"branches": [one | {"steps": [call]} for one in step["branches"]]}),
        }

    assert uncertain.goes_on_beside({"steps": [filled(step) for step in steps]}, path) is beside


def test_running_it_again_says_which_call_goes_out_under_which_key(client, operator, version):
    run = factories.run(version, state="attention")
    old, new = (key_of(run.pk, run.created_at, DEAL, take) for take in (1, 2))
    request = {"method": "POST", "url": "https://crm.example/deals", "headers": {"Idempotency-Key": old}}
    factories.attempt(run, DEAL, 1, 20, 22, "unknown", request=request)
    factories.wait(run, DEAL, "person", 22, data={"reason": "uncertain", "attempt": 1, "error": "lost"})
    assert f"POST https://crm.example/deals goes out once more, with a new Idempotency-Key: {new}. The first call had {old}" in page(client, run)


def test_running_it_again_speaks_of_no_key_where_none_was_sent(client, operator, version):
    run = factories.run(version, state="attention")
    factories.attempt(run, DEAL, 1, 20, 22, "unknown", request={"method": "POST", "url": "https://crm.example/deals", "headers": {}})
    factories.wait(run, DEAL, "person", 22, data={"reason": "uncertain", "attempt": 1, "error": "lost"})
    assert "goes out once more. If the first call did happen, it will have happened twice." in page(client, run)


@pytest.mark.parametrize(("step", "output"), [
    ({"type": "http"}, {"status": 0, "headers": {}, "body": {}}),
    ({"type": "http", "config": {"pages": "link"}}, {"status": 0, "headers": {}, "items": [], "pages": 0, "more": True}),
    ({"type": "ai", "config": {"task": "write"}}, {"text": "…"}),
    ({"type": "unheard_of"}, {}),
])  # fmt: skip
def test_an_output_that_is_written_by_hand_has_the_shape_of_its_step(step, output):
    assert json.loads(uncertain.output_sketch(step)) == output


def test_a_skipped_step_asks_for_an_output_of_its_shape(client, operator, version):
    run = factories.run(version, state="failed", error={"path": DEAL, "message": "no"})
    shown = client.get(reverse("run_skip", args=[run.pk]), {"step": DEAL}).content.decode()
    assert "{&quot;status&quot;: 0, &quot;headers&quot;: {}, &quot;body&quot;: {}}" in shown


@pytest.mark.parametrize("output", ["{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100 + "]" * 100])
def test_an_output_that_is_no_json_answers_nothing(client, operator, version, output):
    run = factories.run(version, state="attention")
    wait = factories.wait(run, DEAL, "person", 22)
    answer = client.post(reverse("run_answer", args=[run.pk, wait.pk]), {"answer": "happened", "output": output}, follow=True)
    assert "Nothing was changed" in str([*answer.context["messages"]][0])
    wait.refresh_from_db()
    assert wait.state == "open"


def test_an_answer_goes_only_to_a_wait_of_this_run(client, operator, version):
    run, other = factories.run(version), factories.run(version, state="attention")
    wait = factories.wait(other, DEAL, "person", 22)
    assert client.post(reverse("run_answer", args=[run.pk, wait.pk]), {"answer": "again"}).status_code == 404


def test_cancel_requeue_and_rerun(client, operator, version):
    run = factories.run(version)
    client.post(reverse("run_cancel", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "cancelled" and not Dispatch.objects.filter(pk=run.pk).exists()
    failed = factories.run(version, state="failed")
    client.post(reverse("run_requeue", args=[failed.pk]))
    client.post(reverse("run_requeue", args=[failed.pk]))
    assert AuditEntry.objects.filter(action="requeue", subject=f"run:{failed.pk}").count() == 1
    answer = client.post(reverse("run_rerun", args=[run.pk]))
    again = Run.objects.latest("pk")
    assert answer.url == reverse("run", args=[again.pk])
    assert (again.rerun_of_id, again.input, again.version_id) == (run.pk, run.input, run.version_id)


def test_acts_need_a_token_and_a_post(client, operator, version):
    from django.test import Client

    run = factories.run(version)
    assert client.get(reverse("run_cancel", args=[run.pk])).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    assert strict.post(reverse("run_cancel", args=[run.pk])).status_code == 403


# Live


def test_nothing_is_sent_while_nothing_changed(client, operator, version):
    run = factories.run(version, dispatch="claimed")
    live = reverse("run_live", args=[run.pk])
    etag = client.get(live)["ETag"]
    assert client.get(live, headers={"If-None-Match": etag}).status_code == 204


def ending(run: Run) -> Callable[[int], str]:
    """`fingerprint`, at whose moment the run ends."""

    def mark(run_id: int) -> str:
        Dispatch.objects.filter(pk=run.pk).delete()
        Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=factories.at(9))
        return fingerprint(run_id)

    return mark


@pytest.mark.parametrize("view", ["run", "run_live"])
def test_a_run_that_ends_while_its_page_is_made_is_not_shown_as_running_for_ever(client, operator, version, monkeypatch, view):
    run = factories.run(version, dispatch="claimed")
    monkeypatch.setattr("builder.views.runs.page.fingerprint", ending(run))
    shown = client.get(reverse(view, args=[run.pk])).context
    assert shown["etag"] == f'"{fingerprint(run.pk)}"'
    assert shown["shown"]["state"] == "succeeded" and not shown["live"]


def test_a_test_run_that_ends_while_it_is_looked_at_is_not_watched_for_ever(version, monkeypatch):
    run = factories.run(version, dispatch="claimed", test=True)
    monkeypatch.setattr("builder.testwatch.fingerprint", ending(run))
    assert not watched(run.workflow, run.pk)["live"]


def test_whatever_changes_is_seen(version):
    run = factories.run(version, dispatch="claimed")
    seen = {fingerprint(run.pk)}

    def changed(what) -> None:
        what()
        mark = fingerprint(run.pk)
        assert mark not in seen
        seen.add(mark)

    changed(lambda: factories.attempt(run, "qualify", 1, 1, None))
    changed(lambda: run.__class__.objects.filter(pk=run.pk).update(title="Halden"))
    changed(lambda: factories.result(run, "qualify", 1, 4))
    changed(lambda: factories.log(run, "line"))
    changed(lambda: factories.frame(run, "each", total=3, cursor=1, open=[0]))
    changed(lambda: factories.attempt(run, "each[0]/add", 1, 5, None))
    waits = []
    changed(lambda: waits.append(factories.wait(run, APPROVE, "approval", 5, due=10**9)))
    changed(lambda: factories.approval(waits[0]))
    changed(lambda: waits[0].approval.recipients.update(viewed_at=factories.at(9)))
    changed(lambda: Dispatch.objects.filter(pk=run.pk).update(state="waiting", token=None, worker_id=None, leased_until=None))


def test_the_live_answer_brings_marked_parts_and_stops_at_the_end(client, operator, version):
    run = factories.run(version, dispatch="claimed")
    answer = client.get(reverse("run_live", args=[run.pk]))
    body = answer.content.decode()
    assert all(f'data-rev="{part}-' in body for part in ("head", "steps", "panel")) and "Hf-Live" not in answer
    Dispatch.objects.filter(pk=run.pk).delete()
    Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=factories.at(9))
    assert client.get(reverse("run_live", args=[run.pk]))["Hf-Live"] == "stop"


def test_parts_that_look_as_before_keep_their_mark(client, operator, version):
    run = factories.run(version, dispatch="claimed")
    live = reverse("run_live", args=[run.pk]) + "?step=trigger"

    def marks() -> dict[str, str]:
        body = client.get(live).content.decode()
        return {part: body.split(f'data-rev="{part}-')[1].split('"')[0] for part in ("head", "panel")}

    before = marks()
    factories.attempt(run, "qualify", 1, 1, None)
    assert marks() == before


# Loops


def loop_of(version, count: int, *, state: str = "open", failed: int | None = None) -> Run:
    run = factories.run(version, state=state, **({"dispatch": "claimed"} if state == "open" else {}))
    start, end = factories.at(6), factories.at(7)
    StepResult.objects.bulk_create(
        StepResult(
            run_id=run.pk, scope=f"each[{index}]", path=f"each[{index}]/add", take=1, step="add", token=1,
            state="failed" if index == failed else "succeeded", started_at=start + timedelta(milliseconds=index),
            finished_at=end + timedelta(milliseconds=index), output={"n": index},
        )
        for index in range(count)
    )  # fmt: skip
    return run


def test_a_loop_of_ten_thousand_costs_what_is_shown(client, operator, version):
    small, large = loop_of(version, 30), loop_of(version, 10_000)
    factories.frame(small, "each", total=31, cursor=31, open=[30], succeeded=30)
    factories.frame(large, "each", total=10_001, cursor=10_001, open=[10_000], succeeded=10_000)
    sizes, numbers = [], []
    for run in (small, large):
        with CaptureQueriesContext(connection) as queries:
            sizes.append(len(page(client, run)))
        numbers.append(len(queries))
        read = len(load(run, version.definition).places)
        assert read < 20
    assert numbers[0] == numbers[1]
    assert abs(sizes[0] - sizes[1]) < 6_000


def test_the_failed_iteration_is_opened_first(version):
    run = loop_of(version, 300, state="failed", failed=213)
    factories.frame(run, "each", total=400, cursor=214, open=[213], succeeded=213)
    page_ = load(run, version.definition).loops["each"]
    assert page_.opened == 213 and [row.index for row in page_.iterations] == list(range(210, 220))
    assert [row.state for row in page_.iterations][:5] == ["succeeded"] * 3 + ["failed", "queued"]


def test_other_pages_and_iterations_are_a_link_away(client, operator, version):
    run = loop_of(version, 45)
    factories.frame(run, "each", total=100, cursor=45, open=[], succeeded=45)
    first = load(run, version.definition).loops["each"]
    assert (first.earlier, first.later, first.opened) == (None, 10, None)
    later = load(run, version.definition, Wanted(pages={"each": 40})).loops["each"]
    assert [row.state for row in later.iterations] == ["succeeded"] * 5 + ["queued"] * 5
    shown = page(client, run, step="each[41]/add")
    assert "Iteration 42 of 100" in shown
    assert "each[41]/add" in shown


def test_an_ended_loop_knows_how_many_there_were(version):
    run = loop_of(version, 12, state="succeeded")
    factories.result(run, "each", 5, 9, output={"count": 12, "succeeded": 12, "failed": 0})
    loop = load(run, version.definition).loops["each"]
    assert loop.total == 12 and loop.ended == 12 and {row.state for row in loop.iterations} == {"succeeded"}


def test_a_filter_survives_in_its_addresses():
    chosen = Filter.of({"state": "failed", "flow": "3", "q": "halden", "tests": "1", "before": "77"})
    assert chosen.query() == "state=failed&flow=3&q=halden&tests=1"
    assert Filter.of({"state": "x", "flow": "-1", "before": "9" * 40}) == Filter()


@pytest.mark.parametrize(
    ("error", "outcome", "request_kept", "remedy", "link"),
    [
        ({"message": "crm answered 401.", "field": "connection"}, "answered", {"connection": "CRM"}, "Put the connection “CRM” right under Connections, then requeue the run", 'href="/connections/"'),
        ({"message": "No connection: refused."}, "not_sent", {"url": "http://x"}, "If the address is wrong, change the flow, publish it and continue this run on the new version", "The step in the flow"),
        ({"message": "crm answered 422."}, "answered", {"url": "http://x"}, "If what is sent is wrong, change the flow, publish it", "The step in the flow"),
    ],
)  # fmt: skip
def test_a_failed_step_says_what_to_do_about_it(client, operator, version, error, outcome, request_kept, remedy, link):
    run = factories.run(version, state="failed", error=error | {"path": DEAL, "step": "deal"})
    factories.attempt(run, DEAL, 1, 4, 5, outcome, error=error["message"], request=request_kept)
    factories.attempt(run, DEAL, 2, 5, 6, outcome, error=error["message"], request=request_kept)
    factories.result(run, DEAL, 4, 6, "failed", error=error)
    asked = client.get(f"/runs/{run.pk}/").content.decode().split('aria-label="Why it failed"')[1].split("</section>")[0]
    assert remedy in asked and link in asked


def test_who_has_left_is_told_and_can_be_replaced(client, operator, version):
    factories.user("operator", name="dana", email="Dana@example.com", is_active=False)
    factories.user("operator", name="marcus", email="marcus@example.com")
    run = factories.run(version)
    wait = factories.wait(run, "hot/yes/meanwhile/outreach/approve_vip", "approval", 5, due=10**6)
    factories.approval(wait)
    page = client.get(f"/runs/{run.pk}/?step={wait.path}").content.decode()
    assert f'href="/flows/{version.workflow_id}/versions/7/"' in page, "the version it runs on is one press away"
    assert page.count("Has no active account any more") == 1 and f'/approvals/{wait.pk}/?instead=1' in page
    assert '<details class="card pad mt-16" open><summary>Ask somebody else' in client.get(f"/approvals/{wait.pk}/?instead=1").content.decode()


def test_the_page_of_a_test_run_of_a_draft_opens_though_its_version_has_no_number(client):
    client.force_login(factories.user("viewer"))
    run = factories.run(factories.version(number=None), test=True)
    assert client.get(f"/runs/{run.pk}/").status_code == 200
