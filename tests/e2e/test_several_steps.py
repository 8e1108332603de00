"""Several steps at once: picked by mouse and keyboard, then moved, copied, wrapped, turned off and removed together."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from runtime.definition import find, walk
from tests.e2e.flows import builder, complaints, definition, drag, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def ids(steps):
    return [step["id"] for step in steps]


def shift_click(builder, *steps):  # noqa: F811
    for step in steps:
        builder.card(step).click(modifiers=["Shift"])


def test_steps_of_one_lane_are_picked_from_one_to_the_other_and_wrapped_together(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    shift_click(builder, "wait", "nurture")
    builder.said("2 steps picked")
    bar = builder.page.get_by_role("toolbar", name="Picked steps")
    expect(bar).to_contain_text("2 steps picked")
    bar.get_by_role("button", name="More actions").click()
    menu = builder.page.get_by_role("menu", name="Actions for 2 steps")
    expect(menu.get_by_role("menuitem", name="Change its id…")).to_be_hidden()
    with builder.saved():
        menu.get_by_role("menuitem", name="Wrap in a loop").click()
    [box] = find(definition(lead), "hot_lead")["branches"][1]["steps"]
    assert box["type"] == "loop" and ids(box["steps"]) == ["wait", "nurture"]
    with builder.saved():
        builder.menu(box["id"], "Take its steps out")
    assert ids(find(definition(lead), "hot_lead")["branches"][1]["steps"]) == ["wait", "nurture"]
    builder.said("Unwrap Loop")


def test_one_of_several_is_dragged_and_all_go_along(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    shift_click(builder, "approve_outreach", "nurture")
    with builder.saved():
        drag(builder.page, "#step-nurture", '#stage .add[data-after="qualify"]')
    made = definition(lead)
    assert ids(made["steps"]) == ["qualify", "approve_outreach", "nurture", "hot_lead", "each_attendee"]
    with builder.saved():
        builder.page.keyboard.press("Control+z")
    assert ids(definition(lead)["steps"]) == ["qualify", "hot_lead", "each_attendee"]


def test_by_keyboard_steps_are_picked_turned_off_duplicated_moved_and_removed(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    press = builder.page.keyboard.press
    builder.name_of("wait").focus()
    press("Shift+ArrowDown")
    builder.said("2 steps picked")
    with builder.saved():
        press("t")
    builder.said("Turn off 2 steps")
    assert all(find(definition(lead), step).get("off") for step in ("wait", "nurture"))
    with builder.saved():
        press("d")
    builder.said("Duplicate 2 steps")
    press("m")
    builder.said("Choose where to move 2 steps: Tab walks the places, Enter takes it there, Escape leaves it.")
    builder.page.locator('#stage .add[data-after="each_attendee"]').focus()
    with builder.saved():
        press("Enter")
    assert ids(definition(lead)["steps"]) == ["qualify", "hot_lead", "each_attendee", "wait_2", "nurture_2"]
    expect(builder.name_of("wait_2")).to_be_focused()
    with builder.saved():
        press("Delete")
    expect(builder.page.locator(".toast")).to_contain_text("Removed 2 steps")
    with builder.saved():
        builder.page.locator(".toast").get_by_role("button", name="Undo").click()
    assert find(definition(lead), "nurture_2")
    press("Control+a")
    builder.said("5 steps picked")
    press("Escape")
    builder.said("Nothing is picked")
    expect(builder.page.locator("#selection")).to_be_hidden()


def test_all_steps_of_a_lane_are_picked_first_and_those_of_the_flow_next(builder, lead):  # noqa: F811
    builder.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    builder.open(lead.pk)
    press = builder.page.keyboard.press
    builder.name_of("nurture").focus()
    press("Control+a")
    builder.said("2 steps picked")
    press("Control+c")
    builder.said("Copied 2 steps")
    with builder.saved():
        press("Delete")
    assert find(definition(lead), "hot_lead")["branches"][1]["steps"] == []
    builder.name_of("each_attendee").focus()
    with builder.saved():
        press("Control+v")
    builder.said("Paste 2 steps")
    assert ids(definition(lead)["steps"]) == ["qualify", "hot_lead", "each_attendee", "wait", "nurture"]
    press("Escape")
    builder.name_of("send_intro").focus()
    for said in ("2 steps picked", "5 steps picked", "2 steps picked"):
        press("Control+a")
        builder.said(said)
    press("Control+a")
    with builder.saved():
        press("Control+x")
    assert definition(lead)["steps"] == []
    with builder.saved():
        press("Control+v")
    assert ids(definition(lead)["steps"]) == ["qualify", "hot_lead", "each_attendee", "wait", "nurture"]


def test_several_steps_are_cut_here_and_pasted_into_another_flow(builder, lead, ines):  # noqa: F811
    other = make_flow(ensure_default_team(ines), "Other", user=ines)
    builder.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    builder.open(lead.pk)
    shift_click(builder, "wait", "nurture")
    with builder.saved():
        builder.page.keyboard.press("Control+x")
    assert find(definition(lead), "hot_lead")["branches"][1]["steps"] == []
    text = json.loads(builder.page.evaluate("navigator.clipboard.readText()"))
    assert text["holdfast"] == "steps" and ids(text["steps"]) == ["wait", "nurture"]
    builder.open(other.pk)
    builder.page.locator("hf-canvas").focus()
    with builder.saved():
        builder.page.keyboard.press("Control+v")
    builder.said("Paste 2 steps")
    assert ids(definition(other)["steps"]) == ["wait", "nurture"]


def test_a_step_that_is_added_lets_go_of_what_was_picked(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    shift_click(builder, "wait", "nurture")
    builder.page.locator('#stage .add[data-after="qualify"]').click()
    builder.pick("Delay")
    expect(builder.page.get_by_role("toolbar", name="Picked steps")).to_be_hidden()
    expect(builder.page.locator("#stage .is-picked")).to_have_count(0)


def test_steps_are_pasted_as_anybody_may_write_them(builder, lead):  # noqa: F811
    builder.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    builder.open(lead.pk)
    builder.name_of("qualify").focus()
    for written in ({"id": "wait", "type": "delay", "config": {"for": "1h"}}, [{"id": "a", "type": "set"}, {"id": "b", "type": "stop"}]):
        builder.page.evaluate("text => navigator.clipboard.writeText(text)", json.dumps(written))
        builder.name_of("qualify").focus()
        with builder.saved():
            builder.page.keyboard.press("Control+v")
    assert ids(walk(definition(lead)["steps"]))[:4] == ["qualify", "a", "b", "wait_2"]
    builder.page.evaluate("navigator.clipboard.writeText('just a word')")
    builder.page.keyboard.press("Escape")
    builder.name_of("qualify").focus()
    builder.page.keyboard.press("Control+v")
    expect(builder.page.locator(".toast")).to_contain_text("There is no copied step to paste.")
    for text, said in (('[{"id": "a",', "This is not whole JSON"), ('{"a": 1}', "This JSON holds no steps"), ('{"nodes": []}', "another product")):
        builder.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        builder.page.keyboard.press("Control+v")
        expect(builder.page.locator(".toast")).to_contain_text(said)
