"""The browser of somebody who operates runs, with rows as the engine leaves them: fixtures for the tests of their pages. A
test file imports the fixtures that it uses."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from runtime import jobs
from tests.builder import factories
from tests.e2e.people import enter, listen


@pytest.fixture(autouse=True)
def recent(monkeypatch):
    monkeypatch.setattr(factories, "START", timezone.now() - timedelta(minutes=10))


@pytest.fixture
def complaints(page) -> list[str]:
    return listen(page)


@pytest.fixture
def desk(page, live_server, complaints):
    """A browser in which an operator is signed in; in the end it must have had nothing to complain about."""
    enter(page, live_server, factories.user("operator", name="ines", first_name="Ines", last_name="Carvalho"))
    page.set_viewport_size({"width": 1440, "height": 900})
    yield page
    assert complaints == []


def confirm_and_work_off(desk, count: int) -> None:
    """Say yes in the dialog that is open, and have the job over so many runs done; its page shows how it goes."""
    desk.locator("dialog[open] [data-yes]").click()
    expect(desk.get_by_text(f"0 of {count} runs")).to_be_visible()
    jobs.work_off(lambda: False)
    expect(desk.get_by_text(f"{count} of {count} runs")).to_be_visible()
