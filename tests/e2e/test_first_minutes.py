"""A newcomer's first minutes: no mail server, no AI provider, nothing set up. An example flow is sent the event that it
shows, and the mail that asks for approval is read and answered inside the product."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.builder_page import BuilderPage
from tests.e2e.people import post, sees_state, sign_in
from tests.e2e.stack import eventually

pytestmark = pytest.mark.browser


def test_from_the_example_flow_to_a_decided_approval(starting, ines: Page) -> None:
    sign_in(ines, starting())

    ines.get_by_role("link", name="Lead qualification").first.click()
    flow = BuilderPage(ines).ready()
    flow.select("New lead")
    address = flow.panel.get_by_label("Address of the webhook").input_value()
    run = post(address, sample_of(flow))

    open_mail(ines, "VIP outreach to Halden Robotics?")
    with ines.expect_popup() as opened:
        ines.frame_locator("iframe").get_by_role("link", name="Review and answer").click()
    approval = opened.value
    approval.get_by_role("button", name="Approve").click()
    expect(approval.get_by_role("heading", name=re.compile("^You approved this"))).to_be_visible()

    ines.goto(run["url"])
    sees_state(ines, "Succeeded")
    ines.get_by_role("link", name="Operations").click()
    ines.get_by_role("link", name="Sent mail").first.click()
    for subject in ("Your demo, Halden Robotics", "Our webinar"):
        expect(ines.get_by_role("link", name=subject).first).to_be_visible()


def sample_of(flow: BuilderPage) -> dict:
    """The body that the trigger shows as an example of what is sent to it."""
    sample = flow.group("Sample body")
    sample.get_by_role("button", name="JSON", exact=True).click()
    return json.loads(sample.get_by_label("Sample body as JSON").input_value())


def open_mail(page: Page, subject: str) -> None:
    """Once it is there: the list of mails does not follow by itself."""
    page.get_by_role("link", name="Operations").click()
    page.get_by_role("link", name="Sent mail").first.click()
    mail = page.get_by_role("link", name=subject).first

    def listed() -> bool:
        page.reload()
        return mail.is_visible()

    eventually(listed, f"the mail “{subject}” is listed")
    mail.click()
