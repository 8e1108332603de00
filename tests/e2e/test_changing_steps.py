"""Changing what a step is: its type, its id with everything that speaks of it, its note; and the marks on its card."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from runtime.definition import find
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_step_becomes_one_of_another_type_by_keyboard(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.name_of("nurture").focus()
    builder.page.keyboard.press("r")
    expect(builder.page.get_by_role("dialog", name="Change the type of Nurture")).to_be_visible()
    builder.page.keyboard.type("approval")
    with builder.saved():
        builder.page.keyboard.press("Enter")
    builder.said("Make Nurture an Approval")
    step = find(definition(lead), "nurture")
    assert (step["type"], step["name"]) == ("approval", "Nurture")
    expect(builder.page.get_by_role("complementary", name="Settings: Nurture")).to_contain_text("Approval")


def test_what_was_added_lately_is_offered_first_in_its_own_list(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.page.locator('.add[data-after="qualify"]').click()
    expect(builder.page.locator('[data-category="recent"]')).to_be_hidden()
    builder.pick("Delay")
    builder.page.keyboard.press("Escape")
    builder.page.locator('.add[data-after="qualify"]').click()
    builder.page.locator('[data-category="recent"]').click()
    expect(builder.page.locator(".pick:visible b")).to_have_text(["Delay"])


def test_another_id_shows_what_it_rewrites_before_it_does(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.menu("qualify", "Change its id…")
    dialog = builder.page.get_by_role("dialog", name="Change the id of this step")
    field = dialog.get_by_role("textbox")
    field.fill("Hot lead")
    expect(dialog.get_by_role("status")).to_contain_text("Try “hot_lead”")
    field.fill("hot_lead")
    expect(dialog.get_by_role("status")).to_contain_text("The id “hot_lead” is taken")
    field.fill("rating")
    preview = dialog.get_by_role("status")
    expect(preview).to_contain_text("It is rewritten where it is used:")
    expect(preview).to_contain_text("Hot lead?")
    expect(preview.locator("del").first).to_contain_text("steps.qualify.output")
    expect(preview.locator("ins").first).to_contain_text("steps.rating.output")
    with builder.saved():
        field.press("Enter")
    made = definition(lead)
    assert find(made, "qualify") is None and "steps.rating.output" in find(made, "hot_lead")["branches"][0]["when"]
    expect(builder.page.locator("#problems")).to_be_hidden()
    with builder.saved():
        builder.page.keyboard.press("Control+z")
    assert find(definition(lead), "qualify")


def test_a_note_and_the_number_of_attempts_stand_on_the_card(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.name_of("nurture").focus()
    builder.page.keyboard.press("n")
    dialog = builder.page.get_by_role("dialog", name="Note on Nurture")
    dialog.get_by_role("textbox").fill("Dana wrote the text")
    with builder.saved():
        dialog.get_by_role("button", name="Keep the note").click()
    expect(builder.card("nurture")).to_contain_text("Note: Dana wrote the text")
    builder.select("Qualify lead")
    builder.tab("Safety & retries")
    with builder.saved():
        builder.fill("Attempts", "7")
    expect(builder.card("qualify")).to_contain_text("Up to 7 attempts")
    builder.page.keyboard.press("Escape")
    builder.name_of("nurture").focus()
    builder.page.keyboard.press("n")
    with builder.saved():
        dialog.get_by_role("textbox").fill("")
        dialog.get_by_role("button", name="Keep the note").click()
    assert "note" not in find(definition(lead), "nurture")


def test_a_new_step_comes_empty_and_says_what_it_needs(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    for kind, empty, wanted in (
        ("E-mail", {"Subject": "Thank you, {{ trigger.body.name }}", "To": "name@example.com"}, 2),
        ("API call", {"Address": "https://crm.example/deals"}, 1),
        ("Set values", {"Value": "a value, or / for data"}, 1),
    ):
        builder.page.locator('.add[data-after="qualify"]').click()
        builder.pick(kind)
        for label, placeholder in empty.items():
            box = builder.panel.get_by_role("textbox", name=label, exact=True).and_(builder.panel.locator(".expr"))
            expect(box).to_have_text("")
            expect(box).to_have_attribute("data-placeholder", placeholder)
        expect(builder.panel.get_by_text("This is missing: fill it in.")).to_have_count(wanted)
    builder.page.get_by_role("button", name=re.compile("^Publish v")).click()
    expect(builder.page.get_by_role("dialog")).to_have_count(0)
    expect(builder.page.get_by_role("region", name="Problems")).to_contain_text("Fix these to publish")


def test_the_first_press_on_a_new_flow_opens_the_picker_and_nothing_else(builder):  # noqa: F811
    builder.new_flow("First")
    start = builder.page.get_by_role("button", name="Choose what starts it")
    before = start.bounding_box()
    start.get_by_text("Choose what starts it").click()
    picker = builder.page.get_by_role("dialog", name="Choose what starts the flow")
    expect(picker).to_be_visible()
    builder.page.evaluate("new Promise(requestAnimationFrame)")
    expect(builder.panel).to_be_hidden()
    assert start.bounding_box() == before
    box, bar = picker.bounding_box(), builder.page.get_by_role("button", name="Test run").bounding_box()
    assert box["y"] > bar["y"] + bar["height"] and box["x"] > before["x"] + before["width"]
    assert before["y"] < box["y"] + box["height"]


def test_a_flow_that_people_start_has_a_button_for_it_once_it_is_live(builder):  # noqa: F811
    builder.new_flow("By hand")
    builder.trigger("Manual")
    run = builder.page.get_by_role("button", name="Run now", exact=True)
    expect(run).to_have_count(0)
    builder.add("Add a first step", "Delay")
    builder.publish()
    builder.ready()
    run.click()
    expect(builder.page.get_by_role("dialog")).to_be_visible()
    builder.page.keyboard.press("Escape")
    builder.page.get_by_role("button", name="More about this flow").click()
    colours = builder.page.locator("#flow-menu .menu__item:not(.menu__item--danger)").evaluate_all(
        "items => [...new Set(items.map(one => getComputedStyle(one).color + getComputedStyle(one).fontSize))]"
    )
    assert len(colours) == 1
