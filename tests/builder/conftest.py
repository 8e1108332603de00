"""What tests of the pages share."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client


@pytest.fixture
def operator(client) -> Any:
    """Somebody who may operate the first team's flows, signed in with `client`."""
    from tests.builder import factories

    person = factories.user("operator")
    client.force_login(person)
    return person


@pytest.fixture
def ines(db) -> Client:
    """The browser of a builder of the first team."""
    from tests.builder import factories

    browser = Client()
    browser.force_login(factories.user("builder", name="ines"), "django.contrib.auth.backends.ModelBackend")
    return browser
