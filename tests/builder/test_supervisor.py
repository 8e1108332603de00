"""What is started again for ever, and what is given up."""

from __future__ import annotations

import sys

import pytest

from builder import supervisor
from builder.supervisor import DEATHS_ALLOWED, Child, GaveUp, pause, revive


def test_pauses_grow_and_stay_bounded():
    assert [pause(deaths) for deaths in (1, 2, 3, 4, 5, 9, 40)] == [0, 1, 2, 4, 8, 8, 8]


def test_a_vital_child_that_keeps_dying_ends_everything_and_another_does_not(monkeypatch):
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE_SECONDS", 0)
    told: list[str] = []
    for vital in (True, False):
        child = Child("Thing", [sys.executable, "-c", "raise SystemExit(3)"], {}, vital=vital)
        child.start()
        status = child.process.wait()
        try:
            if vital:
                with pytest.raises(GaveUp, match="Thing stopped 6 times"):
                    revive(child, status, DEATHS_ALLOWED + 1, told.append)
            else:
                revive(child, status, DEATHS_ALLOWED + 1, told.append)
                assert child.process.wait() == 3 and "starting again" in told[0]
        finally:
            child.kill_all()
