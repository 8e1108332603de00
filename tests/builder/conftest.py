"""What tests of the pages share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def operator(client) -> Any:
    """Somebody who may operate the first team's flows, signed in with `client`."""
    from tests.builder import factories

    person = factories.user("operator")
    client.force_login(person)
    return person
