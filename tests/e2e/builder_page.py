"""The builder as a person uses it: by the names that are on the screen. Waits for what the server has saved, never for
time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from playwright.sync_api import Locator, Page, expect

SAVED = "() => !('saving' in document.getElementById('board').dataset)"
SAVED_SINCE = """before => {
    const { dataset } = document.getElementById('board');
    return Number(dataset.revision) > before && !('saving' in dataset);
}"""


class BuilderPage:
    """An open flow. Every act ends when the draft is saved."""

    def __init__(self, page: Page, base: str = "") -> None:
        self.page, self.base = page, base

    def open(self, flow: int) -> Self:
        self.page.goto(f"{self.base}/flows/{flow}/")
        return self.ready()

    def ready(self) -> Self:
        """With its scripts, without which a click does nothing yet."""
        expect(self.page.locator("#stage.is-placed")).to_be_visible()
        return self

    def new_flow(self, name: str) -> Self:
        self.page.goto(f"{self.base}/")
        self.page.get_by_role("button", name="New flow").click()
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Make it").click()
        return self.ready()

    # What stands there

    @property
    def panel(self) -> Locator:
        return self.page.locator("#panel")

    @property
    def revision(self) -> int:
        return int(self.page.locator("#board").get_attribute("data-revision") or 0)

    def card(self, step: str) -> Locator:
        return self.page.locator(f"#step-{step}")

    def name_of(self, step: str) -> Locator:
        """What has the focus when a step has it."""
        return self.card(step).locator(".step__name")

    def steps(self) -> list[str]:
        """The ids on the canvas, triggers included, in the order of the page."""
        return self.page.locator("#stage .step[data-step]").evaluate_all("cards => cards.map(card => card.dataset.step)")

    def said(self, words: str | re.Pattern[str]) -> None:
        """What is read out to those who do not see the canvas."""
        expect(self.page.locator("#announce")).to_have_text(words)

    # Waiting

    @contextmanager
    def saved(self) -> Iterator[None]:
        """What is done inside changes the draft, and all of it is saved afterwards."""
        before = self.revision
        yield
        self.page.wait_for_function(SAVED_SINCE, arg=before)

    def settled(self) -> None:
        self.page.wait_for_function(SAVED)

    # Steps

    def trigger(self, kind: str, name: str = "") -> None:
        """Choose what starts the flow; its panel stays open."""
        self.page.get_by_role("button", name="Choose what starts it").click()
        self.pick(kind, name)

    def add(self, place: str, kind: str, name: str = "") -> None:
        """Add a step at a place, such as `Add a step after AI`, and name it; its panel stays open."""
        self.page.get_by_role("button", name=place, exact=True).click()
        self.pick(kind, name)

    def pick(self, kind: str, name: str = "") -> None:
        """Choose a kind in the open picker."""
        picker = self.page.get_by_role("dialog")
        with self.saved():
            picker.get_by_role("combobox").fill(kind)
            picker.get_by_role("option").filter(has_text=re.compile(f"^{re.escape(kind)}")).click()
            expect(picker).to_be_hidden()
        expect(self.page.get_by_role("complementary", name=f"Settings: {kind}")).to_be_visible()
        if name:
            self.fill("Name", name)

    def select(self, name: str) -> None:
        """A step or trigger, by its name."""
        self.page.get_by_role("link", name=name, exact=True).click()
        expect(self.page.get_by_role("complementary", name=f"Settings: {name}")).to_be_visible()

    def menu(self, step: str, item: str) -> None:
        self.card(step).locator("[data-menu]").click()
        self.page.locator("#step-menu").get_by_role("menuitem", name=item).click()

    # Fields of the panel

    def field(self, name: str) -> Locator:
        """A field with all that belongs to it, by what it sets: `config.for`."""
        return self.panel.locator(f'[data-field="{name}"]')

    def group(self, name: str) -> Locator:
        """Several fields that belong together."""
        return self.panel.get_by_role("group", name=name, exact=True)

    def tab(self, name: str) -> None:
        self.panel.get_by_role("tab", name=name).click()

    def write(self, box: Locator, text: str) -> None:
        """Type into a field and leave it; `{{ }}` may be part of it."""
        box.fill(text)
        box.blur()
        self.settled()

    def fill(self, label: str, text: str, within: Locator | None = None) -> None:
        """Write into the last field of this label."""
        place = within or self.panel
        text_or_number = place.get_by_role("textbox", name=label, exact=True).or_(
            place.get_by_role("spinbutton", name=label, exact=True)
        )
        self.write(text_or_number.last, text)

    def choose(self, label: str, option: str, within: Locator | None = None) -> None:
        """One of a list, by its words or its value."""
        (within or self.panel).get_by_role("combobox", name=label).last.select_option(option)
        self.settled()

    def rows(self, label: str, more: str, values: list[str]) -> None:
        """A list of texts, whose button for one more is called `more`."""
        group = self.group(label)
        for index, value in enumerate(values):
            if group.get_by_role("textbox").count() <= index:
                group.get_by_role("button", name=more).click()
            self.write(group.get_by_role("textbox").nth(index), value)

    def duration(self, label: str, number: str, unit: str) -> None:
        self.fill(label, number)
        self.choose(f"Unit of {label}", unit)

    def press(self, *names: str) -> None:
        """Buttons of the panel, one after the other."""
        for name in names:
            self.panel.get_by_role("button", name=name, exact=True).click()
        self.settled()

    def check(self, name: str) -> None:
        self.panel.get_by_role("radio", name=re.compile(f"^{re.escape(name)}")).check()
        self.settled()

    def insert_data(self, path: str) -> None:
        """Insert a row of the data tree: it goes where the caret was."""
        row = self.panel.locator(f'.tree__row[data-path="{path}"]')
        row.hover()
        row.locator(".ins").click()

    # Versions

    def publish(self, note: str = "") -> None:
        self.page.get_by_role("button", name=re.compile("^Publish v")).click()
        dialog = self.page.get_by_role("dialog", name=re.compile("^Publish v"))
        if note:
            dialog.get_by_label("Note").fill(note)
        dialog.get_by_role("button", name=re.compile("^Publish v")).click()
        expect(self.page.get_by_text(re.compile(r"^Published v\d+$"))).to_be_visible()
        self.page.wait_for_load_state()
