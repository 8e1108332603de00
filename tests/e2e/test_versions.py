"""From the draft to a version and back: publishing with a note, comparing on two canvases, restoring, going live, going offline."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from builder import drafts
from runtime.definition import find
from runtime.models import Workflow
from tests.builder import factories
from tests.e2e.axe import barriers
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_draft_is_tried_on_finished_runs_before_it_is_published(builder, lead, ines):  # noqa: F811
    page = builder.page
    builder.open(lead.pk)
    builder.publish()
    version = Workflow.objects.get(pk=lead.pk).live_version
    body = {"email": "priya@halden.example", "employees": 480, "message": "A demo, please", "attendees": []}
    runs = [factories.run(version, state="succeeded", title=f"Lead {number}", input={"body": body}) for number in (1, 2)]
    factories.result(runs[0], "qualify", 0, 1, output={"label": "hot", "score": 0.9, "reason": "A demo"})
    changed = definition(lead)
    find(changed, "hot_lead")["branches"][0]["when"] = "false"
    drafts.save(lead, changed, revision=None, user=ines, label="Nothing is hot")
    builder.open(lead.pk)
    page.get_by_role("button", name="Publish v2").click()
    page.get_by_role("dialog").get_by_role("link", name="Try the draft on finished runs").click()
    expect(page.get_by_role("status").filter(has_text="2 of 2 runs of v1 on Draft")).to_be_visible()
    told = page.get_by_role("list", name="Runs that would go another way").get_by_role("listitem").filter(has_text="Lead 1")
    expect(told.first).to_contain_text("Hot lead? takes another lane")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_flow_is_published_compared_restored_and_taken_offline(builder, lead):  # noqa: F811
    page = builder.page
    builder.open(lead.pk)
    builder.publish("The first one")
    expect(page.get_by_role("button", name="Published")).to_be_visible()
    with builder.saved():
        builder.menu("nurture", "Remove")
    with builder.saved():
        builder.menu("wait", "Turn off")
    page.get_by_role("button", name="Publish v2").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Publish v2"))
    expect(dialog).to_contain_text("2 changes since v1")
    expect(dialog).to_contain_text("No run is in flight")
    dialog.get_by_role("link", name="See them side by side").click()
    left, right = page.get_by_role("region", name="v1"), page.get_by_role("region", name="Draft")
    expect(left.locator('[data-step="nurture"] .step__mark')).to_have_text("Removed")
    expect(right.locator('[data-step="nurture"]')).to_have_count(0)
    expect(right.locator('[data-step="wait"] .step__mark')).to_have_text("Edited")
    page.get_by_role("complementary", name="Changes").get_by_role("button", name="Wait 2 days").click()
    for side in (left, right):
        expect(side.locator('[data-step="wait"].is-selected')).to_be_in_viewport()
    builder.said("Shown in v1 and Draft")
    assert barriers(page) == []
    page.get_by_label("To", exact=True).select_option("v1 (live)")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("complementary", name="Changes")).to_contain_text("are the same")

    builder.open(lead.pk)
    builder.publish("Without the newsletter")
    page.get_by_role("link", name="Versions").click()
    first = page.get_by_role("row").filter(has_text="The first one")
    expect(first).to_contain_text("Ines Carvalho")
    first.get_by_role("button", name="Go live").click()
    page.get_by_role("dialog", name="Go live with v1?").get_by_role("button", name="Go live").click()
    expect(page.get_by_text("v1 is live: new runs start on it")).to_be_visible()
    first.get_by_role("button", name="Restore as draft").click()
    builder.ready()
    assert find(definition(lead), "nurture")
    expect(page.get_by_role("button", name="Published")).to_be_visible()
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("button", name="Take offline").click()
    page.get_by_role("dialog").get_by_role("button", name="Take offline").click()
    expect(page.get_by_text("is offline. Runs in flight go on.")).to_be_visible()
    assert Workflow.objects.get(pk=lead.pk).live_version is None
