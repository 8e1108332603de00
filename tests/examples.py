"""How many examples a property test tries: a few in an ordinary run, many under `make fuzz`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("HOLDFAST_FUZZ", "1"))


def examples(count: int) -> settings:
    """The settings of a property test. Time is no failure: machines differ."""
    return settings(max_examples=count * FACTOR, deadline=None, suppress_health_check=[HealthCheck.too_slow])
