"""The builder as a person uses it: by what stands on the screen. Waits for what the server has saved, never for time."""

from __future__ import annotations

from contextlib import contextmanager

from playwright.sync_api import Locator, Page, expect


class BuilderPage:
    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base

    def open(self, flow: int) -> BuilderPage:
        self.page.goto(f"{self.base}/flows/{flow}/")
        expect(self.page.locator("#stage.is-placed")).to_be_visible()
        return self

    def new_flow(self, name: str) -> BuilderPage:
        self.page.goto(f"{self.base}/")
        self.page.get_by_role("button", name="New flow").click()
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_role("button", name="Make it").click()
        expect(self.page.locator("#stage.is-placed")).to_be_visible()
        return self

    @property
    def panel(self) -> Locator:
        return self.page.locator("#panel")

    @property
    def revision(self) -> int:
        return int(self.page.locator("#board").get_attribute("data-revision") or 0)

    def card(self, step: str) -> Locator:
        return self.page.locator(f"#step-{step}")

    @contextmanager
    def saved(self):
        """What is done inside changes the draft, and all of it is saved afterwards."""
        before = self.revision
        yield
        self.page.wait_for_function(
            "before => { const { dataset } = document.getElementById('board'); return dataset.revision > before && !('saving' in dataset) }",
            arg=before,
        )

    @contextmanager
    def opened(self):
        """What is done inside opens the panel of something new."""
        before = self.panel.get_attribute("data-owner")
        yield
        self.page.wait_for_function("before => document.getElementById('panel').dataset.owner !== before", arg=before)

    def add_trigger(self, label: str) -> None:
        with self.opened(), self.saved():
            self.page.locator("[data-add-trigger]").first.click()
            self.page.get_by_role("option", name=label).first.click()

    def add(self, label: str, *, after: str = "", lane: tuple[str, str] | None = None) -> None:
        """Add a step by the picker: after a step, at the start of a lane (step, lane), or as the first one."""
        place = f'[data-after="{after}"]' if after else f'[data-parent="{lane[0] if lane else ""}"][data-lane="{lane[1] if lane else ""}"]'
        with self.opened(), self.saved():
            self.page.locator(f"#stage .add{place}").click()
            self.page.get_by_placeholder("Search").fill(label)
            self.page.locator(".pick:visible").first.click()

    def select(self, step: str) -> None:
        self.card(step).locator(".step__name").click()
        expect(self.page.locator(f'#panel[data-owner="{step}"]')).to_be_visible()

    def rename(self, name: str) -> None:
        with self.saved():
            self.panel.locator("#f-name").fill(name)
            self.panel.locator("#f-name").blur()

    def field(self, name: str) -> Locator:
        return self.panel.locator(f'[data-field="{name}"]')

    def type(self, field: str, text: str, *, at: int = 0) -> None:
        """Type into a text or expression field; `{{ }}` may be part of it."""
        with self.saved():
            self.write(self.field(field).locator(".expr").nth(at), text)

    def write(self, box: Locator, text: str) -> None:
        box.fill(text)
        box.blur()

    def fill(self, field: str, text: str) -> None:
        with self.saved():
            box = self.field(field).locator("input:visible, textarea:visible").first
            box.fill(text)
            box.blur()

    def choose(self, field: str, word: str) -> None:
        """One of several, by what it is called."""
        with self.saved():
            place = self.field(field)
            if place.locator("hf-seg").count():
                place.get_by_role("button", name=word, exact=True).click()
            else:
                place.locator("select:visible").first.select_option(label=word)

    def insert_data(self, path: str) -> None:
        """Insert a row of the data tree: it goes where the caret was."""
        row = self.panel.locator(f'.tree__row[data-path="{path}"]')
        row.hover()
        row.locator(".ins").click()

    def menu(self, step: str, item: str) -> None:
        self.card(step).locator("[data-menu]").click()
        self.page.locator("#step-menu").get_by_role("menuitem", name=item).click()

    def publish(self, note: str = "") -> None:
        self.page.locator("#publish").click()
        if note:
            self.page.locator("#publish-dialog").get_by_label("Note").fill(note)
        self.page.locator("#publish-dialog").get_by_role("button", name="Publish").click()
        expect(self.page.locator("#draft-status")).to_contain_text("Live v")

    def steps(self) -> list[str]:
        """The ids on the canvas, triggers included, in the order of the page."""
        return self.page.locator("#stage .step[data-step]").evaluate_all("cards => cards.map(card => card.dataset.step)")
