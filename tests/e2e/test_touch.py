"""The builder under fingers: real touches of a browser that has a touch screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from runtime.definition import find
from tests.e2e.flows import complaints, definition, ines, lead, signed_in  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Fingers:
    """Where they are, told to the browser as a touch screen does."""

    def __init__(self, page) -> None:
        self.page, self.screen = page, page.context.new_cdp_session(page)

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        touches = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]
        self.screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def down(self, *points):
        self.touch("touchStart", *points)

    def move(self, start, end, steps=6):
        for n in range(1, steps + 1):
            self.touch("touchMove", tuple(a + (b - a) * n / steps for a, b in zip(start, end, strict=True)))

    def up(self):
        self.touch("touchEnd")

    def hold(self, start) -> None:
        """Rest on a card until it lifts."""
        self.down(start)
        expect(self.page.locator("body > .step.is-lifted")).to_be_visible()


def middle(place) -> tuple[float, float]:
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
def tablet(browser, live_server, ines, lead, complaints):  # noqa: F811
    context = browser.new_context(viewport={"width": 1024, "height": 900}, has_touch=True)
    yield signed_in(context.new_page(), live_server, ines, complaints).open(lead.pk)
    context.close()
    assert complaints == []


@pytest.fixture
def fingers(tablet):
    return Fingers(tablet.page)


def test_a_step_on_which_a_finger_rests_is_lifted_and_dragged_elsewhere(tablet, fingers, lead):  # noqa: F811
    start = middle(tablet.card("send_intro"))
    target = middle(tablet.page.locator("#node-nurture > .link .add"))
    fingers.hold(start)
    fingers.move(start, target)
    expect(tablet.page.locator(".drop")).to_have_text("Drop to move Send intro here")
    with tablet.saved():
        fingers.up()
    assert [step["id"] for step in find(definition(lead), "hot_lead")["branches"][1]["steps"]] == ["wait", "nurture", "send_intro"]


def test_a_finger_that_moves_at_once_pans_and_lifts_nothing(tablet, fingers):
    start = middle(tablet.card("qualify"))
    before = tablet.card("hot_lead").bounding_box()
    fingers.down(start)
    fingers.move(start, (start[0], start[1] + 90))
    fingers.up()
    after = tablet.card("hot_lead").bounding_box()
    assert round(after["y"] - before["y"]) in range(80, 91) and round(after["x"]) == round(before["x"])
    expect(tablet.page.locator(".is-lifted")).to_have_count(0)
    expect(tablet.panel).to_be_hidden()
    assert tablet.revision == 1


def test_a_finger_that_rests_and_is_let_go_opens_the_menu(tablet, fingers):
    fingers.hold(middle(tablet.card("qualify")))
    fingers.up()
    menu = tablet.page.get_by_role("menu", name="Actions for Qualify lead")
    expect(menu).to_be_visible()
    with tablet.saved():
        menu.get_by_role("menuitem", name="Turn off").tap()


def test_a_tap_opens_a_step_and_two_fingers_zoom(tablet, fingers):
    tablet.card("qualify").tap()
    expect(tablet.panel).to_have_attribute("data-owner", "qualify")
    x, y = middle(tablet.card("hot_lead"))
    fingers.down((x - 20, y), (x + 20, y))
    for n in range(1, 8):
        fingers.touch("touchMove", (x - 20 - 8 * n, y), (x + 20 + 8 * n, y))
    fingers.up()
    assert int(tablet.page.locator("#zoom-level").inner_text().rstrip("%")) > 110
    expect(tablet.page.locator(".is-lifted")).to_have_count(0)
    assert tablet.revision == 1
