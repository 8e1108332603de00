"""What the oracle lets pass, and what it does not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.chaos.oracle import Judged, Verdict
from tests.chaos.programs import Program
from tests.chaos.steps import Play

LANES = "parallel1/l0/call2"


def judged(state: str, *, refused: set[str], cancelled: bool = True, failed: str = LANES) -> Verdict:
    """A run in this state, of a program whose every step must succeed and in which one step has failed."""
    play = Play()
    for path, value in ((LANES, 7), ("parallel1", 1), ("call3", 8)):
        play.gives(path, value)
    found = dict(play.results) | {failed: ("failed", None)}
    tables = SimpleNamespace(runs={1: (state, None)}, results={1: found}, mails={1: play.mails}, attempts={1: []})
    verdict = Verdict()
    Judged(1, Program("Program", [], play, refused=refused), tables, SimpleNamespace(by_run={1: []}), verdict, cancelled).all()
    return verdict


@pytest.mark.parametrize("failed", [LANES, "parallel1"])
def test_a_run_may_be_cancelled_between_a_refusal_and_its_end(failed):
    assert judged("cancelled", refused={"call2"}, failed=failed).breaches() == []


@pytest.mark.parametrize(
    ("state", "refused", "cancelled", "failed"),
    [
        ("succeeded", {"call2"}, True, LANES),
        ("cancelled", {"call2"}, False, LANES),
        ("cancelled", set(), True, LANES),
        ("cancelled", {"call2"}, True, "call3"),
    ],
)
def test_a_failure_without_such_a_cause_is_told(state, refused, cancelled, failed):
    told = judged(state, refused=refused, cancelled=cancelled, failed=failed)
    assert any(f"{failed} gave ('failed', None)" in words for words in told.wrong)
