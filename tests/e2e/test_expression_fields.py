"""Expression fields in a real browser: completion while typing, `/`, the result at once, highlighted code."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from runtime.definition import find
from tests.e2e.axe import barriers
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401 - fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def popup(builder):  # noqa: F811
    return builder.page.locator("#complete")


def emptied(builder, lead, field: str):  # noqa: F811
    """An expression field of the mail, with nothing in it and the caret there."""
    builder.open(lead.pk)
    builder.select("Nurture")
    editor = builder.field(field).locator(".expr")
    editor.fill("")
    return editor


def test_a_path_is_completed_while_it_is_typed_and_becomes_a_pill(builder, lead, popup):  # noqa: F811
    subject = emptied(builder, lead, "config.subject")
    keys = builder.page.keyboard
    keys.type("Hello {{ comp")
    expect(popup.get_by_role("option").first).to_contain_text("trigger.body.company")
    expect(popup.get_by_role("option").first).to_contain_text("Halden Robotics")
    expect(subject).to_have_attribute("aria-activedescendant", "complete-0")
    keys.press("Enter")
    expect(popup).to_be_hidden()
    expect(subject.locator(".pill")).to_contain_text("Halden Robotics")
    keys.type(", a word")
    expect(builder.field("config.subject").locator(".result")).to_contain_text("Hello Halden Robotics, a word")
    with builder.saved():
        subject.blur()
    expect(builder.page.locator(".result")).to_have_count(0)
    assert find(definition(lead), "nurture")["config"]["subject"] == "Hello {{ trigger.body.company }}, a word"


def test_a_field_that_was_left_does_not_take_the_focus_back(builder, lead, popup):  # noqa: F811
    subject = emptied(builder, lead, "config.subject")
    keys = builder.page.keyboard
    keys.type("{{ comp")
    expect(popup.get_by_role("option").first).to_contain_text("trigger.body.company")
    with builder.saved():
        keys.press("Enter")  # saved, and the answer is taken while the field has the focus
    keys.type(", a word")
    with builder.saved():
        subject.blur()
    assert builder.page.evaluate("document.activeElement === document.body")


def test_an_answer_that_comes_while_more_is_typed_keeps_nothing_from_being_tried(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Nurture")
    subject = builder.field("config.subject").locator(".expr")
    held = []
    builder.page.route("**/try/", lambda route: route.continue_() if held else held.append(route))
    subject.fill("")
    keys = builder.page.keyboard
    keys.type("{{ 1 + 1 }} for ")
    while not held:
        builder.page.wait_for_timeout(10)
    keys.type("two")
    held[0].fulfill(json={"value": "2 for ", "type": "text"})
    expect(builder.field("config.subject").locator(".result")).to_contain_text("2 for two")


def test_a_slash_opens_the_data_at_the_caret(builder, lead, popup):  # noqa: F811
    body = emptied(builder, lead, "config.body")
    keys = builder.page.keyboard
    keys.type("For https://a.example/x: ")
    expect(popup).to_be_hidden()
    keys.type("/emp")
    expect(popup.get_by_role("option")).to_have_count(1)
    keys.press("Tab")
    keys.type(" people")
    with builder.saved():
        body.blur()
    assert find(definition(lead), "nurture")["config"]["body"] == "For https://a.example/x: {{ trigger.body.employees }} people"


def test_data_is_dragged_into_a_field(builder, lead):  # noqa: F811
    page = builder.open(lead.pk).page
    builder.select("Send intro")
    before = find(definition(lead), "send_intro")["config"]["subject"]
    row = builder.panel.locator('.tree__row[data-path="trigger.body.email"]')
    start, end = row.bounding_box(), builder.field("config.subject").locator(".expr").bounding_box()
    with builder.saved():
        page.mouse.move(start["x"] + 60, start["y"] + 8)
        page.mouse.down()
        page.mouse.move(start["x"] + 70, start["y"], steps=4)
        page.mouse.move(end["x"] + end["width"] - 12, end["y"] + 12, steps=8)
        page.mouse.up()
    assert find(definition(lead), "send_intro")["config"]["subject"] == before + "{{ trigger.body.email }}"


def test_what_was_typed_is_kept_whether_data_is_chosen_then_or_not(builder, lead):  # noqa: F811
    page = builder.open(lead.pk).page
    builder.select("Send intro")
    box = builder.field("config.subject").locator(".expr")
    box.fill("Hello ")
    for _ in range(2):
        builder.panel.locator('.tree__row[data-path="trigger"]').click()
    assert builder.revision == 1, "folding the tree does not end the typing"
    with builder.saved():
        builder.insert_data("trigger.body.email")
    assert find(definition(lead), "send_intro")["config"]["subject"].strip() == "Hello {{ trigger.body.email }}"
    box.fill("Only typed")
    builder.panel.locator('.tree__row[data-path="trigger"]').click()
    with builder.saved():
        page.keyboard.press("Escape")
    assert find(definition(lead), "send_intro")["config"]["subject"] == "Only typed"


def test_escape_leaves_what_was_typed_and_keeps_the_panel(builder, lead, popup):  # noqa: F811
    subject = emptied(builder, lead, "config.subject")
    builder.page.keyboard.type("/")
    expect(popup).to_be_visible()
    builder.page.keyboard.press("Escape")
    expect(popup).to_be_hidden()
    expect(builder.panel).to_be_visible()
    expect(subject).to_have_text("/")


def test_a_length_of_time_takes_data_too(builder, lead, popup):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    box = builder.field("config.for").locator("input")
    box.fill("")
    keys = builder.page.keyboard
    keys.type("/emp")
    expect(popup.get_by_role("option")).to_have_count(1)
    keys.press("Enter")
    keys.type("h")
    expect(box).to_have_value("{{ trigger.body.employees }}h")
    with builder.saved():
        box.blur()
    assert find(definition(lead), "wait")["config"]["for"] == "{{ trigger.body.employees }}h"
    box.fill("")
    keys.type("{{ trigger.body.emp")
    expect(popup.get_by_role("option").first).to_contain_text("trigger.body.employees")
    keys.press("Escape")
    box.fill("")
    with builder.saved():
        builder.insert_data("trigger.body.employees")
    expect(box).to_have_value("{{ trigger.body.employees }}")


def test_functions_are_offered_with_their_signature_and_what_they_do(builder, lead, popup):  # noqa: F811
    builder.open(lead.pk)
    builder.select("For each attendee")
    items = builder.field("config.items").locator(".expr")
    items.fill("")
    keys = builder.page.keyboard
    keys.type("trigger.body.attendees.fil")
    expect(popup.get_by_role("option")).to_have_count(1)
    expect(popup.get_by_role("option")).to_contain_text("list.filter(item, condition)")
    expect(popup.get_by_role("option")).to_contain_text("Only the items for which it is true.")
    keys.press("Enter")
    keys.type("one, true")
    result = builder.field("config.items").locator(".result")
    expect(result).to_contain_text("priya.raman@halden.example")
    expect(result).to_contain_text("list")
    with builder.saved():
        items.blur()
    assert find(definition(lead), "each_attendee")["config"]["items"] == "trigger.body.attendees.filter(one, true)"


def test_a_condition_as_an_expression_is_painted_completed_and_tried(builder, lead, popup):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Hot lead?")
    rule = builder.field("branches.0.when")
    rule.get_by_role("button", name="As expression").click()
    area = builder.field("branches.0.when").get_by_label("Expression")
    area.click()
    keys = builder.page.keyboard
    keys.press("Control+a")
    keys.type('size(trigger.body.comp')
    expect(popup.get_by_role("option").first).to_contain_text("trigger.body.company")
    keys.press("Enter")
    keys.type(') > 3 && trigger.body.employees + "x"')
    place = builder.field("branches.0.when")
    expect(place.locator("pre .code__call")).to_have_text("size")
    expect(place.locator("pre .code__number")).to_have_text("3")
    expect(place.locator("pre .code__text")).to_have_text('"x"')
    expect(place.locator(".result--wrong")).to_contain_text("column")
    for _ in range(len(' && trigger.body.employees + "x"')):
        keys.press("Backspace")
    expect(place.locator(".result")).to_contain_text("true")
    with builder.saved():
        area.blur()
    assert find(definition(lead), "hot_lead")["branches"][0]["when"] == "size(trigger.body.company) > 3"


def test_json_is_painted_and_axe_finds_nothing_while_suggestions_are_open(builder, lead, popup):  # noqa: F811
    builder.open(lead.pk)
    builder.select("New lead")
    builder.field("config.sample").get_by_role("button", name="JSON").click()
    place = builder.field("config.sample")
    expect(place.locator("pre .code__key").first).to_have_text('"id"')
    expect(place.locator("pre .code__number").first).to_be_visible()
    text = place.locator("pre").evaluate("pre => pre.textContent")
    assert text.removesuffix("\n") == place.locator("textarea").input_value()
    builder.select("Nurture")
    builder.field("config.subject").locator(".expr").fill("/")
    expect(popup).to_be_visible()
    assert barriers(builder.page) == []


def test_rules_are_put_into_a_group_and_shown_so_again(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Hot lead?")
    rule = builder.field("branches.0.when")
    rule.get_by_role("button", name="Add group").click()
    for number, (path, value) in enumerate((("trigger.body.company", "Halden"), ("trigger.body.email", "halden.example"))):
        if number:
            rule.get_by_role("button", name="Add a rule to this group").click()
        rule.get_by_role("textbox", name="Value to check").last.click()
        builder.insert_data(path)
        builder.choose("Comparison", "contains", rule)
        builder.write(rule.get_by_role("textbox", name="Compare with").last, value)
    words = rule.locator(".cond__and").all_text_contents()
    assert words == ["and", "and", "or"]
    saved = find(definition(lead), "hot_lead")["branches"][0]["when"]
    assert saved.endswith('&& (trigger.body.company.contains("Halden") || trigger.body.email.contains("halden.example"))')
    builder.select("Nurture")
    builder.select("Hot lead?")
    assert builder.field("branches.0.when").locator(".cond__and").all_text_contents() == words
    builder.press("any")
    assert builder.field("branches.0.when").locator(".cond__and").all_text_contents() == ["or", "or", "and"]
    saved = find(definition(lead), "hot_lead")["branches"][0]["when"]
    assert '|| (trigger.body.company.contains("Halden") && ' in saved
    builder.field("branches.0.when").get_by_role("button", name="As expression").click()
    expect(builder.field("branches.0.when").get_by_label("Expression")).to_have_value(saved)
    builder.field("branches.0.when").get_by_role("button", name="As rules").click()
    expect(builder.field("branches.0.when").locator(".cond__row:visible")).to_have_count(4)


@pytest.mark.parametrize("box", [("nurture", "config.subject"), ("values", "config.values")])
def test_a_pill_that_is_pressed_puts_the_caret_beside_it(builder, ines, box):  # noqa: F811
    step, field = box
    steps = [
        {"id": "values", "type": "set", "config": {"values": {"email": "{{ trigger.body.email }}"}}},
        {"id": "nurture", "type": "email", "config": {"to": ["dana@example.com"], "subject": "A {{ trigger.body.email }} B {{ trigger.body.email }}"}},
    ]
    hook = {"id": "hook", "type": "webhook", "config": {"sample": {"email": "priya@halden.example"}}}
    given = {"format": 1, "name": "Pills", "triggers": [hook], "steps": steps}
    flow = make_flow(ensure_default_team(ines), "Pills", user=ines, definition=given)
    builder.open(flow.pk)
    builder.name_of(step).click()
    editor = builder.field(field).locator(".expr").first
    pill = editor.locator(".pill").last
    for x, words in ((1, "<"), (-2, ">")):
        pill.click(position={"x": x if x > 0 else pill.bounding_box()["width"] + x, "y": 8})
        expect(editor).to_be_focused()
        builder.page.keyboard.type(words)
    with builder.saved():
        builder.page.keyboard.press("Tab")
    made = find(definition(flow), step)["config"]
    assert (made.get("subject") or made["values"]["email"]).endswith("<{{ trigger.body.email }}>")
    pill.click()
    builder.page.keyboard.press("Control+a")
    with builder.saved():
        builder.page.keyboard.type("all")
        builder.page.keyboard.press("Tab")
    made = find(definition(flow), step)["config"]
    assert (made.get("subject") or made["values"]["email"]) == "all"


def test_a_spelling_from_elsewhere_is_put_right_where_it_was_typed(builder, lead):  # noqa: F811
    """One that cannot be read stays in the field, unsaved; one press makes it what it was meant to be, and saves it."""
    builder.open(lead.pk)
    builder.select("For each attendee")
    items = builder.field("config.items")
    builder.write(items.locator(".expr"), "body.attendees")
    expect(items.locator(".err")).to_contain_text("here it is trigger.body")
    builder.write(items.locator(".expr"), "$json.attendees")
    expect(items.locator(".err")).to_contain_text("Names have no $ here")
    assert find(definition(lead), "each_attendee")["config"]["items"] == "body.attendees"
    with builder.saved():
        items.get_by_role("button", name="Use trigger.body.attendees").click()
    expect(items.locator(".err")).to_have_count(0)
    assert find(definition(lead), "each_attendee")["config"]["items"] == "trigger.body.attendees"
