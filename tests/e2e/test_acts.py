"""What operators do to runs, in a browser: each act that has no test of its own elsewhere (`test_run_pages.py`,
`test_operating.py`), as they find it."""

from __future__ import annotations

from copy import deepcopy

import pytest
from playwright.sync_api import expect

from builder.models import SavedFilter
from runtime.definition import find
from runtime.models import Attempt, FrameChunk, OutboxMessage, Run, StepResult, Wait
from tests.builder import factories
from tests.builder.factories import APPROVE, DEAL
from tests.e2e.axe import barriers
from tests.e2e.desk import complaints, confirm_and_work_off, desk, recent  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EACH = {
    "format": 1, "name": "Orders", "steps": [
        {"id": "each", "type": "loop", "name": "Each line", "config": {"items": "trigger.body.lines", "concurrency": 2}, "steps": [
            {"id": "book", "type": "http", "name": "Book it", "config": {"method": "POST", "url": "https://books.example/"}}]}],
}  # fmt: skip
ERROR = {"path": DEAL, "step": "deal", "name": "Create deal in CRM", "message": "503 Service Unavailable", "kind": "a" * 16}


def failed(version, **more) -> Run:
    run = factories.run(version, state="failed", error=ERROR, **more)
    factories.attempt(run, DEAL, 1, 20, 21, "refused", error="503 Service Unavailable")
    factories.result(run, DEAL, 20, 21, "failed", error=ERROR)
    return run


def uncertain() -> tuple[Run, Wait]:
    run = factories.run(state="attention")
    factories.attempt(run, DEAL, 1, 20, 22, "unknown", error="The worker was lost during the call.")
    return run, factories.wait(run, DEAL, "person", 52, data={"reason": "uncertain", "attempt": 1, "error": "The worker was lost."})


def test_a_retry_that_waits_is_made_now(desk, live_server):
    run = factories.run()
    factories.attempt(run, DEAL, 1, 20, 21, "refused", error="503")
    wait = factories.wait(run, DEAL, "retry", 21, due=86_400, data={"error": "503"})
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("button", name="Retry now").click()
    expect(desk.get_by_text("Now it is. The run goes on.")).to_be_visible()
    assert Wait.objects.get(pk=wait.pk).outcome["by"] == "due"


def test_those_who_are_asked_are_reminded(desk, live_server):
    run = factories.run()
    factories.approval(factories.wait(run, APPROVE, "approval", 5, due=3 * 86_400))
    desk.goto(f"{live_server.url}/runs/{run.pk}/?step={APPROVE}")
    desk.get_by_role("button", name="Remind").click()
    expect(desk.get_by_role("status").filter(has_text="eminded").first).to_be_visible()
    assert OutboxMessage.objects.filter(run_id=run.pk).count() == 2


def test_a_call_that_may_have_happened_is_made_again(desk, live_server):
    run, wait = uncertain()
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("button", name="Run it again").click()
    asked = desk.locator("dialog[open]")
    expect(asked.get_by_role("button", name="Keep waiting")).to_be_focused()
    asked.locator("[data-yes]").click()
    expect(desk.get_by_text("The step runs again, as its next take.")).to_be_visible()
    assert Wait.objects.get(pk=wait.pk).outcome["answer"] == "again"


def test_a_call_that_may_have_happened_lets_its_step_fail(desk, live_server):
    run, wait = uncertain()
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("button", name="Let it fail").click()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.get_by_text("The step fails.")).to_be_visible()
    assert Wait.objects.get(pk=wait.pk).outcome["answer"] == "fail"


def test_a_failed_run_is_requeued_and_the_dialog_names_the_call_and_its_key(desk, live_server):
    run = failed(factories.version())
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.locator("#run-head").get_by_role("link", name="Requeue").click()
    asked = desk.get_by_role("dialog", name=f"Requeue run {run.pk:,}?")
    expect(asked.get_by_role("region", name="Outside, once more")).to_contain_text("Create deal in CRM")
    expect(asked.get_by_role("region", name="Outside, once more")).to_contain_text("new Idempotency-Key hf-")
    assert barriers(desk) == []
    asked.get_by_role("button", name="Requeue").click()
    expect(desk.get_by_text("Requeued. It goes on where it failed.")).to_be_visible()
    assert Run.objects.get(pk=run.pk).state == "open"


def test_one_iteration_runs_again_and_the_failed_one_is_open_at_once(desk, live_server):
    error = {"path": "each[2]/book", "step": "book", "name": "Book it", "message": "503"}
    run = factories.run(factories.version(EACH), state="failed", error=error, input={"body": {"lines": list("abcd")}})
    factories.frame(run, "each", total=4, cursor=4, open=[2], succeeded=3)
    FrameChunk.objects.create(run_id=run.pk, path="each", take=1, n=0, items=list("abcd"))
    for n in (0, 1, 3):
        factories.attempt(run, f"each[{n}]/book", 1, n, n + 1)
        factories.result(run, f"each[{n}]/book", n, n + 1, output={"status": 200})
    factories.attempt(run, "each[2]/book", 1, 4, 5, "refused", error="503")
    factories.result(run, "each[2]/book", 4, 5, "failed", error=error)
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    expect(desk.locator('tr[data-path="each[2]/book"]')).to_be_visible()
    expect(desk.locator('tr[data-path="each[2]"]')).to_contain_text("Iteration 3 of 4")
    desk.get_by_label("More for this step").click()
    desk.get_by_role("link", name="Retry this whole iteration").click()
    asked = desk.locator("dialog[open]")
    expect(asked.get_by_role("region", name="Keeps its result")).to_contain_text("3 times")
    asked.get_by_role("button", name="Retry from here").click()
    expect(desk.get_by_text("It runs again from here.")).to_be_visible()
    left = StepResult.objects.filter(run_id=run.pk, superseded=False, step="book").values_list("path", flat=True)
    assert set(left) == {"each[0]/book", "each[1]/book", "each[3]/book"}


def test_all_that_failed_alike_is_requeued_from_operations(desk, live_server):
    version = factories.version()
    runs = [failed(version) for _ in range(3)]
    failed(version, rerun_of=runs[0])
    desk.goto(f"{live_server.url}/operations/")
    desk.get_by_role("button", name="Requeue 3").click()
    asked = desk.locator("dialog[open]")
    expect(asked).to_contain_text("“Create deal in CRM” of Lead qualification runs again in each")
    asked.get_by_role("button", name="Requeue 3").click()
    expect(desk.get_by_text("Requeued 3 runs.")).to_be_visible()
    assert Run.objects.get(pk=runs[0].pk).state == "failed", "the later run of its origin does its work"
    assert Attempt.objects.count() == 4


def test_a_filter_is_kept_by_a_name_and_taken_away(desk, live_server):
    failed(factories.version())
    desk.goto(f"{live_server.url}/runs/?state=failed")
    desk.get_by_label("Name of the filter").fill("Bad ones")
    desk.get_by_role("button", name="Save this filter").click()
    expect(desk.get_by_role("link", name="Bad ones")).to_be_visible()
    desk.goto(f"{live_server.url}/runs/")
    desk.get_by_role("link", name="Bad ones").click()
    expect(desk).to_have_url(f"{live_server.url}/runs/?state=failed")
    desk.get_by_role("button", name="Bad ones").click()
    expect(desk.get_by_role("link", name="Bad ones")).to_have_count(0)
    assert not SavedFilter.objects.exists()


def test_a_run_goes_on_with_the_repaired_flow_and_what_ended_is_kept(desk, live_server):
    """By the keyboard alone, from the run to the new one."""
    run = failed(factories.version())
    factories.attempt(run, "qualify", 1, 0, 3)
    factories.result(run, "qualify", 0, 3, output={"score": 82})
    factories.result(run, "hot", 3, 3, output={"branch": "yes"})
    factories.result(run, APPROVE, 3, 19, output={"answer": "approve"})
    live = factories.version_after(run.version, deepcopy(factories.LEAD))
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    expect(desk.locator("#run-head").get_by_role("link", name="Continue on v8")).not_to_have_class("btn btn--primary")
    find(live.definition, "deal")["config"]["url"] = "https://crm.example/v2/deals"
    live = factories.version_after(live, live.definition)
    desk.reload()
    button = desk.locator("#run-head").get_by_role("link", name="Continue on v9")
    expect(button).to_have_class("btn btn--primary")
    button.focus()
    desk.keyboard.press("Enter")
    asked = desk.get_by_role("dialog", name=f"Continue run {run.pk:,} on v9?")
    expect(asked).to_contain_text("It goes on at Create deal in CRM, which failed, and was changed since.")
    kept = asked.get_by_role("region", name="Keeps its result")
    expect(kept).to_contain_text("Qualify lead")
    expect(kept).to_contain_text("Approve VIP outreach")
    expect(asked.get_by_role("region", name="Runs again")).to_contain_text("Create deal in CRM")
    expect(asked.get_by_role("region", name="Outside, once more")).to_contain_text("was refused")
    expect(asked.get_by_role("button", name="Leave it")).to_be_focused()
    assert barriers(desk) == []
    desk.keyboard.press("Tab")
    desk.keyboard.press("Enter")
    expect(desk.get_by_text(f"It goes on with what run {run.pk:,} has done.")).to_be_visible()
    new = Run.objects.get(rerun_of=run)
    assert (new.version, new.state) == (live, "open")
    expect(desk.locator('tr[data-path="qualify"]')).to_contain_text(f"kept from run {run.pk:,}")
    desk.get_by_role("link", name="Qualify lead").click()
    expect(desk.locator("#run-panel").get_by_role("region", name="Kept")).to_contain_text(f"Kept from run {run.pk:,}")
    assert barriers(desk) == []


def test_many_go_on_with_the_repaired_flow(desk, live_server):
    version = factories.version()
    runs = [failed(version) for _ in range(2)]
    factories.version_after(version)
    desk.goto(f"{live_server.url}/runs/?state=failed")
    desk.get_by_label(f"Select run {runs[0].pk:,}").check()
    desk.get_by_label("Select all on this page").check()
    desk.get_by_role("button", name="Re-run 2").click()
    expect(desk.get_by_label("On that, keeping the results of steps that ended")).to_be_checked()
    assert barriers(desk) == []
    confirm_and_work_off(desk, 2)
    assert {run.rerun_of_id for run in Run.objects.filter(state="open")} == {run.pk for run in runs}
