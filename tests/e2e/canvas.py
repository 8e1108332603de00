"""The builder as a person uses it: by the names that are on the screen."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect


class Canvas:
    """An open flow. Every act ends when the draft is saved, as a person sees it in the bar at the top."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.wait_for_url(re.compile(r"/flows/\d+/"))  # and for its scripts, without which a click does nothing yet
        self.panel = page.get_by_role("complementary", name=re.compile("^Settings: "))

    def saved(self) -> None:
        expect(self.page.get_by_text(re.compile(r"^Saved \d\d:\d\d$"))).to_be_visible()

    def trigger(self, kind: str, name: str) -> None:
        """Choose what starts the flow; its panel stays open."""
        self.page.get_by_role("button", name="Choose what starts it").click()
        self._pick(kind)
        self.name(kind, name)

    def add(self, place: str, kind: str, name: str) -> None:
        """Add a step at a place, such as `Add a step after AI`, and name it; its panel stays open."""
        self.page.get_by_role("button", name=place, exact=True).click()
        self._pick(kind)
        self.name(kind, name)

    def _pick(self, kind: str) -> None:
        picker = self.page.get_by_role("dialog")
        picker.get_by_role("combobox").fill(kind)
        picker.get_by_role("option").filter(has_text=re.compile(f"^{re.escape(kind)}")).click()
        expect(picker).to_be_hidden()
        self.saved()

    def open(self, step: str) -> None:
        self.page.get_by_role("link", name=step, exact=True).click()
        expect(self.page.get_by_role("complementary", name=f"Settings: {step}")).to_be_visible()

    def name(self, kind: str, name: str) -> None:
        expect(self.page.get_by_role("complementary", name=f"Settings: {kind}")).to_be_visible()
        self.fill("Name", name)

    def tab(self, name: str) -> None:
        self.panel.get_by_role("tab", name=name).click()

    def fill(self, label: str, text: str, within: Locator | None = None) -> None:
        """Type into a field of the panel, the last one of this label, and leave it."""
        place = within or self.panel
        text_or_number = place.get_by_role("textbox", name=label, exact=True).or_(
            place.get_by_role("spinbutton", name=label, exact=True)
        )
        field = text_or_number.last
        field.fill(text)
        field.blur()
        self.saved()

    def choose(self, label: str, option: str, within: Locator | None = None) -> None:
        """One of a list, by its words or its value."""
        (within or self.panel).get_by_role("combobox", name=label).last.select_option(option)
        self.saved()

    def rows(self, label: str, more: str, values: list[str]) -> None:
        """A list of texts, whose button for one more is called `more`."""
        group = self.group(label)
        for index, value in enumerate(values):
            if group.get_by_role("textbox").count() <= index:
                group.get_by_role("button", name=more).click()
            field = group.get_by_role("textbox").nth(index)
            field.fill(value)
            field.blur()
            self.saved()

    def duration(self, label: str, number: str, unit: str) -> None:
        self.fill(label, number)
        self.choose(f"Unit of {label}", unit)

    def press(self, *names: str) -> None:
        """Buttons of the panel, one after the other."""
        for name in names:
            self.panel.get_by_role("button", name=name, exact=True).click()
        self.saved()

    def check(self, name: str) -> None:
        self.panel.get_by_role("radio", name=re.compile(f"^{re.escape(name)}")).check()
        self.saved()

    def group(self, name: str) -> Locator:
        """Several fields that belong together."""
        return self.panel.get_by_role("group", name=name, exact=True)

    def publish(self, note: str) -> None:
        self.page.get_by_role("button", name=re.compile("^Publish v")).click()
        dialog = self.page.get_by_role("dialog", name=re.compile("^Publish v"))
        dialog.get_by_label("Note").fill(note)
        dialog.get_by_role("button", name=re.compile("^Publish v")).click()
        expect(self.page.get_by_text(re.compile(r"^Published v\d+$"))).to_be_visible()
        self.page.wait_for_load_state()
