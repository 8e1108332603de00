"""What is set in the panel beyond steps: the limits of a flow, a schedule in words, a pause with its reason. On a phone and on a
small screen, in both themes."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from runtime.models import Workflow
from runtime.publish import publish
from tests.e2e.axe import barriers
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

OUTSIDE = """[...document.querySelectorAll('.topbar *, .halted *, #panel *, .dialog[open] *')]
    .filter(e => e.offsetParent && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 90))"""
SIZES = pytest.mark.parametrize("width", [390, 1024])


@pytest.fixture
def narrow(builder, width):  # noqa: F811
    builder.page.set_viewport_size({"width": width, "height": 844})
    return builder


def sound(page) -> None:
    """Nothing is out of reach, and axe finds nothing in either theme."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and page.evaluate(OUTSIDE) == []
    assert barriers(page) == []


@SIZES
def test_limits_of_a_flow_are_set_in_its_settings(narrow, lead):  # noqa: F811
    page = narrow.page
    narrow.open(lead.pk)
    page.get_by_role("button", name="More about this flow").click()
    page.get_by_role("button", name="Settings of the flow").click()
    narrow.panel.get_by_text("More options").click()
    narrow.fill("Runs at a time", "3")
    narrow.fill("Runs are told apart by", "trigger.body.email")
    narrow.fill("Runs at a time for each", "1")
    narrow.fill("Starts in a minute", "60")
    narrow.field("limits.more").get_by_role("button", name="Drop").click()
    narrow.settled()
    narrow.panel.get_by_label("Runs that wait keep their slot").uncheck()
    narrow.settled()
    narrow.fill("Priority", "trigger.body.employees > 200 ? 5 : 0")
    narrow.duration("Longest run", "7", "d")
    assert definition(lead)["limits"] == {
        "at_most": 3, "key": "trigger.body.email", "per_key": 1, "per_minute": 60, "more": "drop", "waiting_holds": False,
        "priority": "trigger.body.employees > 200 ? 5 : 0", "max_age": "7d",
    }  # fmt: skip
    sound(page)
    narrow.fill("Runs at a time", "0")
    expect(narrow.field("limits.at_most").locator(".err")).to_be_visible()
    assert definition(lead)["limits"]["at_most"] == 3
    narrow.fill("Runs at a time", "")
    assert "at_most" not in definition(lead)["limits"]
    sound(page)


@SIZES
def test_a_schedule_is_written_in_words_and_tells_its_next_times(narrow, ines):  # noqa: F811
    clock = {"id": "clock", "type": "schedule", "config": {"cron": "0 8 * * 1-5", "zone": "Europe/Berlin"}}
    given = {"format": 1, "name": "Weekly", "triggers": [clock], "steps": []}
    flow = make_flow(ensure_default_team(ines), "Weekly", user=ines, definition=given)
    page = narrow.open(flow.pk).page
    page.locator('#stage .step[data-step="clock"] .step__name').click()
    times = narrow.panel.get_by_role("region", name="Next times")
    expect(times).to_contain_text("every weekday at 8:00")
    expect(times.get_by_role("listitem")).to_have_count(5)
    box = narrow.field("config.cron").get_by_role("textbox")
    narrow.write(box, "every Monday and Friday at 17:30")
    expect(times).to_contain_text("every Monday and Friday at 17:30")
    expect(times.get_by_role("listitem")).to_have_count(5)
    assert definition(flow)["triggers"][0]["config"]["cron"] == "30 17 * * 1,5"
    assert {line.split(" ")[0] for line in times.get_by_role("listitem").all_text_contents()} == {"Mon", "Fri"}
    sound(page)
    narrow.write(box, "every blue moon at 8")
    expect(narrow.field("config.cron").locator(".err")).to_contain_text("Write it in words")
    assert definition(flow)["triggers"][0]["config"]["cron"] == "30 17 * * 1,5"
    sound(page)


@SIZES
def test_a_pause_asks_why_and_its_pages_say_so(narrow, lead, ines):  # noqa: F811
    publish(lead, definition(lead), user=ines)
    page = narrow.open(lead.pk).page
    page.get_by_role("button", name="More about this flow").click()
    page.get_by_role("button", name="Pause: take no new runs").click()
    dialog = page.get_by_role("dialog", name="Pause Lead qualification?")
    dialog.get_by_role("button", name="Pause").click()
    expect(dialog).to_be_visible()  # a reason is asked for
    sound(page)
    dialog.get_by_label("Why?").fill("The CRM is down")
    dialog.get_by_role("button", name="Pause").click()
    line = page.get_by_text("Lead qualification is paused and takes no new runs: The CRM is down.")
    expect(line).to_be_visible()
    assert Workflow.objects.get(pk=lead.pk).paused_why == "The CRM is down"
    narrow.ready()
    sound(page)
    page.goto(f"{narrow.base}/flows/{lead.pk}/versions/")
    expect(line).to_be_visible()
    sound(page)
    page.get_by_role("button", name="Take new runs again").click()
    narrow.ready()
    expect(line).to_have_count(0)
    assert not Workflow.objects.get(pk=lead.pk).paused
