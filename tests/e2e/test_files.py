"""Files dragged onto the pages, and the page of examples, in a real browser."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from builder.examples import example
from runtime.models import Workflow
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def drop(page: Page, name: str, text: str, on: str) -> None:
    """What the browser does when somebody lets go of a file over the page."""
    data = page.evaluate_handle(
        """([name, text]) => {
            const data = new DataTransfer();
            data.items.add(new File([text], name, { type: "application/json" }));
            return data;
        }""",
        [name, text],
    )
    for event in ("dragover", "drop"):
        page.dispatch_event(on, event, {"dataTransfer": data})


def test_a_file_dropped_on_the_list_becomes_a_flow(builder, ines):  # noqa: F811
    builder.page.goto(f"{builder.base}/")
    drop(builder.page, "relay.json", json.dumps(example("webhook_relay")), "#flows-page")
    builder.ready()
    expect(builder.page.get_by_role("heading", name="Webhook relay")).to_be_visible()
    assert definition() == example("webhook_relay")


def test_a_file_dropped_on_the_builder_replaces_the_draft_after_a_question(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    drop(builder.page, "relay.json", json.dumps(example("webhook_relay")), "#board")
    dialog = builder.page.get_by_role("dialog", name="Take the flow of this file?")
    expect(dialog).to_contain_text("relay.json")
    dialog.get_by_role("button", name="Keep mine").click()
    assert builder.revision == 1
    drop(builder.page, "relay.json", json.dumps(example("webhook_relay")), "#board")
    with builder.saved():
        dialog.get_by_role("button", name="Replace the draft").click()
    expect(builder.card("pass_on")).to_be_visible()
    assert definition(lead) == {**example("webhook_relay"), "name": "Lead qualification"}
    with builder.saved():
        builder.page.keyboard.press("Control+z")
    expect(builder.card("hot_lead")).to_be_visible()
    assert definition(lead) == example("lead_qualification")


def test_copied_steps_are_pasted_and_another_file_changes_nothing(builder, lead):  # noqa: F811
    builder.page.clock.install()
    builder.open(lead.pk)
    drop(builder.page, "notes.json", '["nothing"]', "#board")
    expect(builder.page.locator(".toast")).to_contain_text("holds no flow")
    builder.page.clock.fast_forward("00:15")
    expect(builder.page.locator(".toast")).to_be_visible()  # why can still be read
    builder.page.clock.fast_forward("00:06")
    expect(builder.page.locator(".toast")).to_have_count(0)
    steps = {"holdfast": "steps", "steps": [{"id": "extra", "type": "delay", "config": {"for": "1h"}}]}
    with builder.saved():
        drop(builder.page, "steps.json", json.dumps(steps), "#board")
    assert "extra" in builder.steps()


def test_an_example_is_taken_from_the_page_of_all(builder, ines):  # noqa: F811
    builder.page.goto(f"{builder.base}/")
    builder.page.get_by_role("link", name="All 8 examples").click()
    builder.page.get_by_role("button", name="Use this: Data enrichment").click()
    builder.ready()
    assert Workflow.objects.get().name == "Data enrichment"
    expect(builder.page.locator("#publish")).to_have_text("Publish v1")
