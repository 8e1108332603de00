"""Parts of a page are swapped while somebody works on it: zoom and pan, picks, focus, the open panel and what is being typed
stay as they are."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from builder import drafts
from builder.teams import ensure_default_team
from runtime.definition import find
from runtime.models import Membership
from tests.e2e.flows import builder, complaints, definition, ines, lead, signed_in  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def at(place):
    """Where something is drawn, to the pixel: {x, y, width, height}."""
    return pytest.approx(place.bounding_box(), abs=1.5)


def hold_back(page):
    """The next edit waits on its way until the test lets it go on."""
    held = []
    page.route("**/edit/", lambda route: route.continue_() if held else held.append(route))
    return held


def let_go(page, held):
    """The edit that is held goes on, as soon as it is held."""
    while not held:
        page.evaluate("0")
    held[0].continue_()


def zoomed(builder):  # noqa: F811
    """Smaller than fit would show it, and elsewhere."""
    builder.page.get_by_role("button", name="Zoom out").click()
    builder.page.locator("hf-canvas").hover(position={"x": 40, "y": 300})
    builder.page.mouse.wheel(15, 20)


def test_one_s_own_edits_neither_zoom_nor_move_what_is_seen(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Qualify lead")
    zoomed(builder)
    before = at(builder.card("hot_lead"))
    with builder.saved():
        builder.menu("approve_outreach", "Wrap in a loop")  # the flow is wider than it was
    with builder.saved():
        builder.menu("send_intro", "Duplicate")
    with builder.saved():
        builder.menu("send_intro_2", "Remove")
    with builder.saved():
        builder.page.keyboard.press("Control+z")
    assert builder.page.locator("#zoom-level").inner_text() == "90%"
    assert builder.card("hot_lead").bounding_box() == before


def test_a_flow_that_is_shown_as_a_whole_is_not_zoomed_by_an_edit_either(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Nurture")
    level, before = builder.page.locator("#zoom-level").inner_text(), at(builder.card("wait"))
    for step in ("qualify", "each_attendee"):
        with builder.saved():
            builder.menu(step, "Turn off")
    assert builder.card("wait").bounding_box() == before
    with builder.saved():
        builder.menu("each_attendee", "Duplicate")
    expect(builder.card("each_attendee_2")).to_be_in_viewport()
    assert builder.page.locator("#zoom-level").inner_text() == level


def test_the_view_outlives_a_reload_until_the_whole_flow_is_asked_for(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    fitted = at(builder.card("qualify"))
    zoomed(builder)
    before = at(builder.card("qualify"))
    builder.open(lead.pk)
    assert builder.card("qualify").bounding_box() == before
    builder.page.get_by_role("button", name="Fit the whole flow").click()
    builder.open(lead.pk)
    assert builder.card("qualify").bounding_box() == fitted


def test_the_second_tab_s_edits_are_brought_in_without_moving_anything(builder, lead, ines):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    zoomed(builder)
    builder.card("nurture").click(modifiers=["Shift"])
    before = at(builder.card("new_lead"))
    drafts.edit(lead, {"op": "insert", "type": "delay", "place": {"parent": "", "lane": "", "index": 0}}, revision=1, user=ines)
    drafts.edit(lead, {"op": "wrap", "step": "nurture", "type": "condition"}, revision=2, user=ines)
    builder.page.get_by_role("button", name="Show it as it is now").click()
    builder.said("The canvas shows the draft as it is now")
    assert builder.page.locator("#zoom-level").inner_text() == "90%"
    assert builder.card("new_lead").bounding_box() == before
    expect(builder.page.locator("#stage .step.is-picked")).to_have_count(2)
    expect(builder.panel).to_have_attribute("data-owner", "wait")
    expect(builder.name_of("wait")).to_be_focused()


def test_who_only_looks_keeps_place_and_focus_while_others_edit(page, live_server, lead, ines):  # noqa: F811
    vera = get_user_model().objects.create_user("vera", first_name="Vera")
    Membership.objects.create(user=vera, team=ensure_default_team(ines), role="viewer")
    looking = signed_in(page, live_server, vera, []).open(lead.pk)
    zoomed(looking)
    looking.name_of("nurture").focus()
    before = at(looking.card("hot_lead"))
    drafts.edit(lead, {"op": "toggle", "step": "nurture"}, revision=1, user=ines)
    expect(looking.card("nurture")).to_contain_text("Off · skipped in runs")
    drafts.edit(lead, {"op": "wrap", "step": "send_intro", "type": "condition"}, revision=2, user=ines)
    expect(page.locator("#stage .step")).to_have_count(len(looking.steps()))
    expect(looking.page.locator("#board")).to_have_attribute("data-revision", "3")
    assert looking.card("hot_lead").bounding_box() == before
    expect(looking.name_of("nurture")).to_be_focused()


def test_what_is_being_typed_survives_an_answer_that_renews_the_panel(builder, lead):  # noqa: F811
    """Another method changes which fields there are; its answer comes while the address is being typed."""
    builder.open(lead.pk)
    builder.page.locator('.add[data-after="qualify"]').click()
    builder.pick("API call")
    held = hold_back(builder.page)
    with builder.page.expect_request("**/edit/"):
        builder.panel.get_by_role("combobox", name="Method").select_option("POST")
    address = builder.panel.get_by_role("textbox", name="Address", exact=True)
    address.fill("")
    builder.page.keyboard.type("https://crm.example/de")
    held[0].continue_()
    expect(builder.field("config.json")).to_be_visible()
    builder.page.keyboard.type("als")
    assert address.inner_text() == "https://crm.example/deals"
    with builder.saved():
        builder.page.keyboard.press("Tab")
    config = find(definition(lead), "api_call")["config"]
    assert config["method"] == "POST" and config["url"] == "https://crm.example/deals"


def test_a_step_that_is_opened_is_not_covered_by_the_answer_to_an_edit_of_the_one_before(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    held = hold_back(builder.page)
    builder.field("config.for").locator("input").fill("5")
    with builder.page.expect_request("**/edit/"):
        builder.card("qualify").click()
    held[0].continue_()
    expect(builder.panel).to_have_attribute("data-owner", "qualify")
    builder.settled()
    expect(builder.panel).to_have_attribute("data-owner", "qualify")
    assert find(definition(lead), "wait")["config"]["for"] == "5d"


def test_more_options_and_the_data_stay_unfolded_when_the_panel_is_renewed(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.page.locator('.add[data-after="qualify"]').click()
    builder.pick("API call")
    more = builder.panel.get_by_text("More options")
    more.click()
    run = builder.panel.locator('.tree__node:has(> [data-path="run"])')
    run.locator("> .tree__row").click()
    expect(run).to_have_attribute("aria-expanded", "true")
    with builder.saved():
        builder.choose("Method", "POST")
    expect(builder.field("config.json")).to_be_visible()
    expect(builder.field("note")).to_be_visible()
    expect(run).to_have_attribute("aria-expanded", "true")


def test_a_collapsed_container_that_was_opened_for_a_look_stays_open_through_edits(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.name_of("hot_lead").focus()
    builder.page.keyboard.press("c")
    builder.page.keyboard.press("Control+f")
    builder.page.keyboard.type("Nurture")
    builder.page.keyboard.press("Enter")
    expect(builder.panel).to_have_attribute("data-owner", "nurture")
    builder.page.get_by_role("button", name="Close panel").click()
    drafts.edit(lead, {"op": "rename", "step": "hot_lead", "id": "hot"}, revision=1)
    drafts.edit(lead, {"op": "rename", "step": "hot", "id": "hot_lead"}, revision=2)
    drafts.edit(lead, {"op": "configure", "step": "hot_lead", "set": {"name": "Hot?"}}, revision=3)
    builder.page.get_by_role("button", name="Show it as it is now").click()
    expect(builder.card("hot_lead")).to_contain_text("Hot?")
    expect(builder.card("nurture")).to_be_visible()


def test_sample_data_that_changes_lets_go_of_nothing(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    builder.card("nurture").click(modifiers=["Shift"])
    builder.panel.get_by_role("button", name=re.compile("^sample")).click()
    dialog = builder.page.get_by_role("dialog")
    dialog.get_by_label(re.compile("payload", re.IGNORECASE)).first.check()
    dialog.locator("textarea").fill('{"email": "a@b.example"}')
    dialog.get_by_role("button", name=re.compile("^Use")).click()
    expect(dialog).to_be_hidden()
    expect(builder.panel).to_contain_text("a@b.example")
    expect(builder.page.locator("#stage .step.is-picked")).to_have_count(2)
    expect(builder.card("wait")).to_have_class(re.compile("is-selected"))


@pytest.mark.parametrize("moved", [False, True], ids=["fitted", "moved"])
def test_the_flow_is_where_it_was_after_a_panel_was_open(builder, lead, moved):  # noqa: F811
    """Narrow enough that the open panel would cover the right lane."""
    builder.page.set_viewport_size({"width": 1100, "height": 900})
    builder.open(lead.pk)
    if moved:
        builder.page.locator("hf-canvas").hover(position={"x": 20, "y": 500})
        builder.page.mouse.wheel(-60, 30)
    before = at(builder.card("nurture"))
    for step in ("nurture", "new_lead", "nurture"):
        builder.card(step).locator(".step__name").click()
        expect(builder.panel).to_have_attribute("data-owner", step)
        expect(builder.card(step)).to_be_in_viewport(ratio=0.99)
    builder.page.get_by_role("button", name="Close panel").click()
    expect(builder.panel).to_be_hidden()
    builder.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert builder.card("nurture").bounding_box() == before


def test_after_an_edit_the_flow_is_in_the_middle_when_the_panel_has_closed(builder, lead):  # noqa: F811
    builder.page.set_viewport_size({"width": 1100, "height": 900})
    builder.open(lead.pk)
    builder.card("nurture").locator(".step__name").click()
    with builder.saved():
        builder.menu("nurture", "Duplicate")
    builder.page.get_by_role("button", name="Close panel").click()
    expect(builder.panel).to_be_hidden()
    builder.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    stage, canvas = builder.page.locator("#stage").bounding_box(), builder.page.locator("hf-canvas").bounding_box()
    assert stage["x"] + stage["width"] / 2 == pytest.approx(canvas["x"] + canvas["width"] / 2, abs=1.5)


def test_a_field_that_is_shown_as_json_stays_so_when_the_panel_is_renewed(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("New lead")
    field = builder.field("config.sample")
    field.get_by_role("button", name="JSON").click()
    area = field.get_by_role("textbox", name="Sample body as JSON")
    expect(area).to_be_visible()
    with builder.saved():
        area.fill('{"email": "p@h.example"}')
        builder.field("name").locator("input").focus()
    with builder.saved():
        builder.menu("wait", "Turn off")  # its answer renews the panel
    expect(area).to_have_value(re.compile(r'"email"'))
    builder.select("Nurture")
    builder.select("New lead")
    expect(area).to_be_visible()
