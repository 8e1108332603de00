"""`make screenshots`: pictures of the pages, in both themes, of a Holdfast that has worked for a while.

Options: --out FOLDER (`.screenshots`), --readme (also renews the two pictures of the README). Everything in the pictures is
real: flows are published, events are sent, mails are answered, and a server that refuses makes runs fail.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, sync_playwright

from tests.browser import browser
from tests.e2e.builder_page import BuilderPage
from tests.e2e.people import post, sign_in
from tests.e2e.stack import ROOT, Holdfast, eventually
from tests.servers.crm import Crm

SIZE = {"width": 1440, "height": 900}
README = {"builder": "readme-builder.png", "run": "readme-run.png"}
COMPANIES = (
    ("Halden Robotics", "Priya Raman", 480, "We are 480 people and want to buy 40 seats this quarter. Can you send a quote?"),
    ("Tallis & Co", "Ana Tallis", 210, "Please send us a price for 60 seats, we decide before June."),
    ("Bramble Foods", "Joe Lind", 95, "We would like a demo next week and a quote for 20 seats."),
    ("Corvid Press", "Mia Corvo", 12, "I am a student and only look around for my thesis."),
    ("Juniper Health", "Tom Weber", 320, "Can we get a quote for 80 seats? We want to start in March."),
    ("Nordlicht", "Eva Holm", 8, "Just having a look, no plans yet."),
)
OUTCOMES = (("Bramble Foods", 0, "succeeded"), ("Tallis & Co", 422, "failed"), ("Juniper Health", 0, "succeeded"))
"""Approved leads, the status with which the CRM refuses, and how their runs end. The first company's lead waits."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / ".screenshots")
    parser.add_argument("--readme", action="store_true")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="holdfast-shots-"))
    folder.chmod(0o711)  # the database's user passes through when we are root
    try:
        with Crm(ledger=folder / "crm.db") as crm, Holdfast(folder, HOLDFAST_LEASE_SECONDS="30") as holdfast:
            take(holdfast, crm, chosen.out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, target in README.items() if chosen.readme else ():
        shutil.copyfile(chosen.out / f"{name}-light.png", ROOT / "static" / "img" / target)
    print(f"{len(list(chosen.out.glob('*.png')))} pictures in {chosen.out}")


def take(holdfast: Holdfast, crm: Crm, out: Path) -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser())
        page = chromium.new_page(viewport=SIZE, reduced_motion="reduce")
        page.set_default_timeout(60_000)
        sign_in(page, holdfast)
        runs = history(page, holdfast, crm)
        for name, shown in pages(page, holdfast, runs):
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                page.wait_for_timeout(250)  # colours fade
                shown.screenshot(path=out / f"{name}-{theme}.png")
            print(name, flush=True)
        chromium.close()


# What has happened before


def history(page: Page, holdfast: Holdfast, crm: Crm) -> dict[str, Any]:
    """Publish a flow that calls a CRM, send it leads, answer some, and let one be refused."""
    flow = published(page, holdfast, crm)
    builder = BuilderPage(page, holdfast.url).open(flow)
    builder.select("New lead")
    hook = builder.panel.get_by_label("Address of the webhook").input_value()
    runs = {company: post(hook, lead(*told), status=202)["run"] for told in COMPANIES for company in told[:1]}
    asked = eventually(lambda: [w for w in waiting(holdfast) if w[0] == runs["Juniper Health"]], "the leads are read")
    assert asked
    for company, refuse, end in OUTCOMES:
        crm.control(refuse=refuse)
        decide(page, holdfast, runs[company])
        ended = "select 1 from run where id = %s and state = %s"
        eventually(lambda: holdfast.sql(ended, runs[company], end), f"{company}: {end}")  # noqa: B023 - asked at once
    for number in range(3):
        ticket(page, holdfast, number)
    return {"flow": flow, **runs}


def published(page: Page, holdfast: Holdfast, crm: Crm) -> int:
    definition = json.loads((ROOT / "builder/example_flows/10_lead_qualification.json").read_text())
    deal = {
        "id": "create_deal",
        "type": "http",
        "name": "Create deal in CRM",
        "config": {
            "method": "POST",
            "url": f"{crm.url}/v1/deals",
            "json": {"company": "{{ trigger.body.company }}", "contact": "{{ trigger.body.email }}"},
        },
        "on_interrupted": "repeat",
    }
    definition["steps"][1]["branches"][0]["steps"].insert(1, deal)
    page.goto(holdfast.url)
    file = {"name": "flow.json", "mimeType": "application/json", "buffer": json.dumps(definition).encode()}
    token = page.locator("#import-form input[name=csrfmiddlewaretoken]").get_attribute("value")
    answer = page.request.post(f"{holdfast.url}/flows/import/", multipart={"csrfmiddlewaretoken": token, "file": file})
    flow = int(answer.url.rstrip("/").rsplit("/", 1)[1])
    BuilderPage(page, holdfast.url).open(flow).publish("Deals go to the CRM")
    return flow


def lead(company: str, name: str, employees: int, message: str) -> dict[str, Any]:
    address = f"{name.lower().replace(' ', '.')}@{company.split()[0].lower()}.example"
    people = [{"name": name, "email": address}]
    return {"id": company, "company": company, "email": address, "employees": employees, "message": message, "attendees": people}


def waiting(holdfast: Holdfast) -> list[tuple]:
    return holdfast.sql("select run_id, id from wait where kind = 'approval' and state = 'open'")


def decide(page: Page, holdfast: Holdfast, run: int) -> None:
    """Approve what this run asks."""
    [wait] = eventually(lambda: [one for of, one in waiting(holdfast) if of == run], f"run {run} asks")
    page.goto(f"{holdfast.url}/approvals/{wait}/")
    page.get_by_role("button", name="Approve", exact=True).click()
    eventually(lambda: run not in [of for of, _ in waiting(holdfast)], f"the answer for run {run} counts")


def ticket(page: Page, holdfast: Holdfast, number: int) -> None:
    """A ticket for the example that a new installation has."""
    [(token,)] = holdfast.sql(
        "select t.token from trigger t join workflow w on w.id = t.workflow_id where w.name = 'Support triage' and t.enabled"
    )
    texts = ("I cannot sign in since this morning.", "My last invoice is too high.", "The export fails with an error.")
    body = {"id": f"T-{number}", "from": "sam@customer.example", "subject": texts[number][:28], "text": texts[number]}
    post(f"{holdfast.url}/hooks/{token}/", body)


# The pages


def pages(page: Page, holdfast: Holdfast, runs: dict[str, Any]) -> Iterator[tuple[str, Page | Locator]]:
    """(name, what to take). Each is left as it is while it is taken."""
    builder = BuilderPage(page, holdfast.url)
    page.goto(holdfast.url)
    yield "flows", page
    page.goto(f"{holdfast.url}/flows/examples/")
    yield "examples", page
    with edited(builder, runs["flow"]):
        yield "builder", page
    page.get_by_role("button", name="Add a step after Qualify lead").click()
    page.get_by_role("dialog").get_by_role("combobox").wait_for()
    yield "picker", page
    page.keyboard.press("Escape")
    builder.select("Create deal in CRM")
    yield "api-call", page
    builder.tab("Safety & retries")
    yield "safety", page
    builder.select("Nurture")
    builder.tab("Setup")
    builder.field("config.body").locator(".expr").focus()
    page.keyboard.press("End")
    page.keyboard.type(" {{ trigger.")
    page.locator("#complete [role=option]").first.wait_for()
    yield "completion", page
    for name, company in (("run", "Halden Robotics"), ("run-failed", "Tallis & Co"), ("run-done", "Bramble Foods")):
        page.goto(f"{holdfast.url}/runs/{runs[company]}/")
        yield name, page
    for name in ("runs", "operations", "approvals"):
        page.goto(f"{holdfast.url}/{name}/" + ("?all=1" if name == "approvals" else ""))
        yield name, page
    page.goto(f"{holdfast.url}/approvals/{waiting(holdfast)[0][1]}/")
    yield "approval", page
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    yield "approval-phone", page
    page.set_viewport_size(SIZE)


@contextmanager
def edited(builder: BuilderPage, flow: int) -> Iterator[None]:
    """A draft in the middle of being changed: a rule without a value, and a reference that leads nowhere."""
    builder.open(flow)
    builder.select("Create deal in CRM")
    builder.write(builder.field("config.json").locator(".expr").last, "{{ steps.qualify.output.labl }}")
    builder.add("Add a step after Send intro", "Delay", "Let it settle")
    builder.select("Hot lead?")
    rule = builder.field("branches.0.when")
    rule.get_by_role("button", name="Add rule").click()
    rule.get_by_role("textbox", name="Value to check").last.click()
    builder.insert_data("trigger.body.email")
    builder.choose("Comparison", "does not end with", rule)
    builder.settled()
    rule.get_by_role("textbox", name="Compare with").last.focus()
    builder.page.mouse.move(700, 860)
    time.sleep(0.5)  # the last answer is drawn
    yield


if __name__ == "__main__":
    main()
