"""What tests of API calls share: a server that may be called, and a call that fails."""

from __future__ import annotations

import pytest

from runtime.steps import oauth
from runtime.steps.base import StepError
from tests.runtime.support import run_step
from tests.servers.api import Server


@pytest.fixture(autouse=True)
def allowed(settings):
    settings.HOLDFAST_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    oauth._tokens.clear()
    oauth._in_form.clear()


@pytest.fixture
def server():
    with Server() as made:
        yield made


def failing(config, **more) -> StepError:
    with pytest.raises(StepError) as caught:
        run_step("http", config, **more)
    return caught.value
