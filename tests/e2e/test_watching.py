"""A page that is open learns what others do to its draft, and shows it without a reload."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from builder import drafts
from builder.teams import ensure_default_team
from runtime.models import Membership
from tests.e2e.flows import builder, complaints, ines, lead, signed_in  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def turn_off(flow, step, user, revision):
    drafts.edit(flow, {"op": "toggle", "step": step}, revision=revision, user=user)


def test_the_second_sees_who_moved_the_draft_and_how_and_brings_it_in(builder, lead):  # noqa: F811
    dana = get_user_model().objects.create_user("dana", first_name="Dana")
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    builder.page.evaluate("window.sameOne = true")
    turn_off(lead, "nurture", dana, 1)
    notice = builder.page.get_by_role("alert", name="The draft has changed")
    expect(notice).to_contain_text("Dana changed this flow")
    notice.get_by_text("1 step differs").click()
    expect(notice).to_contain_text("Nurture")
    turn_off(lead, "qualify", dana, 2)
    expect(notice).to_contain_text("2 steps differ")
    builder.select("New lead")  # the notice lies over no step at the top
    builder.select("Wait 2 days")
    notice.get_by_role("button", name="Show it as it is now").click()
    builder.said("The canvas shows the draft as it is now")
    for step in ("nurture", "qualify"):
        expect(builder.card(step)).to_contain_text("Off · skipped in runs")
    expect(notice).to_have_count(0)
    assert builder.revision == 3 and builder.page.evaluate("window.sameOne")
    expect(builder.page.get_by_role("complementary", name="Settings: Wait 2 days")).to_be_visible()
    with builder.saved():
        builder.menu("send_intro", "Duplicate")


def test_ones_own_other_tab_is_told_as_that(builder, lead, ines):  # noqa: F811
    builder.open(lead.pk)
    turn_off(lead, "nurture", ines, 1)
    expect(builder.page.get_by_role("alert", name="The draft has changed")).to_contain_text("You changed this flow")


def test_who_only_looks_is_taken_along(page, live_server, lead, ines):  # noqa: F811
    viewer = get_user_model().objects.create_user("vera", first_name="Vera")
    Membership.objects.create(user=viewer, team=ensure_default_team(ines), role="viewer")
    complaints_ = []
    looking = signed_in(page, live_server, viewer, complaints_).open(lead.pk)
    turn_off(lead, "nurture", ines, 1)
    expect(looking.card("nurture")).to_contain_text("Off · skipped in runs")
    assert looking.page.locator("#stage [data-menu]").count() == 0 and complaints_ == []
