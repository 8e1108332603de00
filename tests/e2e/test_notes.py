"""Free notes on the canvas: written in place, beside a step or at the top, moved and removed, by mouse and by keyboard."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from builder import drafts
from tests.e2e.axe import barriers, overflow
from tests.e2e.flows import builder, complaints, definition, drag, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LONG = "Ask Dana before this changes:\nthe CRM takes no deal twice.\n\nhttps://wiki.example/leads/how-we-qualify-them"


def noted(lead, *notes):  # noqa: F811
    """The flow with these notes, as {text: beside}."""
    for revision, (text, beside) in enumerate(notes, start=1):
        drafts.edit(lead, {"op": "add_note", "text": text, "beside": beside}, revision=revision)


def notes(flow):
    return [(note["text"], note.get("beside", "")) for note in definition(flow).get("notes", [])]


def test_by_mouse_a_note_is_added_written_dragged_and_removed(builder, lead):  # noqa: F811
    page = builder.open(lead.pk).page
    before = definition(lead)
    builder.menu("qualify", "Note beside it")
    area = page.get_by_role("textbox", name="Note beside Qualify lead")
    expect(area).to_be_focused()
    page.keyboard.type("Ask Dana\nfirst")
    with builder.saved():
        page.mouse.click(300, 700)
    assert notes(lead) == [("Ask Dana\nfirst", "qualify")]
    note = page.get_by_role("note", name="Note beside Qualify lead")
    paper, card = note.bounding_box(), builder.card("qualify").bounding_box()
    assert paper["x"] + paper["width"] <= card["x"] and paper["y"] == pytest.approx(card["y"], abs=2)
    note.dblclick()
    page.keyboard.press("Control+a")
    page.keyboard.type("Ask Lee")
    with builder.saved():
        page.mouse.click(300, 700)
    expect(note).to_contain_text("Ask Lee")
    with builder.saved():
        drag(page, "#stage .paper", "#step-nurture")
    assert notes(lead) == [("Ask Lee", "nurture")]
    note = page.get_by_role("note", name="Note beside Nurture")
    note.click(button="right")
    with builder.saved():
        page.get_by_role("menuitem", name="Remove").click()
    assert definition(lead) == before
    with builder.saved():
        page.get_by_role("button", name="Undo", exact=True).click()
    expect(note).to_contain_text("Ask Lee")


def test_by_keyboard_a_note_is_added_written_moved_and_removed(builder, lead):  # noqa: F811
    page = builder.open(lead.pk).page
    keys = page.keyboard
    page.locator("hf-canvas").focus()
    keys.press("n")
    keys.type("How leads are qualified")  # at once: none of it is a key of the canvas
    with builder.saved():
        keys.press("Control+Enter")
    top = page.get_by_role("note", name="Note at the top")
    expect(top).to_be_focused()
    keys.press("Enter")
    keys.type(" and more")
    keys.press("Escape")
    expect(top).to_be_focused()
    assert notes(lead) == [("How leads are qualified", "")]
    builder.name_of("wait").focus()
    revision = builder.revision
    keys.press("Shift+N")
    expect(page.get_by_role("textbox", name="Note beside Wait 2 days")).to_be_focused()
    keys.press("Escape")  # a note without text is none
    expect(builder.name_of("wait")).to_be_focused()
    expect(page.locator("#stage .paper")).to_have_count(1)
    assert builder.revision == revision
    top.focus()
    keys.press("m")
    dialog = page.get_by_role("dialog", name="Move the note")
    expect(dialog.get_by_label("Beside")).to_be_focused()
    keys.type("Hot lead?")
    keys.press("Tab")
    keys.press("Tab")
    with builder.saved():
        keys.press("Enter")
    note = page.get_by_role("note", name="Note beside Hot lead?")
    expect(note).to_be_focused()
    steps = builder.steps()
    with builder.saved():
        keys.press("Delete")
    assert notes(lead) == [] and builder.steps() == steps, "the key was for the note, and not for a step"
    with builder.saved():
        keys.press("Control+z")
    assert notes(lead) == [("How leads are qualified", "hot_lead")]


def test_a_note_follows_its_step_and_what_is_being_written_outlives_an_answer(builder, lead, ines):  # noqa: F811
    noted(lead, ("Two days are enough", "wait"))
    page = builder.open(lead.pk).page
    page.get_by_role("note", name="Note beside Wait 2 days").dblclick()
    page.keyboard.press("End")
    page.keyboard.type(", says Dana")
    drafts.edit(lead, {"op": "rename", "step": "wait", "id": "pause"}, revision=2, user=ines)
    page.get_by_role("button", name="Show it as it is now").dispatch_event("click")
    builder.said("The canvas shows the draft as it is now")
    area = page.get_by_role("textbox", name="Note beside Wait 2 days")
    expect(area).to_be_focused()
    expect(area).to_have_value("Two days are enough, says Dana")
    page.keyboard.type(".")
    with builder.saved():
        page.keyboard.press("Control+Enter")
    assert notes(lead) == [("Two days are enough, says Dana.", "pause")]
    with builder.saved():
        builder.menu("pause", "Remove")
    assert notes(lead) == [("Two days are enough, says Dana.", "hot_lead")]
    expect(page.get_by_role("note", name="Note beside Hot lead?")).to_be_visible()


def test_a_note_comes_from_the_picker_and_from_the_canvas_menu(builder, lead):  # noqa: F811
    page = builder.open(lead.pk).page
    page.locator('.add[data-after="qualify"]').click()
    page.get_by_role("dialog").get_by_role("button", name="Note").click()
    page.keyboard.type("From the picker")
    with builder.saved():
        page.keyboard.press("Control+Enter")
    page.locator("hf-canvas").click(button="right", position={"x": 30, "y": 300})
    page.get_by_role("menuitem", name="Add a note").click()
    page.keyboard.type("From the canvas")
    with builder.saved():
        page.keyboard.press("Control+Enter")
    assert notes(lead) == [("From the picker", "qualify"), ("From the canvas", "")]


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_notes_are_readable_in_both_themes_and_on_a_phone(builder, lead, width):  # noqa: F811
    noted(lead, (LONG, ""), (LONG, "qualify"), (LONG, "hot_lead"), (LONG, "nurture"), (LONG, "each_attendee"), (LONG, "send_intro"))
    page = builder.page
    page.set_viewport_size({"width": width, "height": 844})
    builder.open(lead.pk)
    expect(page.get_by_role("note")).to_have_count(6)
    assert overflow(page) <= 0 and barriers(page) == []
    boxes = page.locator("#stage :is(.paper, .step, .add, .lane__label)").evaluate_all(
        "all => all.filter(one => one.offsetParent).map(one => { const b = one.getBoundingClientRect(); return [one.className, b.left, b.top, b.right, b.bottom]; })"
    )
    papers = [box for box in boxes if box[0].startswith("paper")]
    for name, left, top, right, bottom in papers:
        over = [box for box in boxes if box[1] < right - 1 and left + 1 < box[3] and box[2] < bottom - 1 and top + 1 < box[4]]
        assert [box[0] for box in over] == [name], json.dumps(over)
