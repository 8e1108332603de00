"""The pages of operators and approvers in a real browser, under the policy that is served: live, by keyboard, on a phone."""

from __future__ import annotations

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from runtime import jobs
from runtime.models import Decision, Dispatch, Run, StepResult
from tests.builder import factories
from tests.builder.factories import APPROVE, DEAL
from tests.e2e.axe import barriers, overflow
from tests.e2e.desk import complaints, desk, recent  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TWO_DAYS = "hot/yes/meanwhile/warm/two_days"


def lead(**more) -> Run:
    """A run that has gone through the AI step and the condition."""
    run = factories.run(factories.version(), **more)
    factories.attempt(run, "qualify", 1, 0.1, 1.2, "refused", error="529 overloaded", response={"status": 529})
    factories.attempt(run, "qualify", 2, 1.7, 4.8, request={"prompt": "Score this lead"}, response={"status": 200}, cost="0.0041")
    factories.result(run, "qualify", 0.1, 4.8, output={"score": 82})
    factories.result(run, "hot", 4.81, 4.82, output={"branch": "yes"})
    factories.frame(run, "hot/yes/meanwhile", total=2, cursor=0, open=[], kind="parallel")
    return run


def waiting() -> Run:
    run = lead()
    factories.approval(factories.wait(run, APPROVE, "approval", 5, due=3 * 86_400))
    factories.wait(run, TWO_DAYS, "timer", 5, due=2 * 86_400)
    return run


def test_choosing_a_step_shows_it_and_the_address_remembers(desk, live_server):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    expect(desk.get_by_role("heading", name="Approve VIP outreach")).to_be_visible()
    desk.get_by_role("link", name="Qualify lead").click()
    panel = desk.get_by_label("Step: Qualify lead")
    expect(panel.locator("#p-input").get_by_text("Score this lead")).to_be_visible()
    panel.get_by_role("tab", name="Attempts").click()
    expect(panel.get_by_text("529 overloaded")).to_be_visible()
    assert "step=qualify" in desk.url
    desk.reload()
    expect(desk.get_by_label("Step: Qualify lead")).to_be_visible()


def test_data_is_read_as_a_table_and_gives_the_expression_that_reads_it(desk, live_server):
    run = waiting()
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk.goto(f"{live_server.url}/runs/{run.pk}/?step=qualify&tab=output")
    output = desk.locator("#p-output")
    output.get_by_role("button", name="Table").click()
    expect(output.get_by_role("row", name="score 82")).to_be_visible()
    expect(output.locator("ol")).to_be_hidden()
    output.get_by_role("button", name="score").click()
    assert desk.evaluate("navigator.clipboard.readText()") == "{{ steps.qualify.output.score }}"
    desk.get_by_role("link", name="New lead").click()
    desk.get_by_label("Step: New lead").get_by_role("tab", name="Input").click()
    expect(desk.locator("#p-input").get_by_role("table").first).to_be_visible()
    desk.reload()
    desk.get_by_role("tab", name="Input").click()
    expect(desk.locator("#p-input").get_by_role("button", name="Table")).to_have_attribute("aria-pressed", "true")
    assert barriers(desk) == []
    desk.locator("#p-input").get_by_role("button", name="JSON", exact=True).click()
    expect(desk.locator("#p-input ol")).to_be_visible()


def test_the_canvas_of_a_run_keeps_its_place_while_the_run_goes_on(desk, live_server):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/{run.pk}/?view=canvas")
    expect(desk.locator("#stage.is-placed")).to_be_visible()
    desk.get_by_role("button", name="Zoom in").click()
    name, place = desk.locator("#name-intro"), desk.locator("#step-qualify")
    name.focus()
    level, before = desk.locator("#zoom-level").inner_text(), place.bounding_box()
    factories.Wait.objects.filter(run_id=run.pk, kind="approval").update(state="resolved", resolved_at=factories.at(9), outcome={"by": "person"})
    factories.result(run, APPROVE, 5, 9, output={"approved": True})
    expect(desk.locator("#step-approve_vip")).to_have_attribute("data-run", "succeeded")
    assert (desk.locator("#zoom-level").inner_text(), place.bounding_box()) == (level, before)
    expect(name).to_be_focused()
    desk.locator("#name-study").click()
    expect(desk.get_by_label("Step: Send case study")).to_be_visible()
    assert (desk.locator("#zoom-level").inner_text(), place.bounding_box()) == (level, before)


def test_of_two_quick_choices_the_last_is_shown(desk, live_server, complaints):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    links = [desk.get_by_role("link", name=name).element_handle() for name in ("New lead", "Qualify lead")]
    desk.evaluate("links => links.forEach(link => link.click())", links)
    expect(desk.get_by_label("Step: Qualify lead")).to_be_visible()
    assert "step=qualify" in desk.url
    expect(desk.locator("#loadbar.htmx-request")).to_have_count(0)
    given_up = ("htmx:afterRequest", "htmx:sendAbort")  # htmx tells the console of a request that it gave up
    complaints[:] = [text for text in complaints if not text.startswith(given_up)]


def test_the_arrow_keys_walk_the_steps_and_lanes_unfold(desk, live_server):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("link", name="New lead").focus()
    desk.keyboard.press("ArrowDown")
    expect(desk.get_by_role("link", name="Qualify lead")).to_be_focused()
    later = desk.get_by_role("link", name="Wait a week")
    expect(later).to_be_hidden()
    desk.get_by_role("button", name="Fold No lane").click()
    expect(later).to_be_visible()
    desk.get_by_role("button", name="Fold Score above 70?").click()
    expect(desk.get_by_role("link", name="Approve VIP outreach")).to_be_hidden()


def test_the_page_follows_the_run_without_a_reload(desk, live_server):
    run = lead(dispatch="claimed")
    factories.attempt(run, DEAL, 1, 20, None)
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("button", name="Fold No lane").click()
    desk.get_by_role("tab", name="Log").click()
    desk.evaluate("window.stayed = true")
    factories.log(run, "The CRM took it", DEAL)
    expect(desk.get_by_text("The CRM took it")).to_be_visible()
    expect(desk.get_by_role("tab", name="Log")).to_have_attribute("aria-selected", "true")
    expect(desk.get_by_role("link", name="Wait a week")).to_be_visible()
    Dispatch.objects.filter(pk=run.pk).delete()
    Run.objects.filter(pk=run.pk).update(state="succeeded", ended_at=timezone.now())
    expect(desk.locator("#run-head .state")).to_have_text("Succeeded")
    expect(desk.get_by_role("button", name="Cancel run")).to_have_count(0)
    assert desk.evaluate("window.stayed")


def test_updates_wait_while_somebody_types(desk, live_server):
    run = lead(state="attention")
    factories.attempt(run, DEAL, 1, 20, 22, "unknown", error="The worker was lost during the call.")
    wait = factories.wait(run, DEAL, "person", 52, data={"reason": "uncertain", "attempt": 1, "error": "The worker was lost."})
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_text("It happened", exact=True).click()
    field = desk.get_by_label("Output of the step")
    field.fill('{"id": ')
    factories.log(run, "Something else happened")
    expect(desk.locator("hf-live[data-held]")).to_have_count(1)
    expect(field).to_have_value('{"id": ')
    field.press_sequentially("7}")
    desk.get_by_role("button", name="Go on with this output").click()
    expect(desk.get_by_text("Noted that it happened.")).to_be_visible()
    wait.refresh_from_db()
    assert wait.outcome["output"] == {"id": 7}


def test_cancelling_asks_first_and_begins_on_the_safe_answer(desk, live_server):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("button", name="Cancel run").click()
    expect(desk.get_by_role("button", name="Keep running")).to_be_focused()
    desk.keyboard.press("Enter")
    run.refresh_from_db()
    assert run.state == "open"
    desk.get_by_role("button", name="Cancel run").click()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.locator("#run-head .state")).to_have_text("Cancelled")


def test_retrying_shows_what_it_repeats_and_begins_on_the_safe_answer(desk, live_server):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/{run.pk}/?step=qualify")
    desk.get_by_role("link", name="Retry from here").click()
    asked = desk.get_by_role("dialog", name="Retry from “Qualify lead”?")
    expect(asked.get_by_role("region", name="Outside, once more")).to_contain_text("new Idempotency-Key hf-")
    expect(asked.get_by_role("region", name="Runs again")).to_contain_text("Approve VIP outreach")
    expect(asked.get_by_role("button", name="Leave it")).to_be_focused()
    desk.keyboard.press("Enter")
    expect(asked).to_be_hidden()
    desk.get_by_role("link", name="Retry from here").click()
    asked.get_by_role("button", name="Retry from here").click()
    expect(desk.get_by_text("It runs again from here.")).to_be_visible()
    assert not StepResult.objects.filter(run_id=run.pk, superseded=False).exists()


def test_running_again_with_another_input(desk, live_server):
    run = lead(state="failed")
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("link", name="Re-run").click()
    asked = desk.get_by_role("dialog", name=f"Start run {run.pk:,} again?")
    asked.get_by_text("Edit the input").click()
    asked.get_by_label("Input").fill('{"body": {"company": "Other"}}')
    asked.get_by_role("button", name="Start a new run").click()
    expect(desk.get_by_text(f"Started again, after run {run.pk:,}.")).to_be_visible()
    assert Run.objects.get(rerun_of=run).input == {"body": {"company": "Other"}}


def test_a_failed_step_is_skipped_with_an_output(desk, live_server):
    run = lead(state="failed", error={"path": DEAL, "step": "deal", "name": "Create deal", "message": "503 Service Unavailable"})
    factories.attempt(run, DEAL, 1, 20, 21, "refused", error="503 Service Unavailable")
    factories.result(run, DEAL, 20, 21, "failed", error=run.error)
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("link", name="Skip with an output").first.click()
    asked = desk.get_by_role("dialog", name="Skip “Create deal in CRM”?")
    asked.get_by_label("Output of the step").fill('{"id": 7}')
    asked.get_by_role("button", name="Skip this step").click()
    expect(desk.get_by_text("Skipped. The run goes on with this output.")).to_be_visible()
    assert StepResult.objects.get(run_id=run.pk, path=DEAL, superseded=False).output == {"id": 7}


def test_a_delay_is_made_longer_and_woken(desk, live_server):
    run = lead()
    wait = factories.wait(run, TWO_DAYS, "timer", 5, due=2 * 86_400)
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_label("How much longer").select_option("1 week")
    desk.get_by_role("button", name="Wait longer").click()
    expect(desk.get_by_text("It waits longer.")).to_be_visible()
    before, _ = wait.due_at, wait.refresh_from_db()
    assert (wait.due_at - before).days == 7
    desk.get_by_role("button", name="Wake it now").click()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.get_by_text("Now it is. The run goes on.")).to_be_visible()


def test_force_fail_asks_first(desk, live_server):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    desk.get_by_role("button", name="More for this run").click()
    desk.get_by_role("button", name="Fail this run now").click()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.locator("#run-head .state")).to_have_text("Failed")


def test_chosen_runs_become_a_file_with_progress(desk, live_server):
    version = factories.version()
    runs = [factories.run(version, state="succeeded", title=f"T{n}") for n in range(3)]
    desk.goto(f"{live_server.url}/runs/")
    for run in runs[:2]:
        desk.get_by_label(f"Select run {run.pk:,}").check()
    desk.get_by_role("button", name="CSV").click()
    expect(desk.get_by_text("0 of 2 runs")).to_be_visible()
    jobs.work_off(lambda: False)
    with desk.expect_download() as got:
        desk.get_by_role("link", name="Download CSV").click()
    assert len(got.value.path().read_text().splitlines()) == 3
    assert got.value.suggested_filename.endswith(".csv")


def test_iterations_open_one_at_a_time_and_page_by_number(desk, live_server):
    run = lead(dispatch="claimed")
    factories.result(run, "hot/yes/meanwhile", 5, 6)
    factories.frame(run, "each", total=32, cursor=14, open=[13], succeeded=13)
    for index in range(13):
        factories.result(run, f"each[{index}]/add", 6 + index, 6.5 + index, output={"n": index})
    factories.attempt(run, "each[13]/add", 1, 30, None)
    desk.goto(f"{live_server.url}/runs/{run.pk}/")
    expect(desk.get_by_text("13 of 32", exact=True)).to_be_visible()
    expect(desk.get_by_label("Step: Register attendee")).to_be_visible()
    desk.get_by_role("link", name="Earlier iterations").click()
    desk.get_by_role("link", name="Open Iteration 3 of 32").click()
    desk.locator('tr[data-path="each[2]/add"]').get_by_role("link").click()
    desk.get_by_role("tab", name="Output").click()
    expect(desk.locator("#p-output").get_by_text('"n"')).to_be_visible()


def test_choosing_runs_holds_the_list_and_acts_on_those_chosen(desk, live_server):
    version = factories.version()
    failed = [factories.run(version, state="failed", title=f"T{n}") for n in range(3)]
    desk.goto(f"{live_server.url}/runs/?state=failed")
    desk.get_by_label(f"Select run {failed[0].pk:,}").check()
    desk.get_by_label(f"Select run {failed[1].pk:,}").check()
    expect(desk.get_by_text("2 selected")).to_be_visible()
    factories.run(version, state="failed", title="came later")
    expect(desk.locator("hf-live[data-held]")).to_have_count(1)
    desk.keyboard.press("Escape")
    expect(desk.get_by_text("came later")).to_be_visible()
    desk.get_by_label(f"Select run {failed[0].pk:,}").check()
    desk.get_by_role("button", name="Requeue 1").click()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.get_by_text("Requeued 1 run.")).to_be_visible()
    assert list(Run.objects.filter(state="open").values_list("pk", flat=True)) == [failed[0].pk]


def test_cancelling_chosen_runs_asks_first(desk, live_server):
    run = waiting()
    desk.goto(f"{live_server.url}/runs/")
    desk.get_by_label(f"Select run {run.pk:,}").check()
    desk.get_by_role("button", name="Cancel 1").click()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.get_by_text("Cancelled 1 run.")).to_be_visible()


def test_a_link_is_answered_on_a_phone_without_script(browser, live_server):
    """Also that the browser's withheld origin is accepted: the page sends no referrer, so the browser sends no origin."""
    run = waiting()
    recipient = factories.Recipient.objects.get(approval__run_id=run.pk, address="dana@example.com")
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    phone = context.new_page()
    phone.goto(f"{live_server.url}/a/{factories.token_of(recipient)}/")
    box = phone.get_by_role("button", name="Approve").bounding_box()
    assert box and box["y"] + box["height"] <= 844 and box["height"] >= 44
    phone.get_by_label("Comment").fill("Good fit. Mention the fleet plan.")
    phone.get_by_role("button", name="Approve").click()
    expect(phone.get_by_role("heading", name="You approved this")).to_be_visible()
    assert Decision.objects.get().comment == "Good fit. Mention the fleet plan."
    context.close()


def test_a_sent_mail_opens_wherever_its_row_is_pressed_and_its_run_by_its_link(desk, live_server):
    run = waiting()
    payload = {"to": ["dana@example.com"], "subject": "VIP?", "text": "Please answer"}
    mail = factories.mail(run, kind="email", path=APPROVE, state="sent", payload=payload, sent_at=timezone.now())
    desk.goto(f"{live_server.url}/operations/mail/")
    for cell in (0, 1):  # the link lies over both: where the browser sends the press is what counts
        desk.locator("tr.opens td").nth(cell).click(force=True)
        desk.wait_for_url(f"**/operations/mail/{mail.pk}/")
        desk.go_back()
    desk.locator(f'tr.opens a[href="/runs/{run.pk}/"]').click()
    desk.wait_for_url(f"**/runs/{run.pk}/**")


def test_a_mail_opens_in_a_frame_that_can_do_nothing_and_its_link_leads_on(desk, live_server):
    run = waiting()
    payload = {"to": ["dana@example.com"], "subject": "VIP?", "text": "Please answer", "details": [], "others": [], "policy": "any"}
    mail = factories.mail(run, kind="approval", path=APPROVE, state="sent", payload=payload, sent_at=timezone.now())
    desk.goto(f"{live_server.url}/operations/mail/{mail.pk}/")
    frame = desk.frame_locator("iframe")
    expect(frame.get_by_role("link", name="Review and answer")).to_be_visible()
    address = frame.get_by_role("link", name="Review and answer").get_attribute("href")
    assert "/a/" in address


PAGES = ("/runs/", "/runs/{run}/", "/runs/{run}/?step=trigger&tab=log", "/runs/{run}/?view=canvas", "/runs/{run}/retry/?step=qualify",
         "/runs/?state=failed&longer=5", "/operations/waits/", "/runs/{run}/step/?step=qualify", "/approvals/?all=1", "/approvals/{wait}/",
         "/operations/")  # fmt: skip


def test_runs_that_wait_ask_or_failed_are_accessible_and_fit(desk, live_server):
    """The pages that such runs fill; every page is visited in `test_every_page.py`."""
    factories.Membership.objects.update(role="admin")
    run = waiting()
    uncertain = lead(state="attention")
    factories.wait(uncertain, DEAL, "person", 52, data={"reason": "uncertain", "attempt": 1, "error": "lost"})
    failed = lead(state="failed", ended=182, error={"path": DEAL, "step": "deal", "name": "Create deal", "message": "503 Service Unavailable"})
    factories.mail(run)
    factories.worker()
    wait = factories.Wait.objects.get(run_id=run.pk, kind="approval")
    paths = [path.format(run=run.pk, wait=wait.pk) for path in PAGES] + [f"/runs/{uncertain.pk}/", f"/runs/{failed.pk}/"]
    wrong = []
    for path in paths:
        desk.set_viewport_size({"width": 1440, "height": 900})
        desk.goto(live_server.url + path)
        wrong += [f"{path} {barrier}" for barrier in barriers(desk)]
        for width in (1024, 390):
            desk.set_viewport_size({"width": width, "height": 844})
            wrong += [f"{path} overflows by {overflow(desk)} at {width}"] if overflow(desk) > 0 else []
    assert wrong == []
