"""Ctrl K on a page of the product."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.flows import builder, complaints, ines, lead  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_ctrl_k_goes_to_a_page_and_to_a_flow_without_the_mouse(builder, lead, complaints):  # noqa: F811
    page = builder.page
    builder.open(lead.pk)
    page.keyboard.press("Control+k")
    expect(page.locator("#jump-list")).to_contain_text("Operations")
    page.keyboard.type("operat")
    expect(page.locator("#jump-list .found")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Operations")
    page.keyboard.press("Control+k")
    page.keyboard.type(lead.name)
    expect(page.locator("#jump-list .found").first).to_have_attribute("aria-selected", "true")
    expect(page.locator("#jump-list .found").first).to_contain_text(lead.name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/flows/{lead.pk}/")
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.locator("#jump")).to_be_hidden()
    assert complaints == []
