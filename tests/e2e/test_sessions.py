"""Somebody goes away from an open page: it keeps nobody signed in, and nothing that they did is lost when they come back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from runtime.publish import publish
from runtime.starts import start
from tests.builder import factories
from tests.e2e.flows import builder, complaints, definition, ines, lead  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ASK = {"id": "ok", "type": "approval", "name": "Look at it", "config": {"approvers": ["dana@example.com"], "subject": "Go?", "form": []}}


def an_hour_passes() -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))


def test_pages_that_are_open_say_that_nobody_is_at_them(builder, lead, ines):  # noqa: F811
    """Each of these asks by itself whether there is something new, and says so."""
    page = builder.page
    version = publish(lead, {"format": 1, "name": "Leads", "steps": [ASK]}, user=ines)
    run = start(version, trigger_key="", input={}, test=True).run_id
    asks = {
        reverse("run", args=[run]): "/live/",
        reverse("runs"): reverse("runs"),
        reverse("operations"): reverse("operations"),
        reverse("flow", args=[lead.pk]): "/status/",
    }
    for address, asked in asks.items():
        page.goto(f"{builder.base}{address}")
        with page.expect_request(lambda request: request.resource_type in ("fetch", "xhr") and asked in request.url) as found:
            pass
        assert found.value.headers.get("hf-unattended") == "1", address
    with page.expect_request(lambda request: "/panel/" in request.url) as found:
        page.locator("#stage .step__name").last.click()
    assert "hf-unattended" not in found.value.headers, "and this was somebody"
    listen = reverse("flow_listen", args=[lead.pk])
    with page.expect_request(lambda request: listen in request.url and request.method == "GET") as found:
        page.evaluate("address => void htmx.ajax('POST', address, {target: '#layer'})", listen)
    assert found.value.headers.get("hf-unattended") == "1", "waiting for a call"


def test_whoever_was_away_for_an_hour_signs_in_again_and_loses_no_edit(builder, lead, complaints):  # noqa: F811
    builder.open(lead.pk)
    an_hour_passes()
    builder.menu("send_intro", "Duplicate")
    page = builder.page
    expect(page.get_by_role("heading", name="Sign in to go on")).to_be_visible()
    assert "send_intro_2" not in str(definition(lead))
    page.get_by_label("User name").fill("ines")
    page.get_by_label("Password").fill("pw")
    page.get_by_role("button", name="Sign in").click()
    expect(builder.ready().card("send_intro_2")).to_be_visible()
    page.wait_for_function("() => !('saving' in document.getElementById('board').dataset)")
    assert "send_intro_2" in str(definition(lead))
    complaints[:] = [one for one in complaints if "403" not in one and "401" not in one]


def test_what_somebody_left_unsaved_is_not_saved_by_who_signs_in_after_them(builder, lead, complaints):  # noqa: F811
    factories.user("builder", name="otto", of=lead.team)
    builder.open(lead.pk)
    an_hour_passes()
    builder.menu("send_intro", "Duplicate")
    page = builder.page
    expect(page.get_by_role("heading", name="Sign in to go on")).to_be_visible()
    for who, cards in (("otto", 0), ("ines", 1)):
        page.get_by_label("User name").fill(who)
        page.get_by_label("Password").fill("pw")
        page.get_by_role("button", name="Sign in").click()
        expect(builder.ready().card("send_intro_2")).to_have_count(cards)
        page.wait_for_function("() => !('saving' in document.getElementById('board').dataset)")
        assert ("send_intro_2" in str(definition(lead))) == bool(cards)
        page.context.clear_cookies()
        page.reload()
    complaints[:] = [one for one in complaints if "403" not in one and "401" not in one]


def test_a_page_is_not_taken_from_under_what_somebody_types(builder, lead, ines, complaints):  # noqa: F811
    run = factories.run(factories.version())
    factories.attempt(run, "qualify", 1, 1, 2, "unknown")
    factories.wait(run, "qualify", "person", 2, data={"reason": "uncertain", "attempt": 1})
    page = builder.page
    page.goto(f"{builder.base}{reverse('run', args=[run.pk])}?step=qualify")
    page.get_by_text("It happened", exact=True).click()
    box = page.get_by_label("Output of the step")
    box.fill('{"score": 82}')
    with page.expect_response(lambda response: "/live/" in response.url and "hx-redirect" in response.headers):
        an_hour_passes()
    expect(page.locator("hf-live[stopped]")).to_have_count(1)
    expect(page.locator("#live-status")).to_have_text("Signed out. Nothing here is renewed.")
    expect(box).to_have_value('{"score": 82}')
    box.blur()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in to go on")).to_be_visible()
