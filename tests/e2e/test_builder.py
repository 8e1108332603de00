"""The builder in a real browser, by real gestures, under the content security policy that is served."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from builder import drafts
from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from runtime.definition import check, find
from runtime.models import Version
from tests.e2e.flows import builder, complaints, definition, drag, ines, lead, lift  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_lead_qualification_is_built_by_clicking_without_a_line_of_json(builder):
    builder.new_flow("Lead qualification")
    builder.trigger("Webhook", "New lead")
    sample = builder.field("config.sample")
    for key, value in (("email", "priya@halden.example"), ("company", "Halden Robotics")):
        sample.locator("[data-add-row]").click()
        row = sample.locator("[data-row]").last
        builder.write(row.get_by_label("Name"), key)
        builder.write(row.locator(".expr"), value)
    builder.add("Add a first step", "AI", "Qualify lead")
    builder.choose("Task", "Extract")
    with builder.saved():
        builder.field("config.prompt").locator(".expr").fill("Score this lead: ")
        builder.insert_data("trigger")
    builder.field("config.schema").locator("[data-add-row]").click()
    builder.fill("Name of the field", "score")
    builder.choose("Type", "Whole number")
    builder.add("Add a step before the end", "Condition", "Hot lead?")
    rule = builder.field("branches.0.when")
    rule.locator("[data-add-rule]").click()
    rule.get_by_role("textbox", name="Value to check").click()
    builder.insert_data("steps.qualify_lead.output.score")
    rule.get_by_label("Comparison").select_option(label="is greater than")
    builder.write(rule.get_by_role("textbox", name="Compare with"), "70")
    builder.add("Add a step at the start of the Yes lane", "Approval", "Approve VIP outreach")
    builder.rows("Approvers", "Add address", ["dana@example.com"])
    with builder.saved():
        builder.field("config.subject").locator(".expr").fill("VIP outreach to ")
        builder.insert_data("trigger.body.company")
    builder.add("Add a step after Approve VIP outreach", "API call", "Create deal")
    builder.choose("Method", "POST")
    builder.fill("Address", "https://crm.example/deals")
    body = builder.field("config.json")
    body.locator("[data-add-row]").click()
    row = body.locator("[data-row]").last
    row.get_by_label("Name").fill("contact")
    row.locator(".expr").click()
    with builder.saved():
        builder.insert_data("trigger.body.email")
    builder.tab("Safety & retries")
    builder.check("Safe to repeat")
    builder.add("Add a step at the start of the No lane", "Delay")
    builder.fill("Wait for", "2")
    builder.add("Add a step after Delay", "E-mail")
    builder.rows("To", "Add address", ["{{ trigger.body.email }}"])
    builder.fill("Subject", "Hello")
    builder.add("Add a step before the end", "Loop")
    builder.fill("For each of", "trigger.body.attendees")
    builder.add("Add a step at the start of Loop", "Set values")
    builder.fill("Name", "address", within=builder.field("config.values"))
    builder.fill("Value", "{{ loop.item }}", within=builder.field("config.values"))
    made = definition()
    assert [problem for problem in check(made) if not problem.warning] == []
    assert find(made, "hot_lead")["branches"][0]["when"] == "steps.qualify_lead.output.score > 70"
    assert find(made, "qualify_lead")["config"]["schema"]["properties"] == {"score": {"type": "integer"}}
    assert find(made, "qualify_lead")["config"]["prompt"] == "Score this lead: {{ trigger }}"
    assert find(made, "approve_vip_outreach")["config"]["subject"] == "VIP outreach to {{ trigger.body.company }}"
    assert find(made, "create_deal")["config"]["json"] == {"contact": "{{ trigger.body.email }}"}
    assert find(made, "create_deal")["on_interrupted"] == "repeat"
    assert find(made, "delay")["config"]["for"] == "2h"
    builder.publish("Built by hand")
    assert Version.objects.get().note == "Built by hand"


def test_a_press_from_before_the_page_was_ready_opens_the_step(builder, lead):
    held = []
    builder.page.route("**/js/canvas/view*.js", lambda route: held.append(route))
    with builder.page.expect_request("**/js/canvas/view*.js"):
        builder.page.goto(f"{builder.base}/flows/{lead.pk}/", wait_until="commit")
    builder.card("hot_lead").hover()
    builder.page.mouse.down()
    held[0].continue_()
    builder.page.wait_for_function("() => customElements.get('hf-canvas') !== undefined")
    builder.page.mouse.up()
    expect(builder.page.locator('#panel[data-owner="hot_lead"]')).to_be_visible()
    expect(builder.page.locator("#stage.is-placed")).to_be_visible()


def test_without_the_modules_a_step_is_a_link(builder, lead):
    builder.page.route("**/js/**", lambda route: route.fulfill(body="", content_type="text/javascript"))
    builder.page.goto(f"{builder.base}/flows/{lead.pk}/")
    builder.card("qualify").click()
    expect(builder.page).to_have_url(re.compile(r"\?step=qualify$"))
    expect(builder.page.locator('#panel[data-owner="qualify"]')).to_be_visible()


def test_a_step_is_dragged_to_another_lane_and_back_by_undo(builder, lead):
    builder.open(lead.pk)
    drag(builder.page, "#step-send_intro", "#node-nurture > .link .add")
    expect(builder.page.locator("#flow-hot_lead-no #step-send_intro")).to_be_visible()
    assert [step["id"] for step in find(definition(lead), "hot_lead")["branches"][1]["steps"]] == ["wait", "nurture", "send_intro"]
    with builder.saved():
        builder.page.keyboard.press("Control+z")
    expect(builder.page.locator("#flow-hot_lead-yes #step-send_intro")).to_be_visible()


def test_a_container_cannot_be_dropped_into_itself_and_escape_drops_nothing(builder, lead):
    builder.open(lead.pk)
    lift(builder.page, "#step-hot_lead", "#node-wait > .link .add")
    expect(builder.page.locator("#node-hot_lead .drop")).to_have_count(0)
    builder.page.mouse.up()
    lift(builder.page, "#step-send_intro", "#node-nurture > .link .add")
    expect(builder.page.locator(".drop")).to_have_count(1)
    builder.page.keyboard.press("Escape")
    builder.page.mouse.up()
    assert builder.revision == 1


def test_everything_goes_by_keyboard_alone(builder, lead):
    builder.open(lead.pk)
    press = builder.page.keyboard.press
    builder.name_of("qualify").focus()
    press("ArrowDown")
    expect(builder.name_of("hot_lead")).to_be_focused()
    press("ArrowDown")
    press("ArrowRight")
    expect(builder.name_of("wait")).to_be_focused()
    press("a")
    expect(builder.page.locator("#picker input")).to_be_focused()
    builder.page.keyboard.type("set val")
    with builder.saved():
        press("Enter")
    expect(builder.panel).to_have_attribute("data-owner", "set_values")
    press("Escape")
    expect(builder.panel).to_be_hidden()
    expect(builder.name_of("set_values")).to_be_focused()
    with builder.saved():
        press("Delete")
    expect(builder.card("set_values")).to_have_count(0)
    expect(builder.page.locator(".toast")).to_contain_text("Removed Set values")
    with builder.saved():
        press("Control+z")
    with builder.saved():
        press("Control+Shift+z")
    assert "set_values" not in builder.steps()
    builder.name_of("wait").focus()
    press("Enter")
    expect(builder.panel).to_have_attribute("data-owner", "wait")


def test_moving_by_menu_reaches_every_legal_place(builder, lead):
    builder.open(lead.pk)
    builder.menu("wait", "Move to…")
    targets = builder.page.locator(".add.is-target")
    assert targets.count() == builder.page.locator("#stage .add").count() - 2, "all but the two beside it"
    with builder.saved():
        builder.page.locator('.add[data-after="qualify"]').click()
    assert [step["id"] for step in definition(lead)["steps"]] == ["qualify", "wait", "hot_lead", "each_attendee"]


def test_problems_lead_to_their_field_and_their_repair_puts_them_right(builder, lead):
    builder.open(lead.pk)
    builder.select("Hot lead?")
    rule = builder.field("branches.0.when")
    with builder.saved():
        builder.write(rule.get_by_role("textbox", name="Value to check").first, "steps.qualify.output.labl")
    expect(builder.page.locator("#problems")).to_contain_text("Did you mean “label”?")
    expect(builder.page.locator("#publish")).to_have_attribute("data-show-problems", "")
    builder.page.keyboard.press("Escape")
    builder.page.locator("#publish").click()
    expect(builder.panel).to_have_attribute("data-owner", "hot_lead")
    with builder.saved():
        builder.page.locator("#problems").get_by_role("button", name="Use label").click()
    expect(builder.page.locator("#problems")).to_be_hidden()
    assert find(definition(lead), "hot_lead")["branches"][0]["when"].startswith('steps.qualify.output.label == "hot"')


def test_what_is_wrong_with_a_rule_stands_in_the_rule_until_it_is_right(builder, lead):
    builder.open(lead.pk)
    builder.select("Hot lead?")
    rules = builder.field("branches.0.when").locator("[data-row]")
    rule = builder.field("branches.0.when")
    rule.get_by_role("button", name="Add rule").click()
    with builder.saved():
        builder.write(rules.last.get_by_role("textbox", name="Value to check"), "trigger.body.email")
    with builder.saved():
        rules.last.get_by_role("combobox", name="Comparison").select_option("endsWith")
    expect(rules.last.locator(".err")).to_have_text(re.compile("has no value to compare with"))
    expect(rule.locator(".err")).to_have_count(1)
    value = rules.last.get_by_role("textbox", name="Compare with")
    expect(value).to_have_attribute("aria-invalid", "true")
    builder.page.keyboard.press("Escape")
    builder.page.locator("#problems").get_by_role("button", name="Go to field").click()
    expect(value).to_be_focused()
    with builder.saved():
        builder.write(value, "@gmail.com")
    expect(rule.locator(".err")).to_have_count(0)
    expect(value).not_to_have_attribute("aria-invalid", "true")


def test_what_is_wrong_with_one_value_of_a_body_stands_below_it(builder, lead):
    body = {"company": "Acme", "deal": {"amount": 1, "contact": "{{ steps.qualify.output.labl }}"}, "contact": "x"}
    drafts.edit(lead, {"op": "insert", "type": "http", "place": {"after": "qualify"}}, revision=1)
    drafts.edit(lead, {"op": "configure", "step": "api_call", "set": {"config.method": "POST", "config.json": body}}, revision=2)
    builder.open(lead.pk)
    builder.page.locator("#problems-list .problem").filter(has_text="labl").get_by_role("button", name="Go to field").click()
    row = builder.field("config.json").locator('[data-row][data-key="contact"][data-depth="1"]')
    expect(row.locator(".err")).to_contain_text("Did you mean “label”?")
    expect(row.locator(".expr")).to_be_focused()
    with builder.saved():
        row.get_by_role("button", name="Use label").click()
    expect(builder.field("config.json").locator(".err")).to_have_count(0)


def test_the_holidays_of_a_country_and_of_a_part_of_it_are_chosen(builder, lead):
    drafts.edit(lead, {"op": "configure", "step": "wait", "set": {"config.for": None, "config.business_days": 2}}, revision=1)
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    country = builder.field("config.calendar").get_by_role("combobox", name="Holidays of")
    with builder.saved():
        country.select_option("Germany")
    part = builder.field("config.calendar").get_by_role("combobox", name="Part of the country")
    expect(part).to_be_visible()
    expect(country).to_be_focused()
    with builder.saved():
        part.select_option("Bayern")
    assert find(definition(lead), "wait")["config"]["calendar"] == "DE-BY"


def test_what_may_not_be_there_gets_something_in_its_place_by_one_press(builder, lead):
    drafts.edit(lead, {"op": "configure", "step": "invite", "set": {"config.body": "{{ steps.approve_outreach.output.by }}"}}, revision=1)
    builder.open(lead.pk)
    problem = builder.page.locator("#problems-list .problem").filter(has_text="runs only in the lane Yes")
    with builder.saved():
        problem.get_by_role("button", name="Else use nothing").click()
    expect(problem).to_have_count(0)
    assert find(definition(lead), "invite")["config"]["body"] == '{{ steps.?approve_outreach.output.by.orValue("") }}'


def test_a_value_that_makes_no_sense_stays_in_its_field_unsaved_with_the_reason(builder, lead):
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    box = builder.field("config.for").locator("input")
    box.fill("soon")
    box.blur()
    expect(builder.field("config.for")).to_contain_text("is not a duration")
    expect(box).to_have_attribute("aria-invalid", "true")
    assert builder.revision == 1
    with builder.saved():
        box.fill("3")
        box.blur()
    expect(builder.field("config.for")).not_to_contain_text("is not a duration")


def test_fields_and_json_show_the_same_value(builder, lead):
    builder.open(lead.pk)
    builder.select("New lead")
    sample = builder.field("config.sample")
    with builder.saved():
        builder.write(sample.locator("[data-row]").nth(3).locator(".expr"), "481")
    sample.get_by_role("button", name="JSON").click()
    area = builder.field("config.sample").get_by_label("Sample body as JSON")
    expect(area).to_be_visible()
    value = json.loads(area.input_value())
    assert value["employees"] == 481 and list(value)[:3] == ["id", "company", "email"]
    with builder.saved():
        area.fill(json.dumps({"only": [1, {"deep": True}]}))
        area.blur()
    builder.field("config.sample").get_by_role("button", name="Fields").click()
    expect(builder.field("config.sample").locator("[data-row]")).to_have_count(4)


def test_steps_are_copied_into_another_flow(builder, lead, ines):
    other = make_flow(ensure_default_team(ines), "Other", user=ines)
    builder.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    builder.open(lead.pk)
    builder.name_of("hot_lead").focus()
    builder.page.keyboard.press("Control+c")
    builder.said("Copied Hot lead?")
    builder.open(other.pk)
    with builder.saved():
        builder.page.locator("hf-canvas").focus()
        builder.page.keyboard.press("Control+v")
    assert builder.steps() == ["hot_lead", "approve_outreach", "send_intro", "wait", "nurture"]


def test_the_view_keeps_its_place_when_steps_change(builder, lead):
    builder.open(lead.pk)
    stage = builder.page.locator("#stage")
    builder.page.locator("hf-canvas").hover(position={"x": 60, "y": 300})
    builder.page.mouse.wheel(0, 120)
    moved = stage.evaluate("stage => stage.style.getPropertyValue('--y')")
    assert moved != "0px"
    with builder.saved():
        builder.menu("wait", "Turn off")
    assert stage.evaluate("stage => stage.style.getPropertyValue('--y')") == moved
    builder.page.get_by_role("button", name="Zoom in").click()
    assert builder.page.locator("#zoom-level").inner_text() == "110%"
    builder.page.get_by_role("button", name="Fit the whole flow").click()
    expect(builder.card("new_lead")).to_be_in_viewport()


def test_one_step_is_tried_and_the_request_shown(builder, lead):
    builder.open(lead.pk)
    builder.page.set_viewport_size({"width": 1440, "height": 640})
    builder.select("Qualify lead")
    builder.page.locator("#tab-test").click()
    builder.page.get_by_role("button", name="Show the request").click()
    result = builder.page.locator("#test-result")
    expect(result).to_contain_text("Nothing was sent")
    expect(result).to_contain_text("classify")
    expect(result.locator(".json__bar")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [1024, 390])
def test_nothing_overflows_on_narrow_screens(builder, lead, width):
    page = builder.page
    page.set_viewport_size({"width": width, "height": 800})
    for address in ("/", f"/flows/{lead.pk}/", f"/flows/{lead.pk}/?step=hot_lead", f"/flows/{lead.pk}/?step=qualify&tab=safety", f"/flows/{lead.pk}/versions/"):
        page.goto(builder.base + address)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        wide = page.evaluate("[...document.querySelectorAll('#panel *, .topbar *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && e.offsetParent).map(e => e.outerHTML.slice(0, 80))")
        assert wide == [], address
