"""A flow of ten steps is built, tried and published by somebody who has no mouse. At every moment something has the focus, and
what happened is read out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from runtime.definition import walk
from runtime.models import Version
from tests.e2e.builder_page import BuilderPage
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Keys:
    """Hands on the keyboard."""

    def __init__(self, builder: BuilderPage) -> None:  # noqa: F811
        self.builder, self.page = builder, builder.page
        self.type = self.page.keyboard.type

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def to(self, name: str, key: str = "Tab") -> None:
        """Tab, or another key, until something of this name has the focus."""
        named = "name => { const e = document.activeElement; return e !== document.body && (e.getAttribute('aria-label') || e.textContent || '').includes(name); }"
        for _ in range(40):
            if self.page.evaluate(named, name):
                return
            self.press(key)
        raise AssertionError(f"{name} cannot be reached")

    def on(self, step: str) -> None:
        expect(self.builder.name_of(step)).to_be_focused()

    def add(self, kind: str, step: str, key: str = "a") -> None:
        """Added at the place that has the focus; its panel is open then, and its card has the focus."""
        self.press(key)
        expect(self.page.get_by_role("combobox", name=re.compile("^Search"))).to_be_focused()
        with self.builder.saved():
            self.type(kind)
            self.press("Enter")
        self.builder.said(re.compile(f"^Add {kind}"))
        self.on(step)
        expect(self.builder.panel).to_have_attribute("data-owner", step)

    def does(self, *keys: str, said: str) -> None:
        with self.builder.saved():
            self.press(*keys)
        self.builder.said(said)


@pytest.fixture
def keys(builder) -> Keys:  # noqa: F811
    builder.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return Keys(builder)


def test_ten_steps_by_keyboard_alone(keys, builder):  # noqa: F811
    page, panel = builder.page, builder.panel
    page.goto(f"{builder.base}/")
    keys.to("New flow")
    keys.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    keys.type("By hand")
    keys.press("Enter")
    builder.ready()
    keys.press("a")
    builder.said(re.compile("^There is no step yet"))
    keys.add("Manual", "manual", key="Enter")
    keys.press("Escape", "ArrowDown")
    keys.add("Set values", "set_values", key="Enter")

    # An expression, by completion, and its result
    keys.press("F6")
    keys.to("JSON")
    keys.press("Tab")
    keys.type("total")
    keys.press("Tab")
    with builder.saved():
        keys.type("{{ 20 + 22 }}")
        expect(panel.locator(".result")).to_contain_text("42")
        keys.press("Tab")
    expect(panel.locator(":focus")).to_have_count(1)
    keys.press("Escape")
    keys.on("set_values")

    # A condition with two lanes
    keys.add("Condition", "condition")
    keys.press("F6")
    keys.to("Add rule")
    keys.press("Enter")
    expect(panel.get_by_role("textbox", name="Value to check")).to_be_focused()
    keys.type("/tot")
    expect(page.get_by_role("option", name=re.compile("^steps.set_values.output.total"))).to_be_visible()
    with builder.saved():
        keys.press("Enter")
    keys.to("Comparison")
    with builder.saved():
        keys.type("is gre")
    keys.press("Tab")
    with builder.saved():
        keys.type("40")
        keys.press("Tab")
    expect(panel.get_by_text("42 > 40 is true")).to_be_visible()
    keys.press("Escape", "ArrowDown")
    expect(page.get_by_role("button", name="Add a step at the start of the Yes lane")).to_be_focused()
    keys.add("Delay", "delay", key="Enter")
    keys.press("Escape", "Control+c")
    builder.said("Copied Delay")
    keys.press("ArrowRight")
    keys.does("Control+v", said="Paste Delay")
    keys.on("delay_2")
    assert [[step["id"] for step in lane["steps"]] for lane in definition()["steps"][1]["branches"]] == [["delay"], ["delay_2"]]

    # Once more, away, back, and away again
    keys.does("d", said="Duplicate Delay")
    keys.on("delay_3")
    keys.press("Escape")
    keys.does("Delete", said="Remove Delay")
    keys.on("delay_2")
    keys.does("Control+z", said="Undid: remove Delay")
    expect(page.locator(".toast")).to_have_count(0)  # its button would take back another edit now
    keys.does("Control+Shift+z", said="Redid: remove Delay")
    keys.does("Control+z", said="Undid: remove Delay")
    keys.press("ArrowLeft")

    # Another id, a loop around it, more of it
    keys.on("delay")
    keys.press("Shift+F10")
    keys.to("Change its id", key="ArrowDown")
    keys.press("Enter")
    keys.type("pause")
    expect(page.locator("#rename-preview")).not_to_be_empty()
    keys.does("Enter", said="Rename delay to pause")
    keys.on("pause")
    keys.press("Shift+F10")
    keys.to("Wrap in a loop", key="ArrowDown")
    keys.does("Enter", said="Wrap in Loop")
    keys.on("loop_1")
    expect(panel).to_have_attribute("data-owner", "loop_1")
    keys.press("F6")
    keys.to("For each of")
    with builder.saved():
        keys.type("[1, 2]")
        keys.press("Tab")
    keys.press("Escape")
    keys.does("d", said="Duplicate Loop")
    keys.does("d", said="Duplicate Loop")

    # Tried, and published
    keys.press("Escape", "Control+f")
    keys.type("set values")
    keys.press("Enter")
    keys.on("set_values")
    expect(panel).to_have_attribute("data-owner", "set_values")
    keys.press("F6")
    keys.to("Setup")
    keys.press("ArrowRight", "ArrowRight")
    keys.to("Try without effect")
    keys.press("Enter")
    expect(page.locator("#test-result[aria-live]")).to_contain_text("42")
    keys.press("Escape")
    keys.to("Publish v1", key="Shift+Tab")
    keys.press("Enter")
    expect(page.locator("#publish-note")).to_be_focused()
    keys.type("Built by keyboard")
    keys.press("Tab", "Tab", "Enter")
    expect(page.get_by_text("Published v1")).to_be_visible()
    [live] = Version.objects.filter(number=1)
    assert len(list(walk(live.definition["steps"]))) == 10 and live.note == "Built by keyboard"


def test_the_focus_stays_on_what_was_pressed_when_the_panel_is_drawn_anew(keys, builder, lead):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Hot lead?")
    add = builder.panel.get_by_role("button", name="Add lane")
    add.focus()
    for lanes in (3, 4):
        with builder.saved():
            keys.press("Enter")
        expect(builder.panel.get_by_label(re.compile("^Lane"))).to_have_count(lanes)
        expect(add).to_be_focused()


def test_what_cannot_be_fetched_is_told(builder, lead, complaints):  # noqa: F811
    page, toast = builder.page, builder.page.locator(".toast")
    builder.open(lead.pk)
    page.context.set_offline(True)
    builder.name_of("qualify").focus()
    for key in ("Enter", "a"):
        page.keyboard.press(key)
        expect(toast).to_contain_text("There is no answer from Holdfast")
        toast.evaluate("one => one.remove()")
    page.context.set_offline(False)
    page.keyboard.press("a")
    expect(page.get_by_role("combobox", name="Search steps")).to_be_focused()
    page.keyboard.press("Escape")
    expect(builder.name_of("qualify")).to_be_focused()
    complaints.clear()  # of the connection
