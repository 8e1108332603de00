"""The run page: what it shows of a run, and what can be answered and done there."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from builder import uncertain
from builder.runload import Wanted, load
from runtime.models import AuditEntry, Dispatch, Run, StepResult
from runtime.paths import key_of
from tests.builder import factories
from tests.builder.factories import APPROVE, DEAL

pytestmark = pytest.mark.django_db


@pytest.fixture
def version():
    return factories.version()


def page(client, run: Run, **query) -> str:
    answer = client.get(reverse("run", args=[run.pk]), query)
    assert answer.status_code == 200
    return answer.content.decode()


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
