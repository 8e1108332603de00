"""The builder's page in a browser, with somebody signed in and a flow to work on: fixtures and gestures for the tests of the
builder. A test file imports the fixtures that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page

from builder import drafts
from builder.examples import example
from builder.flowmaking import make_flow
from builder.teams import ensure_default_team
from runtime.models import Workflow
from tests.e2e.builder_page import BuilderPage
from tests.e2e.people import enter, listen


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def ines(transactional_db):
    user = get_user_model().objects.create_superuser("ines", "ines@example.com", "pw", first_name="Ines", last_name="Carvalho")
    ensure_default_team(user)
    return user


def signed_in(page: Page, live_server, user, complaints: list[str]) -> BuilderPage:
    enter(page, live_server, user)
    listen(page, complaints)
    return BuilderPage(page, live_server.url)


@pytest.fixture
def builder(page, live_server, ines, complaints) -> Iterator[BuilderPage]:
    page.set_viewport_size({"width": 1440, "height": 900})
    yield signed_in(page, live_server, ines, complaints)
    assert complaints == []


@pytest.fixture
def lead(ines):
    return make_flow(ensure_default_team(ines), "Lead qualification", user=ines, definition=example("lead_qualification"))


def definition(flow: Workflow | None = None) -> dict[str, Any]:
    """The draft as it is stored; of the newest flow when none is named."""
    flow = flow or Workflow.objects.order_by("-pk").first()
    return drafts.load(flow).definition


def lift(page: Page, source: str, target: str) -> None:
    """Press on a card, and hold it over a place."""
    start, end = page.locator(source).bounding_box(), page.locator(target).bounding_box()
    page.mouse.move(start["x"] + 120, start["y"] + 20)
    page.mouse.down()
    page.mouse.move(start["x"] + 140, start["y"] + 40, steps=3)
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=8)


def drag(page: Page, source: str, target: str) -> None:
    lift(page, source, target)
    page.mouse.up()
