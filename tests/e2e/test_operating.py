"""What operators do now and then, in a browser: alert rules, a callback by hand, many runs again, a step alone, a
pause."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from runtime.models import Alert, Pause, Run, Wait
from tests.builder import factories
from tests.e2e.axe import barriers, overflow
from tests.e2e.desk import complaints, confirm_and_work_off, desk, recent  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CENTS = {"cents": "{{ trigger.body.price * 100 }}"}
CALLED = {
    "format": 1,
    "name": "Orders",
    "steps": [
        {"id": "price", "type": "set", "name": "Price", "config": {"values": CENTS}},
        {"id": "paid", "type": "callback", "name": "Paid?", "config": {}},
    ],
}


def test_a_rule_is_made_and_removed(desk, live_server, complaints):
    desk.goto(f"{live_server.url}/operations/alerts/")
    desk.get_by_label("When").select_option("failed")
    desk.get_by_label("More than").fill("2")
    desk.get_by_label("Tell by mail").fill("")
    desk.get_by_role("button", name="Add the rule").click()
    expect(desk.get_by_text("Say whom to tell")).to_be_visible()
    desk.get_by_label("Tell by webhook").fill("https://hooks.example/in")
    desk.get_by_role("button", name="Add the rule").click()
    row = desk.get_by_role("row").filter(has_text="Runs that failed in the last hour")
    expect(row.get_by_text("https://hooks.example/in")).to_be_visible()
    expect(row.get_by_role("button", name="Copy its secret")).to_be_visible()
    assert Alert.objects.get().threshold == 2
    row.get_by_role("button", name="Remove this rule").click()
    expect(desk.get_by_text("No rules yet")).to_be_visible()
    complaints[:] = [text for text in complaints if "422" not in text]  # the browser's word on the form that was wrong


def test_a_callback_is_answered_by_hand(desk, live_server):
    run = factories.run(factories.version(CALLED))
    wait = factories.wait(run, "paid", "callback", 5)
    desk.goto(f"{live_server.url}/runs/{run.pk}/?step=paid")
    desk.get_by_text("Answer by hand").click()
    desk.get_by_label("What the other system would have sent").fill('{"paid": true}')
    desk.get_by_role("button", name="Go on with this").click()
    expect(desk.get_by_role("status").filter(has_text="by hand").first).to_be_visible()
    assert Wait.objects.get(pk=wait.pk).outcome["payload"] == {"paid": True}


def test_many_runs_start_again(desk, live_server):
    version = factories.version(CALLED)
    ended = [factories.run(version, state="succeeded", title=f"T{n}") for n in range(3)]
    desk.goto(f"{live_server.url}/runs/?state=succeeded")
    desk.get_by_label(f"Select run {ended[0].pk:,}").check()
    desk.get_by_label("Select all on this page").check()
    live = factories.version_after(version)
    desk.get_by_role("button", name="Re-run 3").click()
    expect(desk.get_by_text("3 runs start again.")).to_be_visible()
    expect(desk.get_by_label("Each on the one that is live now")).to_be_checked()
    assert barriers(desk) == []
    confirm_and_work_off(desk, 3)
    started = Run.objects.filter(state="open")
    assert {run.rerun_of_id for run in started} == {run.pk for run in ended} and {run.version for run in started} == {live}


def test_a_requeue_of_many_says_of_how_many_and_where_and_leaves_out_what_was_started_again(desk, live_server, complaints):
    version, error = factories.version(CALLED), {"path": "price", "step": "price", "message": "no"}
    failed = [factories.run(version, state="failed", title=f"T{n}", error=error) for n in range(3)]
    factories.run(version, state="succeeded", rerun_of=failed[0])
    desk.goto(f"{live_server.url}/runs/?state=failed")
    desk.get_by_label(f"Select run {failed[0].pk:,}").check()
    desk.get_by_label("Select all on this page").check()
    desk.get_by_role("button", name="Requeue 3").click()
    expect(desk.locator("dialog[open] [data-yes]")).to_have_text("Requeue 2")
    expect(desk.get_by_text("2 runs go on where they failed. 1 is left out")).to_be_visible()
    expect(desk.get_by_text("Orders · 2 runs")).to_be_visible()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.get_by_text("Requeued 2 runs. 1 was left out, since it was started again.")).to_be_visible()
    assert set(Run.objects.filter(state="open").values_list("pk", flat=True)) == {run.pk for run in failed[1:]}


def test_a_step_is_run_alone_from_its_menu(desk, live_server, complaints):
    run = factories.run(factories.version(CALLED), state="succeeded", input={"body": {"price": 2}})
    factories.result(run, "price", 0, 1, input={"values": {"cents": 200}}, output={"cents": 250})
    desk.goto(f"{live_server.url}/runs/{run.pk}/?step=price")
    desk.get_by_label("More for this step").click()
    desk.get_by_role("link", name="Run this step alone").click()
    expect(desk.get_by_text("Not what the run has stored.")).to_be_visible()
    expect(desk.get_by_label("Differences: output").get_by_text("250")).to_be_visible()
    desk.get_by_text("Run it for real").click()
    expect(desk.get_by_role("button", name="Run it, with its effects")).to_be_visible()
    desk.set_viewport_size({"width": 390, "height": 844})
    assert overflow(desk) <= 0 and barriers(desk) == []
    assert Run.objects.count() == 1


def test_all_work_is_paused_and_resumed(desk, live_server, complaints):
    get_user_model().objects.update(is_superuser=True)
    desk.goto(f"{live_server.url}/operations/")
    desk.get_by_role("button", name="Pause all work").click()
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.locator("dialog[open]")).to_be_visible()  # a reason is asked for
    assert not Pause.objects.exists() and barriers(desk) == []
    desk.get_by_label("Why?").fill("The CRM is down")
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.get_by_text("The CRM is down. New runs are kept")).to_be_visible()
    assert Pause.objects.exists()
    desk.set_viewport_size({"width": 390, "height": 844})
    assert overflow(desk) <= 0 and barriers(desk) == []
    desk.goto(f"{live_server.url}/flows/")
    desk.get_by_role("button", name="Resume all work").click()
    expect(desk.get_by_text("Work goes on.")).to_be_visible()
    assert not Pause.objects.exists()
