"""One draft, several people and tabs, and connections that fail: nothing is overwritten unasked, and nothing gets lost."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import expect

from builder import drafts
from runtime.definition import find
from tests.e2e.flows import builder, complaints, definition, ines, lead, signed_in  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def dana(builder, lead, browser, live_server, complaints):  # noqa: F811
    """Dana has the same flow open in a browser of her own, Ines in hers."""
    person = get_user_model().objects.create_superuser("dana", "dana@example.com", "pw", first_name="Dana")
    context = browser.new_context()
    yield signed_in(context.new_page(), live_server, person, []).open(lead.pk)
    context.close()
    complaints[:] = [one for one in complaints if "409" not in one]


@pytest.fixture
def held_back(builder, complaints):  # noqa: F811
    """Edits that are made inside reach nobody until its end."""

    @contextmanager
    def held():
        builder.page.route("**/edit/", lambda route: route.abort())
        yield
        builder.page.unroute("**/edit/")

    yield held
    complaints[:] = [one for one in complaints if "ERR_FAILED" not in one]


def wait_five_days(builder):  # noqa: F811
    box = builder.field("config.for").locator("input")
    box.fill("5")
    box.blur()


@pytest.fixture
def page(page):
    """Without the watch on the draft, so that the two meet when they save."""
    page.add_init_script("const plain = setInterval; window.setInterval = (act, ms) => plain(act, ms === 2000 ? 2 ** 30 : ms)")
    return page


def they_meet(builder, lead, dana):  # noqa: F811
    """Dana turns a step off while Ines changes how long it waits."""
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    with dana.saved():
        dana.menu("wait", "Turn off")
    wait_five_days(builder)
    dialog = builder.page.get_by_role("dialog", name="Dana changed this flow in the meantime")
    expect(dialog).to_contain_text("Change “Wait for” in Wait 2 days was not saved")
    expect(dialog).to_contain_text("Switched off")
    return dialog


def test_my_edit_is_applied_to_theirs(builder, lead, dana):  # noqa: F811
    dialog = they_meet(builder, lead, dana)
    with builder.saved():
        dialog.get_by_role("button", name="Apply mine to theirs").click()
    made = definition(lead)
    assert find(made, "wait")["off"] is True and find(made, "wait")["config"]["for"] == "5d"
    expect(builder.card("wait")).to_contain_text("Off · skipped in runs")
    expect(builder.field("config.for").locator("input")).to_have_value("5")


def test_edits_of_different_steps_are_both_saved_and_nobody_is_asked(builder, lead, dana):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    with dana.saved():
        dana.menu("nurture", "Turn off")
    with builder.saved():
        wait_five_days(builder)
    made = definition(lead)
    assert find(made, "nurture")["off"] is True and find(made, "wait")["config"]["for"] == "5d"
    expect(builder.page.get_by_text("Dana changed other parts of this flow in the meantime")).to_be_visible()
    expect(builder.card("nurture")).to_contain_text("Off · skipped in runs")
    expect(builder.field("config.for").locator("input")).to_have_value("5")
    with builder.saved():
        builder.page.get_by_role("button", name="Undo: change “Wait for” in Wait 2 days").click()
    made = definition(lead)
    assert find(made, "nurture")["off"] is True and find(made, "wait")["config"]["for"] == "2d"


def test_what_waited_meanwhile_is_asked_about_where_theirs_is_touched(builder, lead, dana, held_back):  # noqa: F811
    """The answer to the first edit brings what Dana did to the page; the second was made before that."""
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    with held_back():
        builder.menu("nurture", "Turn off")
        wait_five_days(builder)
        with dana.saved():
            dana.menu("wait", "Turn off")
    dialog = builder.page.get_by_role("dialog", name="Dana changed this flow in the meantime")
    expect(dialog).to_contain_text("Change “Wait for” in Wait 2 days was not saved")
    made = definition(lead)
    assert find(made, "nurture")["off"] is True and find(made, "wait")["off"] is True and find(made, "wait")["config"]["for"] == "2d"
    with builder.saved():
        dialog.get_by_role("button", name="Apply mine to theirs").click()
    made = definition(lead)
    assert find(made, "wait")["off"] is True and find(made, "wait")["config"]["for"] == "5d"
    builder.settled()
    assert builder.page.locator(".node").count() == len({*builder.page.locator(".node").evaluate_all("nodes => nodes.map(node => node.id)")})


def test_two_edits_of_one_step_that_wait_are_not_asked_about_for_each_other(builder, lead, dana, held_back):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    with held_back():
        wait_five_days(builder)
        builder.menu("wait", "Turn off")
        with dana.saved():
            dana.menu("nurture", "Turn off")
    builder.settled()
    made = definition(lead)
    assert find(made, "wait")["off"] is True and find(made, "wait")["config"]["for"] == "5d" and find(made, "nurture")["off"] is True
    expect(builder.page.get_by_role("dialog")).to_have_count(0)


def test_what_is_dropped_for_theirs_is_the_one_edit_that_was_asked_about(builder, lead, dana, held_back):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    with held_back():
        wait_five_days(builder)
        builder.menu("nurture", "Turn off")
        with dana.saved():
            dana.menu("wait", "Turn off")
    dialog = builder.page.get_by_role("dialog", name="Dana changed this flow in the meantime")
    dialog.get_by_role("button", name="Take theirs, drop mine").click()
    builder.settled()
    made = definition(lead)
    assert find(made, "wait")["off"] is True and find(made, "wait")["config"]["for"] == "2d" and find(made, "nurture")["off"] is True


def test_a_name_that_takes_the_id_along_takes_what_waits_along(builder, lead, held_back):  # noqa: F811
    """A step that was just added, named, and turned off before the answer to the name is there."""
    builder.open(lead.pk)
    builder.add("Add a step after Wait 2 days", "Delay")
    with held_back():
        box = builder.field("name").locator("input")
        box.fill("Pause")
        box.blur()
        builder.menu("delay", "Turn off")
    builder.settled()
    assert find(definition(lead), "pause")["off"] is True


def test_mine_takes_the_place_of_theirs_and_undo_brings_theirs_back(builder, lead, dana):  # noqa: F811
    dialog = they_meet(builder, lead, dana)
    with builder.saved():
        dialog.get_by_role("button", name="Overwrite theirs").click()
    made = definition(lead)
    assert "off" not in find(made, "wait") and find(made, "wait")["config"]["for"] == "5d"
    with builder.saved():
        builder.page.get_by_role("button", name="Undo: change “Wait for” in Wait 2 days").click()
    made = definition(lead)
    assert find(made, "wait")["off"] is True and find(made, "wait")["config"]["for"] == "2d"


def test_theirs_is_taken_and_mine_dropped(builder, lead, dana):  # noqa: F811
    dialog = they_meet(builder, lead, dana)
    builder.page.keyboard.press("Escape")
    expect(dialog).to_be_visible()  # it is not answered by going away
    builder.page.set_viewport_size({"width": 390, "height": 844})
    for answer in dialog.get_by_role("button").all():
        expect(answer).to_be_in_viewport(ratio=1)
    builder.page.set_viewport_size({"width": 1440, "height": 900})
    dialog.get_by_role("button", name="Take theirs, drop mine").click()
    expect(builder.card("wait")).to_contain_text("Off · skipped in runs")
    expect(builder.field("config.for").locator("input")).to_have_value("2")
    builder.settled()
    assert find(definition(lead), "wait")["config"]["for"] == "2d"
    with builder.saved():
        builder.menu("send_intro", "Duplicate")


def test_an_edit_of_a_step_that_they_removed_says_so(builder, lead, dana):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    with dana.saved():
        dana.menu("wait", "Remove")
    wait_five_days(builder)
    dialog = builder.page.get_by_role("dialog", name="Dana changed this flow in the meantime")
    expect(dialog).to_contain_text("Yours cannot be applied to theirs. There is no step “wait” any more.")
    expect(dialog.get_by_role("button", name="Apply mine to theirs")).to_have_count(0)
    dialog.get_by_role("button", name="Take theirs, drop mine").click()
    expect(builder.card("wait")).to_have_count(0)
    expect(builder.panel).to_be_hidden()


def test_several_edits_without_a_connection_survive_a_reload_and_are_saved_when_it_is_back(builder, lead, complaints):  # noqa: F811
    builder.open(lead.pk)
    builder.page.route("**/edit/", lambda route: route.abort())
    builder.menu("nurture", "Turn off")
    builder.menu("send_intro", "Duplicate")
    builder.menu("qualify", "Turn off")
    expect(builder.page.locator("#saved")).to_have_text("3 edits not saved, retrying")
    builder.page.set_viewport_size({"width": 1024, "height": 700})
    expect(builder.page.locator("#saved")).to_be_visible()
    builder.page.on("dialog", lambda dialog: dialog.accept())
    builder.page.reload()
    builder.ready()
    builder.page.unroute("**/edit/")
    expect(builder.page.locator("#saved")).to_contain_text("Saved")
    builder.settled()
    made = definition(lead)
    assert find(made, "nurture")["off"] and find(made, "qualify")["off"] and find(made, "send_intro_2")
    complaints[:] = [one for one in complaints if "ERR_FAILED" not in one]


def test_offline_edits_are_saved_when_the_network_is_back(builder, lead, complaints):  # noqa: F811
    builder.open(lead.pk)
    builder.select("Wait 2 days")
    builder.page.context.set_offline(True)
    box = builder.field("config.for").locator("input")
    for days in ("5", "6"):
        box.fill(days)
        box.blur()
        expect(builder.page.locator("#saved")).to_contain_text("not saved, retrying", ignore_case=True)
    with builder.saved():
        builder.page.context.set_offline(False)
    builder.settled()
    assert find(definition(lead), "wait")["config"]["for"] == "6d"
    complaints[:] = [one for one in complaints if "ERR_INTERNET_DISCONNECTED" not in one]


def test_an_answer_that_got_lost_is_no_second_edit(builder, lead, complaints):  # noqa: F811
    """The edit reached Holdfast, its answer did not reach the browser."""
    builder.open(lead.pk)
    answers = []

    def swallow(route):
        answers.append(route.fetch())
        route.abort() if len(answers) == 1 else route.fulfill(response=answers[-1])

    builder.page.route("**/edit/", swallow)
    with builder.saved():
        builder.menu("send_intro", "Duplicate")
    assert len(answers) == 2 and drafts.load(lead).revision == 2
    assert builder.steps().count("send_intro_2") == 1
    complaints[:] = [one for one in complaints if "ERR_FAILED" not in one]


def test_whoever_signed_out_in_another_tab_loses_no_edit(builder, lead, ines, complaints):  # noqa: F811
    builder.open(lead.pk)
    cookies = builder.page.context.cookies()
    builder.page.context.clear_cookies()
    builder.menu("send_intro", "Duplicate")
    expect(builder.page.get_by_role("heading", name="Sign in")).to_be_visible()
    builder.page.context.add_cookies(cookies)
    builder.open(lead.pk)
    expect(builder.card("send_intro_2")).to_be_visible()
    assert find(definition(lead), "send_intro_2")
    complaints[:] = [one for one in complaints if "403" not in one and "401" not in one]
