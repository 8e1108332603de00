"""Acts that repeat work: what the dialog says, that it is said first, and that a form counts once."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from builder.tokens import make_token
from runtime.models import Attempt, AuditEntry, Dispatch, FrameChunk, Run, StepResult, Wait
from runtime.paths import key_of
from tests.builder import factories
from tests.builder.factories import DEAL

pytestmark = pytest.mark.django_db

INTRO = "hot/yes/meanwhile/outreach/intro"


@pytest.fixture
def run():
    """Failed at the deal, after two answered calls; a mail went out from the other lane."""
    error = {"step": "deal", "name": "Create deal in CRM", "path": DEAL, "message": "503 Service Unavailable"}
    made = factories.run(factories.version(), state="failed", error=error)
    factories.attempt(made, "qualify", 1, 0, 3)
    factories.result(made, "qualify", 0, 3, output={"score": 82})
    factories.result(made, "hot", 3, 3, output={"branch": "yes"})
    factories.attempt(made, DEAL, 1, 4, 5, "unknown", error="No answer within 60 s.")
    factories.result(made, DEAL, 4, 5, "failed", error=error)
    factories.result(made, "hot/yes/meanwhile/warm/study", 4, 5)
    factories.mail(made, "priya@example.com", path="hot/yes/meanwhile/warm/study", state="sent")
    return made


def asked(client, name: str, run: Run, **query) -> str:
    answer = client.get(f"{reverse(name, args=[run.pk])}?{urlencode(query)}", headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.content.decode()


def section(html: str, name: str) -> str:
    return html.partition(f'aria-label="{name}"')[2].partition("</section>")[0]


def test_a_requeue_says_what_it_repeats_and_asks_first(client, operator, run):
    html = asked(client, "run_requeue", run)
    assert "<dialog" in html and "Create deal in CRM" in section(html, "Runs again")
    outside = section(html, "Outside, once more")
    assert key_of(run.pk, run.created_at, DEAL, 2) in outside and "may have happened" in outside and "Qualify" not in outside
    assert "Qualify lead" in section(html, "Keeps its result") and "Send case study" in section(html, "Keeps its result")
    run.refresh_from_db()
    assert run.state == "failed", "looking is not doing"
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert f'hx-get="{reverse("run_requeue", args=[run.pk])}"' in page and f'hx-get="{reverse("run_rerun", args=[run.pk])}"' in page


def test_an_act_counts_as_done_by_its_own_form_alone(client, operator, run):
    """Not by somebody else's who knew or guessed its key, be it a form's or a program's, nor by another act's of theirs."""
    headers = {"Authorization": f"Bearer {make_token(operator, 'retries')[1]}"}
    of_program = hashlib.sha256(f"{operator.pk}|{run.pk}|order-17".encode()).hexdigest()
    theirs = factories.run(factories.version(of=factories.team("Others")), state="failed")
    for person, about, key in ((factories.user("operator", of=theirs.workflow.team), theirs, "k"), (operator, run, of_program)):
        client.force_login(person)
        client.post(reverse("run_rerun", args=[about.pk]), {"key": key, "version": "pinned", "input": "{}"})
    assert Run.objects.filter(rerun_of=run).count() == 1
    client.post(reverse("run_rerun", args=[run.pk]), {"key": "k", "version": "pinned", "input": "{}"})
    assert Run.objects.filter(rerun_of=run).count() == 2
    body = {"idempotency_key": "order-17"}
    answers = [client.post(f"/api/v1/runs/{run.pk}/rerun", body, content_type="application/json", headers=headers) for _ in "ab"]
    assert [answer.status_code for answer in answers] == [201, 200] and Run.objects.filter(rerun_of=run).count() == 3


def test_a_retry_from_the_top_of_the_lanes_repeats_mails_too(client, operator, run):
    html = asked(client, "run_retry", run, step="hot")
    outside = section(html, "Outside, once more")
    assert "Mail to priya@example.com" in outside and key_of(run.pk, run.created_at, DEAL, 2) in outside
    assert "Qualify lead" in section(html, "Keeps its result")
    first = client.post(reverse("run_retry", args=[run.pk]), {"step": "hot", "key": "k"}, follow=True)
    again = client.post(reverse("run_retry", args=[run.pk]), {"step": "hot", "key": "k"}, follow=True)
    assert "runs again from here" in first.content.decode() and "done already" in again.content.decode()
    assert set(StepResult.objects.filter(run_id=run.pk, superseded=False).values_list("path", flat=True)) == {"qualify"}
    assert Dispatch.objects.get(pk=run.pk).state == "ready"
    entry = AuditEntry.objects.get(action="retry")
    assert (entry.actor, entry.detail) == (operator, {"path": "hot"})


def test_what_cannot_be_retried_says_why(client, operator, run):
    assert "has not begun" in asked(client, "run_retry", run, step=INTRO)
    assert "no step at" in asked(client, "run_retry", run, step="nowhere")
    done = factories.run(run.version, state="succeeded")
    factories.result(done, "qualify", 0, 1)
    assert "has ended" in asked(client, "run_retry", done, step="qualify")
    answer = client.post(reverse("run_retry", args=[done.pk]), {"step": "qualify"}, follow=True)
    assert "Nothing was changed" in answer.content.decode()


def test_without_script_the_question_is_a_page(client, operator, run):
    html = client.get(reverse("run_rerun", args=[run.pk])).content.decode()
    assert "<dialog class=\"dialog dialog--wide\" id=\"again" not in html and "Start a new run" in html and "Leave it" in html


def test_a_rerun_with_edited_input_on_the_live_version_counts_once(client, operator, run):
    newer = factories.Version.objects.create(workflow=run.workflow, number=8, definition=run.version.definition, hash="8")
    run.workflow.live_version = newer
    run.workflow.save()
    html = asked(client, "run_rerun", run)
    assert "v8, live now" in html and 'value="live" checked' in html, "what is newer is proposed"
    assert "Halden Robotics" in html and "Qualify lead" in section(html, "Outside, once more")
    form = {"key": "form", "version": "live", "input": '{"body": {"company": "Other"}}'}
    first = client.post(reverse("run_rerun", args=[run.pk]), form)
    assert client.post(reverse("run_rerun", args=[run.pk]), form).url == first.url
    started = Run.objects.get(rerun_of=run)
    assert (started.version, started.input) == (newer, {"body": {"company": "Other"}})
    assert AuditEntry.objects.get(action="rerun").detail["edited"]
    for wrong in ("{", "[1]", "7"):
        answer = client.post(reverse("run_rerun", args=[run.pk]), form | {"key": wrong, "input": wrong})
        assert answer.status_code == 422 and "The input is no JSON" in answer.content.decode()
    assert Run.objects.filter(rerun_of=run).count() == 1


def test_a_failed_step_is_skipped_with_an_output(client, operator, run):
    assert "Output of the step" in asked(client, "run_skip", run, step=DEAL)
    assert client.post(reverse("run_skip", args=[run.pk]), {"step": DEAL, "output": "{"}).status_code == 422
    client.post(reverse("run_skip", args=[run.pk]), {"step": DEAL, "output": '{"id": 7}', "key": "s"})
    result = StepResult.objects.get(run_id=run.pk, path=DEAL, superseded=False)
    assert (result.state, result.output, result.take) == ("skipped", {"id": 7}, 2)
    page = client.get(reverse("run", args=[run.pk]), {"step": DEAL})
    assert page.context["panel"]["output"]["value"] == {"id": 7}


def test_waits_are_ended_and_made_longer(client, operator):
    run = factories.run(factories.version())
    wait = factories.wait(run, "hot/no/later", "timer", 1, due=10**9)
    address = reverse("run_wait", args=[run.pk, wait.pk])
    due = wait.due_at
    client.post(address, {"act": "extend", "hours": "24"})
    wait.refresh_from_db()
    assert (wait.due_at - due).days == 1
    client.post(address, {"act": "extend", "hours": "-5"})
    assert Wait.objects.get(pk=wait.pk).due_at == wait.due_at
    client.post(address, {"act": "fire"})
    answer = client.post(address, {"act": "fire"}, follow=True)
    assert "waits no longer" in answer.content.decode() and Wait.objects.get(pk=wait.pk).state == "resolved"
    assert client.post(address, {"act": "other"}).status_code == 400
    assert AuditEntry.objects.filter(action="fire").count() == 1


def test_force_fail_and_back(client, operator):
    run = factories.run(factories.version(), dispatch="claimed")
    client.post(reverse("run_fail", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "failed" and "Failed by hand" in run.error["message"]
    client.post(reverse("run_requeue", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "open"


def test_a_reason_that_no_text_can_hold_is_kept_without_what_is_wrong_in_it(client, operator):
    run = factories.run(factories.version(), dispatch="claimed")
    assert client.post(reverse("run_fail", args=[run.pk]), {"why": "a\x00b"}).status_code == 302
    run.refresh_from_db()
    assert run.error["message"].endswith(": a\ufffdb")


def test_viewers_may_not(client, run):
    client.force_login(factories.user("viewer"))
    for name in ("run_requeue", "run_retry", "run_skip", "run_rerun"):
        assert client.get(reverse(name, args=[run.pk])).status_code == 403
        assert client.post(reverse(name, args=[run.pk])).status_code == 403
    assert client.post(reverse("run_fail", args=[run.pk])).status_code == 403


# The run page


def test_a_step_that_is_done_again_shows_its_earlier_attempts(client, operator, run):
    client.post(reverse("run_requeue", args=[run.pk]))
    page = client.get(reverse("run", args=[run.pk]), {"step": DEAL})
    line = next(row["node"] for row in page.context["lines"] if row["node"].path == DEAL)
    assert line.state == "queued" and page.context["panel"]["take"] == 2
    assert [one["row"].take for one in page.context["panel"]["attempts"]] == [1]
    assert "of take 1" in page.content.decode()


def test_iterations_are_named_by_their_items(client, operator):
    run = factories.run(factories.version(), dispatch="claimed")
    factories.frame(run, "each", total=3, cursor=2, open=[1], succeeded=1)
    items = [{"id": 7, "name": "Dana"}, {"email": "lee@example.com", "id": 8}, "third"]
    FrameChunk.objects.create(run_id=run.pk, path="each", take=1, n=0, items=items)
    factories.result(run, "each[0]/add", 1, 2)
    page = client.get(reverse("run", args=[run.pk]), {"step": "each[1]/add"})
    lines = [row["node"] for row in page.context["lines"] if row["node"].kind == "iteration"]
    assert [(node.name, node.aside) for node in lines[:2]] == [("Iteration 1 of 3", "Dana"), ("Iteration 2 of 3", "lee@example.com")]
    assert "Iteration 2" in page.context["panel"]["where"]


def test_table_and_tab_agree_on_the_attempts_of_a_mail_step(client, operator):
    run = factories.run(factories.version(), state="succeeded")
    path = "hot/yes/meanwhile/warm/study"
    factories.result(run, "hot", 0, 0, output={"branch": "yes"})
    factories.result(run, path, 1, 1.2)
    factories.mail(run, "priya@example.com", path=path, state="sent", attempts=2, sent_at=factories.at(3))
    page = client.get(reverse("run", args=[run.pk]), {"step": path})
    line = next(row["node"] for row in page.context["lines"] if row["node"].path == path)
    tab = next(tab for tab in page.context["panel"]["tabs"] if tab["id"] == "attempts")
    assert line.attempts == tab["count"] == 1
    html = page.content.decode()
    assert "priya@example.com" in html and "2 attempts" in html


def test_a_step_leads_to_the_builder_while_the_flow_has_it(client, operator, run):
    link = f"{reverse('flow', args=[run.workflow_id])}?step=deal"
    assert link in client.get(reverse("run", args=[run.pk]), {"step": DEAL}).content.decode()
    run.workflow.live_version = factories.Version.objects.create(workflow=run.workflow, number=8, definition={"steps": []}, hash="8")
    run.workflow.save()
    assert link not in client.get(reverse("run", args=[run.pk]), {"step": DEAL}).content.decode()


def test_runs_around_this_one_are_a_link_away(client, operator, run):
    again = factories.run(run.version, rerun_of=run)
    child = factories.run(run.version, parent_id=run.pk)
    theirs = factories.run(factories.version(of=factories.team("Finance")), parent_id=run.pk)
    told = {group["word"]: [pk for pk, _ in group["runs"]] for group in client.get(reverse("run", args=[run.pk])).context["related"]}
    assert told == {"Starts": [child.pk], "Run again as": [again.pk]} and theirs.pk not in told["Starts"]
    page = client.get(reverse("run", args=[child.pk]))
    assert [group["word"] for group in page.context["related"]] == ["Started by"]
    keyed = [factories.run(run.version, idempotency_key="k", trigger_key=key) for key in ("lead", "api")]
    assert client.get(reverse("run", args=[keyed[0].pk])).context["related"][0]["runs"] == [(keyed[1].pk, "open")]


def test_the_log_is_narrowed_and_stays_so_while_live(client, operator, run):
    factories.log(run, "Attempt 1 failed: 503", DEAL, "warning", 4)
    factories.log(run, "Create deal: gave up", DEAL, "error", 5)
    factories.log(run, "Qualify lead: done", "qualify", "info", 3)
    address = reverse("run", args=[run.pk])

    def lines(**query) -> list[str]:
        page = client.get(address, {"tab": "log", **query})
        assert 'id="p-log" aria-labelledby="tab-log">' in page.content.decode()
        return [line["row"].text for line in page.context["panel"]["log"]["lines"]]

    assert len(lines(step="trigger")) == 3
    assert lines(step="trigger", level="warning") == ["Attempt 1 failed: 503", "Create deal: gave up"]
    assert lines(step="trigger", find="QUALIFY") == ["Qualify lead: done"]
    assert lines(step="hot", level="error") == ["Create deal: gave up"], "a container's log is that of what is in it"
    assert lines(level="nonsense", find="\x00nothing\x00") == []
    assert "level=error" in client.get(address, {"level": "error"}).context["live_url"]


def test_an_older_live_version_is_offered_and_not_proposed(client, operator, run):
    older = factories.Version.objects.create(workflow=run.workflow, number=6, definition=run.version.definition, hash="6")
    run.workflow.live_version = older
    run.workflow.save()
    assert 'value="pinned" checked' in asked(client, "run_rerun", run)


def test_a_test_run_of_a_draft_starts_again_on_its_snapshot_unless_the_live_version_is_chosen(client, operator, run):
    snapshot = factories.Version.objects.create(workflow=run.workflow, number=None, definition=run.version.definition, hash="draft")
    tried = factories.run(snapshot, state="failed", test=True)
    shown = asked(client, "run_rerun", tried)
    assert 'value="pinned" checked' in shown and "draft snapshot, as this run" in shown
    told = client.post(reverse("runs_told"), {"act": "rerun", "run": [run.pk, tried.pk], "tests": "1"}).content.decode()
    assert "draft snapshot" in told and "vNone" not in told


@pytest.mark.parametrize(("error", "outcome", "in_flow"), [
    ({"field": "config.json"}, "", True), ({"field": "config.json"}, "answered", True), ({"field": "config.url"}, "not_sent", True),
    ({"field": "config.url"}, "unknown", False), ({"field": "connection"}, "", False), ({}, "answered", False),
])  # fmt: skip
def test_the_first_button_is_the_one_that_can_help(client, operator, error, outcome, in_flow):
    error = {"step": "deal", "name": "Create deal in CRM", "path": DEAL, "message": "There is no name “lead”."} | error
    run = factories.run(factories.version(), state="failed", error=error)
    if outcome:
        factories.attempt(run, DEAL, 1, 4, 5, outcome)
    factories.result(run, DEAL, 4, 5, "failed", error=error)
    html = client.get(reverse("run", args=[run.pk])).content.decode()
    first = {re.search(r'href="([^"]+)"', link)[1] for link in re.findall(r'<a class="btn[^"]*btn--primary"[^>]*>', html)}
    assert first == {reverse("run_rerun" if in_flow else "run_requeue", args=[run.pk])}
    look = f'<a href="{reverse("flow", args=[run.workflow_id])}?step=deal&amp;field={error.get("field", "")}">“'
    assert (look in html) is in_flow and ("publish the change and continue" in html) is in_flow


def test_a_step_without_a_name_is_called_by_its_kind_everywhere(client, operator):
    steps = [{"id": "api_call", "type": "http", "config": {"method": "POST", "url": "https://crm.example/deals"}}]
    version = factories.version(factories.LEAD | {"steps": steps})
    error = {"step": "api_call", "name": "API call", "path": "api_call", "message": "no"}
    failed, asking = factories.run(version, state="failed", error=error), factories.run(version, state="attention")
    factories.attempt(failed, "api_call", 1, 1, 2, "answered")
    factories.result(failed, "api_call", 1, 2, "failed", error=error)
    factories.attempt(asking, "api_call", 1, 1, 2, "unknown", cost="1")
    factories.wait(asking, "api_call", "person", 2, data={"reason": "uncertain", "attempt": 1})
    pages = [reverse(name, args=[failed.pk]) for name in ("run", "run_requeue", "run_rerun")]
    pages += [f"{reverse('run_retry', args=[failed.pk])}?step=api_call", reverse("runs"), reverse("operations"), reverse("waits")]
    for address in pages:
        html = re.sub("<code>.*?</code>", "", client.get(address).content.decode())
        assert "API call" in html and ">api_call" not in html and "“api_call”" not in html, address


@pytest.mark.parametrize(("body", "shown"), [
    ('{"error": "no such deal"}', ['class="k">&quot;error&quot;</span>']), ("[1, 2", ["&quot;[1, 2&quot;"]), ("sorry", ["&quot;sorry&quot;"]),
])  # fmt: skip
def test_an_error_that_is_json_is_shown_so(client, operator, run, body, shown):
    Attempt.objects.filter(run_id=run.pk, path=DEAL).update(response={"status": 404, "headers": {}, "body": body})
    html = client.get(reverse("run", args=[run.pk])).content.decode()
    assert all(words in html for words in shown) and r"\&quot;" not in html and "\\&quot;" not in html


def test_the_run_is_laid_over_its_canvas(client, operator, run):
    page = client.get(reverse("run", args=[run.pk]), {"view": "canvas", "step": "deal"})
    html = page.content.decode()
    states = dict(re.findall(r'id="step-(\w+)" data-step="\w+" data-run="(\w+)"', html))
    assert (states["qualify"], states["deal"], states["intro"], states["study"]) == ("succeeded", "failed", "queued", "succeeded")
    assert states["later"] == "skipped", "a lane that was not taken"
    assert page.context["panel"]["id"] == "deal" and "takes Yes" in html
    live = client.get(page.context["live_url"])
    assert "view=canvas" in page.context["live_url"] and 'id="run-stage"' in live.content.decode()
