"""Holdfast and the systems around it, as real processes, for the tests that follow a person from page to page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.people import listen
from tests.e2e.stack import Holdfast
from tests.servers.ai import AiServer
from tests.servers.crm import Crm
from tests.servers.smtp import SmtpServer

PATIENCE_MS = 150_000  # on a machine that does much else
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def context(context: BrowserContext) -> BrowserContext:
    context.set_default_timeout(PATIENCE_MS)
    return context


@pytest.fixture
def ines(page: Page) -> Iterator[Page]:
    """The browser of Ines, who runs Holdfast. In the end it must have had nothing to complain about: no script error, nothing
    that the content security policy forbids."""
    complaints = listen(page)
    yield page
    assert complaints == []


@pytest.fixture
def crm(tmp_path: Path) -> Iterator[Crm]:
    with Crm(ledger=tmp_path / "crm.db") as server:
        yield server


@pytest.fixture
def ai() -> Iterator[AiServer]:
    with AiServer() as server:
        yield server


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        yield server


@pytest.fixture
def starting() -> Iterator[Callable[..., Holdfast]]:
    """Starts a Holdfast from nothing, with these variables in its environment; all are stopped after the test."""
    with ExitStack() as running:

        def start(**variables: str) -> Holdfast:
            folder = Path(tempfile.mkdtemp(prefix="holdfast-e2e-"))
            folder.chmod(0o711)  # the database's user passes through when we are root
            running.callback(shutil.rmtree, folder, ignore_errors=True)
            return running.enter_context(Holdfast(folder, **variables))

        yield start
