"""The main job, as its people do it: a flow is built by clicking and published, a webhook starts it, its workers are
killed on the way, an approver answers from a mail, and the run can be read step by step. Nothing happens twice."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.builder_page import BuilderPage
from tests.e2e.people import panel_of, post, sees_state, sign_in
from tests.e2e.stack import Holdfast, eventually
from tests.servers.ai import AiServer
from tests.servers.crm import Crm
from tests.servers.smtp import SmtpServer, Taken

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
DANA, LEE = "dana@example.com", "lee@example.com"
HOT = {
    "email": "priya@halden.example",
    "company": "Halden Robotics",
    "attendees": [{"id": "p-1"}, {"id": "p-2"}, {"id": "p-3"}],
}
COLD = {"email": "sam@small.example", "company": "Small Bakery", "attendees": [{"id": "p-4"}]}
LATE = {"email": "noor@vela.example", "company": "Vela Freight", "attendees": []}


@pytest.fixture
def holdfast(starting, smtp) -> Holdfast:
    return starting(EMAIL_URL=smtp.url)


def test_the_main_job(
    holdfast: Holdfast, ai: AiServer, crm: Crm, smtp: SmtpServer, ines: Page, browser: Browser
) -> None:
    sign_in(ines, holdfast)
    connect(
        ines, "OpenAI-compatible", {"Name": "AI", "Base address": ai.base_url, "API key": "sk-1", "Model": "gpt-5-mini"}
    )
    connect(ines, "Bearer token", {"Name": "CRM", "Base address": crm.url, "Token": "crm-1"})
    flow = build_lead_qualification(ines)
    flow.publish("Leads above 70 go to Dana and Lee")
    address = webhook_address(flow)

    # A hot lead: its workers die while the AI thinks
    crm.control(require="Bearer crm-1")
    ai.control(hold="hang", hold_times=1)
    hot = post(address, HOT, event="lead-1")
    assert post(address, HOT, event="lead-1", status=200) == hot, "the same event started another run"
    ai.wait_requests(1)
    holdfast.kill_workers()
    ines.goto(hot["url"])
    sees_state(ines, "Waiting")
    sees_wait(ines, "Approve VIP outreach", "Waiting for 1 of 2 people")
    first, second = ai.requests()
    assert first["headers"]["idempotency-key"] == second["headers"]["idempotency-key"]

    # A cold lead waits two days, which pass
    ai.control(answer={"score": 12, "reason": "Only looks around"})
    cold = post(address, COLD, event="lead-2")
    ines.goto(cold["url"])
    sees_wait(ines, "Wait 2 days", "Wakes in")
    holdfast.advance(days=2, minutes=1)
    sees_state(ines, "Succeeded")
    assert mail_to(smtp, COLD["email"])["message"]["Subject"] == "Hello, Small Bakery"

    # The hot one is approved on a phone; the workers die when the CRM has the deal and we do not know it
    crm.control(after_commit="hang", after_commit_times=1)
    approve_on_a_phone(browser, link_in(mail_to(smtp, DANA)), "Good fit. Mention the fleet plan.")
    eventually(lambda: deals(crm, HOT), "the CRM has the deal")
    holdfast.kill_workers()
    ines.goto(hot["url"])
    sees_state(ines, "Succeeded")
    reads_the_run(ines)
    assert [row["effect"] for row in deals(crm, HOT)] == [True, False]

    # The same flow, but a person is asked instead of repeating
    flow = open_flow(ines)
    flow.select("Create deal")
    flow.tab("Safety & retries")
    flow.check("Ask a person")
    flow.publish("Deals are never made twice: ask")
    ai.control(answer={"score": 91, "reason": "Wants to buy this quarter"})
    crm.control(after_commit="hang", after_commit_times=1)
    late = post(address, LATE, event="lead-3")
    approve_on_a_phone(browser, link_in(mail_to(smtp, LEE, about=LATE["email"])), "Go")
    eventually(lambda: deals(crm, LATE), "the CRM has the second deal")
    holdfast.kill_workers()
    ines.goto(late["url"])
    sees_state(ines, "Needs attention")
    it_happened(ines, {"status": 201, "body": {"id": 7}})
    sees_state(ines, "Succeeded")
    assert [row["effect"] for row in deals(crm, LATE)] == [True]
    every_effect_happened_once(crm)


# Before there is a flow


def connect(page: Page, kind: str, values: dict[str, str]) -> None:
    page.get_by_role("link", name="Connections").click()
    page.get_by_role("link", name="New connection").first.click()
    page.get_by_role("link", name=kind).click()
    for label, value in values.items():
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Create connection").click()
    expect(page.get_by_text(f"Connection {values['Name']} is ready to use.")).to_be_visible()


# Building


def build_lead_qualification(page: Page) -> BuilderPage:
    page.get_by_role("link", name="Flows").click()
    page.get_by_role("button", name="New flow").click()
    page.get_by_label("Name").fill("Leads by score")
    page.get_by_role("button", name="Make it").click()
    flow = BuilderPage(page).ready()
    flow.trigger("Webhook", "New lead")
    flow.fill("Same event", "headers['x-event-id']")
    score_the_lead(flow)
    flow.add("Add a step before the end", "Condition", "Hot lead?")
    flow.press("Add rule")
    flow.fill("Value to check", "steps.qualify_lead.output.score")
    flow.choose("Comparison", "is greater than")
    flow.fill("Compare with", "70")
    ask_for_approval(flow)
    make_a_deal(flow)
    write_two_days_later(flow)
    invite_the_attendees(flow)
    return flow


def score_the_lead(flow: BuilderPage) -> None:
    flow.add("Add a first step", "AI", "Qualify lead")
    flow.choose("Task", "Extract")
    flow.fill("Input", "Score this lead: {{ trigger.body }}")
    for name, type_ in (("score", "Whole number"), ("reason", "Text")):
        flow.panel.get_by_role("button", name="Add field").click()
        flow.fill("Name of the field", name)
        flow.choose("Type", type_)
    flow.choose("Is it always there?", "May be missing")
    flow.choose("Connection", "AI")


def ask_for_approval(flow: BuilderPage) -> None:
    flow.add("Add a step at the start of the Yes lane", "Approval", "Approve VIP outreach")
    flow.rows("Approvers", "Add address", [DANA, LEE])
    flow.choose("Who has to answer", "Any one of them")
    flow.duration("Answer within", "3", "days")
    flow.fill("Question", "VIP outreach to {{ trigger.body.email }}?")


def make_a_deal(flow: BuilderPage) -> None:
    flow.add("Add a step after Approve VIP outreach", "API call", "Create deal")
    flow.choose("Connection", "CRM")
    flow.choose("Method", "POST")
    flow.fill("Address", "/deals")
    flow.panel.get_by_role("group", name="Body").get_by_role("button", name="Add field").click()
    flow.fill("Name", "email", within=flow.group("Body"))
    flow.fill("Value", "{{ trigger.body.email }}")
    flow.tab("Safety & retries")
    flow.check("Safe to repeat")


def write_two_days_later(flow: BuilderPage) -> None:
    flow.add("Add a step at the start of the No lane", "Delay", "Wait 2 days")
    flow.duration("Wait for", "2", "days")
    flow.add("Add a step after Wait 2 days", "E-mail", "Nurture")
    flow.rows("To", "Add address", ["{{ trigger.body.email }}"])
    flow.fill("Subject", "Hello, {{ trigger.body.company }}")
    flow.fill("Text", "Here is a short tour.")


def invite_the_attendees(flow: BuilderPage) -> None:
    flow.add("Add a step before the end", "Loop", "For each attendee")
    flow.fill("For each of", "trigger.body.attendees")
    flow.fill("At the same time", "5")
    flow.add("Add a step at the start of For each attendee", "API call", "Register attendee")
    flow.choose("Connection", "CRM")
    flow.choose("Method", "PUT")
    flow.fill("Address", "/people/{{ loop.item.id }}")


def open_flow(page: Page) -> BuilderPage:
    page.get_by_role("link", name="Flows").click()
    page.get_by_role("link", name="Leads by score").first.click()
    return BuilderPage(page).ready()


def webhook_address(flow: BuilderPage) -> str:
    flow.page.get_by_role("button", name="Fit the whole flow").click()  # the view is still where the last step was made
    flow.select("New lead")
    return flow.panel.get_by_label("Address of the webhook").input_value()


# Running


def sees_wait(page: Page, step: str, words: str) -> None:
    expect(panel_of(page, step)).to_contain_text(words)


def mail_to(smtp: SmtpServer, address: str, about: str = "") -> Taken:
    def find() -> Taken | None:
        to_them = (one for one in smtp.taken if one["recipients"] == [address])
        return next((one for one in to_them if about in one["message"]["Subject"]), None)

    return eventually(find, f"a mail to {address}")


def link_in(mail: Taken) -> str:
    text = mail["message"].get_body(("plain",)).get_content()
    return re.search(r"http://\S+/a/\S+/", text)[0]


def approve_on_a_phone(browser: Browser, link: str, comment: str) -> None:
    """By somebody who is not signed in, with scripts off."""
    context = browser.new_context(java_script_enabled=False, viewport=PHONE)
    phone = context.new_page()
    phone.goto(link)
    phone.get_by_label("Comment").fill(comment)
    phone.get_by_role("button", name="Approve").click()
    expect(phone.get_by_role("heading", name="You approved this")).to_be_visible()
    context.close()


def it_happened(page: Page, output: dict) -> None:
    panel = panel_of(page, "Create deal")
    panel.get_by_text("It happened", exact=True).click()
    panel.get_by_label("Output of the step").fill(json.dumps(output))
    panel.get_by_role("button", name="Go on with this output").click()


# Afterwards


def reads_the_run(page: Page) -> None:
    """Step by step: what went in and came out, which attempts there were, who decided."""
    reads(page, "New lead", "Input", HOT["company"])
    reads(page, "Qualify lead", "Attempts", "Attempt 2")
    reads(page, "Qualify lead", "Output", "82")
    reads(page, "Approve VIP outreach", "Output", "Good fit. Mention the fleet plan.")
    reads(page, "Create deal", "Attempts", "Same Idempotency-Key on all 2")
    reads(page, "Create deal", "Output", "priya@halden.example")
    steps = page.get_by_role("treegrid", name="Steps of this run")
    expect(steps.get_by_role("row", name=re.compile("For each attendee"))).to_contain_text("3 of 3")
    expect(steps.get_by_role("row", name=re.compile("No lane"))).to_contain_text("not taken")


def reads(page: Page, step: str, tab: str, words: str) -> None:
    panel = panel_of(page, step)
    panel.get_by_role("tab", name=tab).click()
    expect(panel.get_by_role("tabpanel", name=tab)).to_contain_text(words)


def deals(crm: Crm, lead: dict) -> list[dict]:
    """The calls that the CRM was sent for a lead."""
    return [row for row in crm.ledger() if row["path"] == "/deals" and row["body"] == {"email": lead["email"]}]


def every_effect_happened_once(crm: Crm) -> None:
    """Each under a key of its own, and a repeat under the key of the call that it repeats."""
    ledger = crm.ledger()
    effects = Counter((row["path"], json.dumps(row["body"])) for row in ledger if row["effect"])
    people = [attendee["id"] for lead in (HOT, COLD, LATE) for attendee in lead["attendees"]]
    assert effects == Counter(
        [(f"/people/{person}", "null") for person in people]
        + [("/deals", json.dumps({"email": lead["email"]})) for lead in (HOT, LATE)]
    )
    keys = {(row["key"], row["path"], json.dumps(row["body"])) for row in ledger}
    assert all(key for key, _, _ in keys)
    assert len({key for key, _, _ in keys}) == len(keys) == effects.total()
