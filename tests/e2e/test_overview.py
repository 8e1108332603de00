"""Keeping the overview of a large flow: collapsed containers and finding a step."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from tests.e2e.axe import barriers
from tests.e2e.flows import builder, complaints, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_container_is_collapsed_and_stays_so_after_a_reload(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.card("hot_lead").hover()
    with builder.page.expect_response("**/fold/"):
        builder.page.get_by_role("button", name="4 steps inside Hot lead?").click()
    builder.said("Collapsed Hot lead?")
    expect(builder.card("nurture")).to_be_hidden()
    builder.name_of("each_attendee").focus()
    with builder.page.expect_response("**/fold/"):
        builder.page.keyboard.press("c")
    expect(builder.card("invite")).to_be_hidden()
    builder.open(lead.pk)
    expect(builder.card("nurture")).to_be_hidden()
    expect(builder.card("hot_lead")).to_contain_text("4 steps hidden")
    builder.name_of("qualify").focus()
    for step in ("hot_lead", "each_attendee"):  # the arrows pass over what is hidden
        builder.page.keyboard.press("ArrowDown")
        expect(builder.name_of(step)).to_be_focused()
    with builder.page.expect_response("**/fold/"):
        builder.page.keyboard.press("c")
    builder.said("Expanded For each attendee")


def test_what_is_wrong_inside_is_told_outside_and_leads_in(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.name_of("hot_lead").focus()
    builder.page.keyboard.press("c")
    builder.page.locator('#stage .add[data-after="qualify"]').click()
    builder.pick("Condition")
    builder.page.keyboard.press("Escape")
    with builder.saved():
        builder.menu("hot_lead", "Duplicate")
    builder.name_of("hot_lead_2").focus()
    builder.page.keyboard.press("c")
    builder.select("Qualify lead")
    with builder.saved():
        builder.menu("qualify", "Turn off")
    expect(builder.card("hot_lead_2")).to_contain_text("with a problem")
    builder.page.keyboard.press("F8")
    for _ in range(builder.page.locator("#problems-list .problem").count()):
        builder.page.keyboard.press("F8")
    expect(builder.card("approve_outreach_2")).to_be_visible()


def test_a_step_is_found_by_what_stands_in_its_settings_even_where_it_is_collapsed(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.name_of("each_attendee").focus()
    builder.page.keyboard.press("c")
    builder.page.keyboard.press("Control+f")
    builder.page.keyboard.type("webinar")
    match = builder.page.get_by_role("listbox", name="Steps that match").get_by_role("option")
    expect(match).to_have_count(1)
    expect(match).to_contain_text("Invite attendee")
    builder.said("1 step found")
    expect(builder.card("invite")).to_be_visible()
    assert barriers(builder.page) == []
    builder.page.keyboard.press("Enter")
    expect(builder.page.get_by_role("complementary", name="Settings: Invite attendee")).to_be_visible()
    expect(builder.field("config.subject").locator(".expr")).to_be_focused()
    builder.page.keyboard.press("Control+f")
    builder.page.keyboard.type("no such thing")
    expect(builder.page.locator("#find-list")).to_contain_text("No step has “no such thing”")
    builder.page.keyboard.press("Escape")
    expect(builder.page.locator("#find")).to_be_hidden()


def test_a_flow_too_tall_to_be_read_as_a_whole_begins_at_its_beginning_and_any_step_is_near(builder, ines):  # noqa: F811
    steps = [{"id": f"s{n}", "type": "set", "name": f"Step {n}", "config": {"values": {"n": n}}} for n in range(40)]
    flow = make_flow(ensure_default_team(ines), "Tall", user=ines, definition={"format": 1, "name": "Tall", "triggers": [], "steps": steps})
    builder.open(flow.pk)
    level = builder.page.locator("#zoom-level")
    expect(level).to_have_text("100%")
    expect(builder.card("s0")).to_be_in_viewport()
    builder.page.keyboard.press("0")
    expect(builder.card("s39")).to_be_in_viewport(ratio=1)
    builder.card("s30").click()
    expect(level).to_have_text("100%")
    expect(builder.card("s30")).to_be_in_viewport(ratio=1)
    expect(builder.card("s0")).not_to_be_in_viewport()
    builder.page.keyboard.press("Control+f")
    every = builder.page.get_by_role("listbox", name="Steps that match").get_by_role("option")
    expect(every).to_have_count(40)
    expect(every.and_(builder.page.locator("[aria-selected=true]"))).to_contain_text("Step 30")
    builder.page.keyboard.press("ArrowDown")
    builder.page.keyboard.press("Enter")
    expect(builder.page.get_by_role("complementary", name="Settings: Step 31")).to_be_visible()
