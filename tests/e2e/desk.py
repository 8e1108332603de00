"""The browser of somebody who operates runs, with rows as the engine leaves them: fixtures for the tests of their pages. A
test file imports the fixtures that it uses."""

from __future__ import annotations

from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone

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


def barriers(page, complaints) -> list[str]:
    """What axe finds. It injects styles, of which the browser complains: that is not our affair, and may come late."""
    found = Axe().run(page, options={"preload": False}).response["violations"]
    page.wait_for_timeout(100)
    complaints[:] = [text for text in complaints if "style" not in text]
    return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found]


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")
