"""Trying a draft out in the browser, with real workers: samples, pins, runs to a step that are watched on the canvas."""

from __future__ import annotations

import json
import re
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from playwright.sync_api import Page, expect

from builder import drafts, samples
from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from builder.testruns import start_test
from runtime.models import Run, StepResult
from tests.e2e.axe import barriers
from tests.e2e.flows import builder, complaints, ines, lead  # noqa: F401 - fixtures
from tests.runtime.conftest import engine, zygote  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FLOW = {
    "format": 1, "name": "Orders",
    "triggers": [{"id": "order", "type": "webhook", "name": "Order", "config": {"sample": {"id": 7, "price": 10}}}],
    "steps": [
        {"id": "total", "type": "set", "name": "Total", "config": {"values": {"sum": "{{ trigger.body.price * 2 }}"}}},
        {"id": "large", "type": "condition", "name": "Large?", "branches": [
            {"id": "yes", "label": "Yes", "when": "steps.total.output.sum > 100", "steps": [
                {"id": "thanks", "type": "set", "name": "Thanks", "config": {"values": {"text": "Thank you for {{ steps.total.output.sum }}"}}}]},
            {"id": "no", "label": "No", "steps": [{"id": "small", "type": "set", "name": "Small", "config": {"values": {"x": 1}}}]}]},
        {"id": "last", "type": "set", "name": "Last", "config": {"values": {"done": True}}},
    ],
}  # fmt: skip


@pytest.fixture
def flow(ines):  # noqa: F811
    return make_flow(ensure_default_team(ines), "Orders", user=ines, definition=FLOW)


def test_a_run_to_a_step_is_watched_on_the_canvas_and_pins_take_the_place_of_steps(
    builder, flow, engine, complaints  # noqa: F811
):
    engine.worker()
    builder.open(flow.pk)
    builder.select("Total")
    builder.tab("Test")
    details = builder.panel.locator(".pin details")
    details.locator("summary").click()
    area = details.get_by_label("Output as JSON")
    area.fill('{"sum": 500')
    details.get_by_role("button", name="Pin it").click()
    expect(details.get_by_role("alert")).to_be_visible()
    complaints[:] = [one for one in complaints if "422" not in one]  # the browser's word for what was refused
    area.fill('{"sum": 500}')
    details.get_by_role("button", name="Pin it").click()
    expect(builder.card("total").get_by_title("Its output is pinned for tests")).to_be_visible()
    expect(builder.panel.get_by_role("button", name="Unpin")).to_be_visible()
    builder.menu("thanks", "Test run to here")
    dialog = builder.page.get_by_role("dialog", name=re.compile("to “Thanks”"))
    expect(dialog).to_contain_text("Pinned, and so not run: Total.")
    dialog.get_by_role("button", name="Start test run").click()
    bar = builder.page.get_by_role("region", name="Test run")
    expect(bar).to_contain_text("Succeeded")
    expect(builder.card("thanks").locator(".step__ran")).to_have_text("Succeeded")
    expect(builder.card("small").locator(".step__ran")).to_have_text("Skipped")
    expect(builder.card("last").locator(".step__ran")).to_have_count(0)
    run = Run.objects.get()
    assert run.test and StepResult.objects.get(run_id=run.pk, step="thanks").output == {"text": "Thank you for 500"}
    assert not StepResult.objects.filter(run_id=run.pk, step="last").exists()
    builder.select("Thanks")
    builder.tab("Test")
    expect(builder.panel.locator(".pin")).to_contain_text("Thank you for 500")
    bar.get_by_role("button", name="Stop showing the test run").click()
    expect(builder.page.locator(".step__ran")).to_have_count(0)
    builder.page.goto(f"{builder.base}/runs/")
    expect(builder.page.get_by_text(re.compile(rf"Run {run.pk}\b"))).to_have_count(0)
    builder.page.goto(f"{builder.base}/runs/{run.pk}/")
    builder.page.get_by_role("link", name="Try on the draft").click()
    again = builder.page.get_by_role("dialog", name="Test run of the draft")
    expect(again.get_by_label("With the input of")).to_have_value(str(run.pk))
    again.get_by_role("button", name="Start test run").click()
    expect(builder.card("last").locator(".step__ran")).to_have_text("Succeeded")
    assert drafts.load(flow).revision == 1, "nothing of this edits the draft"


def test_what_failed_in_a_test_is_told_at_the_step_with_the_way_to_its_field(builder, flow, engine):  # noqa: F811
    engine.worker()
    steps = [{"id": "total", "type": "set", "name": "Total", "config": {"values": {"sum": "{{ trigger.body.nothing }}"}}}]
    drafts.save(flow, {**FLOW, "steps": steps}, revision=None)
    builder.open(flow.pk)
    builder.page.get_by_role("button", name="Test run").click()
    builder.page.get_by_role("dialog").get_by_role("button", name="Start test run").click()
    bar = builder.page.get_by_role("region", name="Test run")
    bar.get_by_role("button", name="Total: `trigger.body` has no field `nothing`").click()
    expect(builder.panel.get_by_role("tab", name="Test")).to_have_attribute("aria-selected", "true")
    data, fold = builder.panel.get_by_role("tree"), builder.panel.get_by_role("button", name="Data from earlier steps")
    expect(data).to_be_hidden()  # in this tab from the start
    builder.panel.get_by_role("button", name="Go to Values: sum").click()
    expect(builder.panel.get_by_role("tab", name="Setup")).to_have_attribute("aria-selected", "true")
    expect(builder.field("config.values").locator(".expr")).to_be_focused()
    expect(data).to_be_visible()
    fold.click()
    expect(data).to_be_hidden()
    builder.page.keyboard.press("Escape")
    builder.name_of("total").click()
    expect(builder.panel.locator("#test-live")).to_contain_text("has no field `nothing`")
    builder.tab("Setup")
    expect(data).to_be_hidden()  # as it was left
    bar.get_by_role("link", name="Open").click()
    builder.page.get_by_role("link", name="“Values: sum” of this step in the flow").click()
    expect(builder.field("config.values").locator(".expr")).to_be_focused()


def test_a_pasted_payload_shows_in_every_pill(builder, flow):  # noqa: F811
    builder.open(flow.pk)
    builder.select("Total")
    builder.panel.locator(".data__source").click()
    dialog = builder.page.get_by_role("dialog", name="Sample data")
    area = dialog.get_by_label("Payload as JSON")
    area.fill('{"id": 8, "price": 75}')
    expect(dialog.get_by_role("radio", name="A payload that I paste")).to_be_checked()
    dialog.get_by_role("button", name="Use it").click()
    expect(dialog).to_have_count(0)
    expect(builder.panel.locator('.tree__row[data-path="trigger.body.price"]')).to_contain_text("75")
    box = builder.field("config.values").locator(".expr").first
    box.click()
    expect(builder.field("config.values").locator(".result")).to_contain_text("150")


def test_the_next_call_to_the_test_address_becomes_the_sample(builder, flow):  # noqa: F811
    builder.open(flow.pk)
    builder.select("Total")
    builder.panel.locator(".data__source").click()
    builder.page.get_by_role("button", name="Listen for one webhook call").click()
    dialog = builder.page.get_by_role("dialog", name="Listening for one call")
    address = dialog.get_by_role("textbox", name="Test address").input_value()
    path = address[address.index("/hooks/") :]
    call = Request(builder.base + path, json.dumps({"price": 33}).encode(), {"Content-Type": "application/json"})
    with build_opener(ProxyHandler({})).open(call, timeout=30) as answer:
        assert json.load(answer) == {"sample": True}
    came = builder.page.get_by_role("dialog", name="A call came")
    expect(came).to_contain_text("33")
    came.get_by_role("button", name="Done").click()
    expect(builder.panel.locator('.tree__row[data-path="trigger.body.price"]')).to_contain_text("33")
    builder.panel.locator(".data__source").click()
    builder.page.get_by_role("button", name="Listen for one webhook call").click()
    builder.page.get_by_role("button", name="Stop listening").click()
    expect(builder.page.get_by_role("dialog", name="Sample data")).to_be_visible()
    assert not Run.objects.exists()


def test_what_is_for_trying_out_has_no_barriers_and_fits_on_narrow_screens(builder, flow):  # noqa: F811
    page = builder.page
    samples.pin(flow, "total", {"sum": 1}, user=None)
    started = start_test(flow, FLOW, trigger_key="order", input={"body": {}}, user=None).run_id
    page.goto(f"{builder.base}/flows/examples/")
    assert barriers(page) == [] and fits(page)
    page.goto(f"{builder.base}/flows/{flow.pk}/?step=total&tab=test")
    builder.ready()
    page.evaluate("run => htmx.ajax('GET', `${location.pathname}test/watch/?run=${run}`, { target: '#test-bar', swap: 'outerHTML' })", started)
    expect(page.get_by_role("region", name="Test run")).to_be_visible()
    assert barriers(page) == [] and fits(page)
    page.locator(".data__source").click()
    expect(page.get_by_role("dialog", name="Sample data")).to_be_visible()
    assert barriers(page) == [] and fits(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Run to here").click()
    expect(page.get_by_role("dialog", name="Test run of the draft")).to_be_visible()
    assert barriers(page) == [] and fits(page)


def fits(page: Page) -> bool:
    """Nothing goes beyond the right edge, on a narrow desktop and on a phone."""
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 800})
        if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            return False
    page.set_viewport_size({"width": 1440, "height": 900})
    return True
