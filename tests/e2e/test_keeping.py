"""How long a flow's runs are kept, and who is told of failed ones, said where the flow's settings are."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from runtime.models import Alert
from tests.e2e.axe import barriers
from tests.e2e.flows import builder, complaints, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_administrator_says_how_long_runs_are_kept(builder, lead, complaints):  # noqa: F811
    page = builder.open(lead.pk).ready().page
    page.get_by_label("More about this flow").click()
    page.get_by_text("Settings of the flow").first.click()
    days = builder.panel.get_by_label("Finished runs are kept")
    days.fill("90")
    days.press("Tab")
    expect(builder.panel.get_by_text("Saved.")).to_be_visible()
    lead.refresh_from_db()
    assert lead.retention_days == 90
    days.fill("soon")
    days.press("Enter")
    expect(builder.panel.get_by_text("Write a whole number of days")).to_be_visible()
    told = builder.panel.get_by_label("Tell of failed runs")
    told.fill("ops@example.com")
    told.press("Tab")
    expect(builder.panel.get_by_text("Saved. One mail names the runs")).to_be_visible()
    assert Alert.objects.get().workflow == lead
    assert complaints == [] and barriers(page) == []
    lead.refresh_from_db()
    assert lead.retention_days == 90
