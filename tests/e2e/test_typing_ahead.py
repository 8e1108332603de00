"""Who types is faster than what is saved: nothing that was typed or chosen gets lost, goes elsewhere, or comes back as it was."""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import expect

from runtime.definition import find
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401
from tests.e2e.test_staying_put import hold_back, let_go

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ADDRESS = "http://127.0.0.1:8199/crm"


@pytest.fixture
def call(builder, lead):  # noqa: F811
    """The panel of a new API call, and every edit that goes out."""
    builder.open(lead.pk)
    builder.page.locator('.add[data-after="qualify"]').click()
    builder.pick("API call")
    with builder.saved():
        builder.write(builder.panel.get_by_role("textbox", name="Address", exact=True), ADDRESS)
    return builder


@pytest.fixture
def sent(builder):  # noqa: F811
    edits = []
    builder.page.on("request", lambda request: request.url.endswith("/edit/") and edits.append(parse_qs(request.post_data)))
    return edits


def config(flow):
    return find(definition(flow), "api_call")["config"]


@pytest.mark.parametrize(
    ("step", "box", "value"),
    [
        ("send_intro", "Subject", lambda step: step["config"]["subject"]),
        ("send_intro", "Text", lambda step: step["config"]["body"]),
        ("send_intro", "Name", lambda step: step["name"]),
        ("wait", "Wait for", lambda step: step["config"]["for"][:-1]),
        ("new_lead", "Name", lambda step: step["name"]),
    ],
)
def test_escape_saves_what_was_just_typed(builder, lead, step, box, value):  # noqa: F811
    builder.open(lead.pk)
    builder.name_of(step).click()
    expect(builder.panel).to_have_attribute("data-owner", step)
    kind = find(definition(lead), step) or definition(lead)["triggers"][0]
    builder.panel.get_by_role("textbox", name=box, exact=True).first.click()
    builder.page.keyboard.press("Control+a")
    with builder.saved():
        builder.page.keyboard.type("7")
        builder.page.keyboard.press("Escape")
        expect(builder.panel).to_be_hidden()
    now = [one for one in (*definition(lead)["triggers"], *_all_steps(lead)) if one["type"] == kind["type"]]
    assert "7" in [value(one) for one in now if one.get("config") is not None]
    expect(builder.page.get_by_text("any more")).to_have_count(0)


def _all_steps(flow):
    found, more = [], list(definition(flow)["steps"])
    while more:
        step = more.pop()
        found.append(step)
        more += step.get("steps") or [one for lane in step.get("branches") or [] for one in lane["steps"]]
    return found


def test_escape_saves_the_settings_of_the_flow(builder, lead):  # noqa: F811
    page = builder.open(lead.pk).page
    page.get_by_role("button", name="More about this flow").click()
    page.get_by_role("button", name="Settings of the flow").click()
    builder.panel.get_by_role("textbox", name="Name", exact=True).fill("Leads")
    with builder.saved():
        page.keyboard.press("Escape")
        expect(builder.panel).to_be_hidden()
    assert definition(lead)["name"] == "Leads"


def test_a_key_that_opens_another_step_saves_what_was_just_typed(builder, lead):  # noqa: F811
    builder.open(lead.pk)
    with builder.saved():
        builder.page.locator('.add[data-after="wait"]').click()
        builder.pick("Loop")
    builder.select("Wait 2 days")
    builder.field("config.for").locator("input").fill("5")
    with builder.saved():
        builder.page.keyboard.press("F8")
        expect(builder.panel).not_to_have_attribute("data-owner", "wait")
    assert find(definition(lead), "wait")["config"]["for"] == "5d"


def test_an_address_that_is_selected_and_typed_over_while_another_method_is_saved(call, lead):  # noqa: F811
    held = hold_back(call.page)
    with call.page.expect_request("**/edit/"):
        call.panel.get_by_role("combobox", name="Method").select_option("POST")
    call.panel.get_by_role("textbox", name="Address", exact=True).click()
    call.page.keyboard.press("Control+a")
    let_go(call.page, held)
    expect(call.field("config.json")).to_be_visible()
    call.page.keyboard.type("http://crm.example")
    with call.saved():
        call.page.keyboard.press("Tab")
    assert config(lead)["url"] == "http://crm.example" and config(lead)["method"] == "POST"


@pytest.mark.parametrize("letters", [0, 1, 6])
def test_the_caret_stays_where_it_is_when_an_answer_comes(call, lead, letters):  # noqa: F811
    held = hold_back(call.page)
    with call.page.expect_request("**/edit/"):
        call.panel.get_by_role("combobox", name="Method").select_option("POST")
    address = call.panel.get_by_role("textbox", name="Address", exact=True)
    address.click()
    call.page.keyboard.press("End")
    for _ in range(4):
        call.page.keyboard.press("ArrowLeft")
    call.page.keyboard.type("/items"[:letters])
    let_go(call.page, held)
    expect(call.field("config.json")).to_be_visible()
    call.page.keyboard.type("/items"[letters:])
    call.panel.get_by_text("Address", exact=True).click()  # its label is another one now
    expect(address).to_be_focused()
    with call.saved():
        call.page.keyboard.press("Tab")
    assert config(lead)["url"] == "http://127.0.0.1:8199/items/crm"


def test_letters_typed_ahead_in_a_list_choose_one_thing(call, lead):  # noqa: F811
    method = call.panel.get_by_role("combobox", name="Method")
    held = hold_back(call.page)
    method.focus()
    with call.page.expect_request("**/edit/"):
        call.page.keyboard.press("p")
    let_go(call.page, held)
    call.page.evaluate("window.chosen = document.activeElement")
    call.settled()
    expect(call.field("config.json")).to_be_visible()
    assert call.page.evaluate("window.chosen === document.activeElement && window.chosen.isConnected")


def test_an_edit_typed_while_another_is_saved_is_no_conflict_with_oneself(call, lead, sent):  # noqa: F811
    call.panel.get_by_role("textbox", name="Address", exact=True).fill("https://crm.example/deals")
    with call.saved():
        call.page.evaluate("""() => {
            const method = document.querySelector('[data-field="config.method"] select');
            method.value = 'POST';
            method.dispatchEvent(new Event('change', { bubbles: true }));
        }""")
        expect(call.field("config.json")).to_be_visible()
        call.panel.get_by_role("textbox", name="Address", exact=True).blur()
    call.settled()
    assert config(lead) == {"method": "POST", "url": "https://crm.example/deals"}
    expect(call.page.get_by_role("dialog", name="changed this flow")).to_have_count(0)
    assert max(Counter(edit["revision"][0] for edit in sent).values()) == 1


def test_many_edits_at_once_go_out_one_after_the_other(call, lead, sent):  # noqa: F811
    """Each answer renews the panel; what it shows of the edits that still wait is what was typed."""
    before = call.revision
    held = hold_back(call.page)
    with call.page.expect_request("**/edit/"):
        seen = call.page.evaluate_handle("""() => {
            const seen = [], change = (field, value) => {
                const box = document.querySelector(`[data-field="${field}"] :is(select, input)`);
                box.value = value;
                box.dispatchEvent(new Event('change', { bubbles: true }));
            };
            document.addEventListener('draft:saved', () => seen.push(document.querySelector('[data-field="config.url"] input').value));
            for (const method of ['POST', 'GET', 'PUT']) change('config.method', method), change('timeout', method.length + 5 + 's');
            change('config.url', 'https://crm.example/deals');
            return seen;
        }""")
    with call.saved():
        let_go(call.page, held)
    call.settled()
    assert config(lead) == {"method": "PUT", "url": "https://crm.example/deals"}
    assert set(seen.json_value()) == {"https://crm.example/deals"}
    revisions = [int(edit["revision"][0]) for edit in sent]
    assert revisions == list(range(before, before + len(sent))) and call.revision == before + len(sent)


def test_a_step_may_be_filled_in_while_its_new_name_is_saved(call, lead):  # noqa: F811
    held = hold_back(call.page)
    with call.page.expect_request("**/edit/"):
        call.panel.get_by_role("textbox", name="Name", exact=True).fill("Make a deal")
        call.page.keyboard.press("Tab")
    call.panel.get_by_role("textbox", name="Address", exact=True).fill("https://crm.example/deals")
    call.page.keyboard.press("Enter")
    let_go(call.page, held)
    call.settled()
    expect(call.panel).to_have_attribute("data-owner", "make_a_deal")
    assert find(definition(lead), "make_a_deal")["config"]["url"] == "https://crm.example/deals"


def test_an_answer_leaves_open_the_tab_that_was_chosen_meanwhile(call, lead):  # noqa: F811
    for renews in (lambda: call.panel.get_by_role("combobox", name="Method").select_option("POST"),
                   lambda: call.panel.get_by_role("textbox", name="Address", exact=True).fill(f"{ADDRESS}/2")):  # fmt: skip
        call.tab("Setup")
        held = hold_back(call.page)
        with call.page.expect_request("**/edit/"):
            renews()
            call.tab("Safety")
        let_go(call.page, held)
        call.settled()
        expect(call.panel.get_by_role("tab", name="Safety")).to_have_attribute("aria-selected", "true")
        expect(call.panel.get_by_role("tab", selected=True)).to_have_count(1)
        expect(call.panel.get_by_role("tabpanel")).to_have_attribute("id", "p-safety")
        call.page.unroute("**/edit/")


def test_what_did_not_work_is_said_in_the_colour_of_a_failure(call):
    colours = call.page.evaluate("""async () => {
        const { toast } = await import('hf/toast');
        return ['succeeded', 'failed', 'attention'].map(kind => {
            toast({ message: kind, kind });
            return getComputedStyle(document.querySelector('.toasts .toast .si')).color;
        });
    }""")
    assert len(set(colours)) == 3
