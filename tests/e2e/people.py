"""What people and other systems do, by the names that are on the screens."""

from __future__ import annotations

import json
from urllib.request import ProxyHandler, Request, build_opener

from django.conf import settings
from django.test import Client
from playwright.sync_api import Locator, Page, expect

from tests.e2e.stack import ADMIN, PASSWORD, Holdfast


def sign_in(page: Page, holdfast: Holdfast) -> None:
    page.goto(holdfast.url)
    page.get_by_label("User name").fill(ADMIN)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Flows", exact=True)).to_be_visible()


def enter(page: Page, live_server, user) -> None:
    """Signed in at once, on a server of the test's own process, and without motion."""
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page.emulate_media(reduced_motion="reduce")


def listen(page: Page, complaints: list[str] | None = None) -> list[str]:
    """What the browser complains about from now on: script errors, what the content security policy forbids."""
    heard = [] if complaints is None else complaints
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
    return heard


def post(address: str, body: dict, event: str = "", status: int = 202) -> dict:
    """What a sender of webhooks gets: `{"run", "url"}`, with 202 for a run that began and 200 for one that is known."""
    headers = {"Content-Type": "application/json", "X-Event-Id": event}
    request = Request(address, json.dumps(body).encode(), headers)
    with build_opener(ProxyHandler({})).open(request, timeout=30) as answer:
        assert answer.status == status
        return json.loads(answer.read())


def sees_state(page: Page, word: str) -> None:
    """On the run page, which follows the run by itself."""
    expect(page.get_by_role("region", name="Run summary").get_by_text(word, exact=True)).to_be_visible()


def panel_of(page: Page, step: str) -> Locator:
    """The details of a step, chosen unless it is already."""
    link = page.get_by_role("link", name=step, exact=True)
    if link.get_attribute("aria-current") is None:
        link.click()
    expect(link).to_have_attribute("aria-current", "true")
    return page.get_by_role("complementary", name=f"Step: {step}")
