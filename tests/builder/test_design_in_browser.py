"""The design system in a real browser, under the content security policy that is served: it can be read, used by
keyboard, and fits a phone."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from builder.templatetags.formats import relative
from tests.e2e.axe import barriers
from tests.e2e.people import enter, listen

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def complaints(page) -> list[str]:
    """What the browser complained about: script errors and violations of the policy."""
    return listen(page)


@pytest.fixture
def gallery(page, live_server, complaints):
    """The gallery, open for an administrator; the browser must have had nothing to complain about in the end."""
    user = get_user_model().objects.create_superuser(
        "ines", "ines@example.com", "pw", first_name="Ines", last_name="Carvalho"
    )
    enter(page, live_server, user)
    page.goto(f"{live_server.url}/gallery/")
    yield page
    assert complaints == []


def test_signing_in_is_accessible_also_after_a_mistake(page, live_server, complaints):
    page.goto(f"{live_server.url}/login/?next=/runs/")
    assert barriers(page) == []
    page.get_by_label("User name").fill("nobody")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_role("alert").is_visible()
    assert barriers(page) == []
    assert complaints == []


def test_the_components_are_accessible(gallery):
    assert barriers(gallery) == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_overflows(gallery, width):
    gallery.set_viewport_size({"width": width, "height": 900})
    assert gallery.evaluate("document.documentElement.scrollWidth") <= width
    assert gallery.evaluate(
        "document.querySelector('.page').scrollWidth <= document.querySelector('.page').clientWidth"
    )


def test_the_theme_is_remembered_and_rendered_by_the_server(gallery):
    gallery.emulate_media(color_scheme="light")
    gallery.get_by_role("button", name="Switch theme").first.click()
    assert gallery.evaluate("document.documentElement.dataset.theme") == "dark"
    source = gallery.request.get(gallery.url).text()
    assert '<html lang="en" data-theme="dark">' in source


def test_a_dangerous_form_asks_first_and_keeps_the_safe_answer_in_focus(gallery):
    gallery.locator("hf-confirm button").click()
    question = gallery.get_by_role("dialog", name="Cancel run 48,213?")
    assert question.is_visible()
    assert gallery.evaluate("document.activeElement.textContent") == "Keep running"
    gallery.keyboard.press("Enter")
    assert question.is_hidden() and gallery.url.endswith("/gallery/")
    gallery.locator("hf-confirm button").click()
    question.get_by_role("button", name="Cancel run").click()
    gallery.wait_for_url("**/gallery/?")


def test_the_account_menu_opens_beside_its_button_and_gives_focus_back(gallery):
    button = gallery.get_by_role("button", name="Account: Ines Carvalho")
    button.click()
    menu = gallery.locator("#account-menu")
    assert menu.bounding_box()["x"] >= button.bounding_box()["x"] + button.bounding_box()["width"]
    gallery.keyboard.press("Escape")
    assert menu.is_hidden()
    assert button.evaluate("button => button === document.activeElement")


def test_the_question_mark_opens_the_help_but_not_while_typing(gallery):
    gallery.get_by_label("Filter runs").press("?")
    assert gallery.locator("#keys").is_hidden()
    gallery.get_by_label("Filter runs").blur()
    gallery.keyboard.press("?")
    assert gallery.get_by_role("dialog", name="Keyboard shortcuts").is_visible()


def test_a_slash_goes_to_the_search(gallery):
    gallery.keyboard.press("/")
    assert gallery.evaluate("document.activeElement.getAttribute('aria-label')") == "Filter runs"


def test_a_toast_offers_undo_and_shows_markup_as_text(gallery):
    gallery.evaluate(
        "detail => document.dispatchEvent(new CustomEvent('toast', {detail}))",
        {"message": "<b>Removed</b>", "undo": "/x/"},
    )
    toast = gallery.locator("hf-toasts .toast")
    assert toast.inner_text().split("\n") == ["<b>Removed</b>", "Undo"]


def test_folded_json_opens(gallery):
    gallery.get_by_role("button", name="more characters").click()
    assert "before June." in gallery.locator(".json ol").inner_text()


def test_variables_reach_elements_that_come_later(gallery):
    bar = """() => { const bar = document.createElement("i"); bar.dataset.vars = "--x: 12; color: red";
        document.body.append(bar); return new Promise(done => setTimeout(() => done(bar.getAttribute("style")))); }"""
    assert gallery.evaluate(bar) == "--x: 12;"


def test_the_browser_writes_relative_times_by_the_rules_of_the_filter(gallery):
    seconds = [0, 0.5, 1, 59, 60, 61, 3599, 3600, 7260, 86400, 90000, 700000, 3000000, 40000000, -1, -59, -61, -90000]
    written = gallery.evaluate(
        """async seconds => { const { relative } = await import("hf/ago");
        return [false, true].map(long => seconds.map(one => relative(one, long))); }""",
        seconds,
    )
    assert written == [[relative(one, long=long) for one in seconds] for long in (False, True)]


ANSWERS = [
    (200, "first", {"ETag": '"1"'}),
    (304, "", {}),
    (204, "", {}),
    (200, "second", {"ETag": '"2"'}),
    (286, "last", {}),
]


def test_live_parts_poll_conditionally_until_they_are_told_to_stop(gallery):
    asked = []

    def answer(route):
        status, body, headers = ANSWERS[min(len(asked), len(ANSWERS) - 1)]
        asked.append(route.request.headers.get("if-none-match"))
        route.fulfill(status=status, body=body, headers=headers)

    gallery.route("**/live/", answer)
    gallery.evaluate("""() => { document.querySelector(".kit").insertAdjacentHTML("beforeend",
        '<hf-live id="live" src="/live/" every="0.25" status="told">before</hf-live><p id="told"></p>'); }""")
    gallery.wait_for_selector("#live[stopped]", state="attached")
    assert gallery.locator("#live").inner_text() == "last"
    assert asked == [None, '"1"', '"1"', '"1"', '"2"']


def test_live_parts_wait_while_something_in_them_is_picked(gallery):
    gallery.route("**/live/", lambda route: route.fulfill(status=200, body="fresh"))
    gallery.evaluate("""() => { document.querySelector(".kit").insertAdjacentHTML("beforeend",
        `<hf-live id="live" src="/live/" every="0.25" hold="input:checked">
        <input type="checkbox" checked></hf-live>`); }""")
    gallery.wait_for_selector("#live[data-held]", state="attached")
    gallery.locator("#live input").uncheck()
    gallery.wait_for_selector("#live:not([data-held])", state="attached")
    assert gallery.locator("#live").inner_text() == "fresh"


def test_focus_and_caret_survive_a_swap(gallery):
    gallery.route(
        "**/part/",
        lambda route: route.fulfill(
            body='<input id="name" value="halden" aria-label="Name">', content_type="text/html"
        ),
    )
    where = gallery.evaluate("""async () => {
        const part = '<div id="part"><input id="name" value="halden"></div>';
        document.querySelector(".kit").insertAdjacentHTML("beforeend", part);
        document.getElementById("name").focus();
        document.getElementById("name").setSelectionRange(2, 4);
        await htmx.ajax("GET", "/part/", "#part");
        const { id, selectionStart, selectionEnd } = document.activeElement;
        return [id, selectionStart, selectionEnd];
    }""")
    assert where == ["name", 2, 4]
