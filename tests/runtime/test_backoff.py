"""Whether a failed attempt is followed by another, and when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.backoff import RetryPolicy
from runtime.shape import Retry

NEVER = 10**9


def test_parts_that_a_step_leaves_out_have_their_defaults():
    assert RetryPolicy.of(Retry().model_dump()) == RetryPolicy(), "what the definition says by default"
    assert RetryPolicy.of(None) == RetryPolicy() == RetryPolicy(4, 1.0, 300.0, 3600.0)
    assert RetryPolicy.of({"first": "2s"}) == RetryPolicy(first=2.0)
    assert RetryPolicy.of({"max_attempts": 1, "longest": "1m", "total": "1d"}) == RetryPolicy(1, 1.0, 60.0, 86400.0)


@given(failures=st.integers(1, 100), first=st.floats(0.001, 1000), longest=st.floats(0.001, 10000))
def test_pauses_stay_between_nothing_and_the_ceiling(failures, first, longest):
    policy = RetryPolicy(101, first, longest, NEVER)
    pause = policy.pause(failures, 0, None, 3600)
    assert 0 <= pause <= policy.ceiling(failures) <= longest
    assert policy.ceiling(1) == min(first, longest)


def test_pauses_are_spread_over_the_whole_range():
    policy = RetryPolicy(5, 8.0, 300, NEVER)
    pauses = [policy.pause(1, 0, None, 0) for _ in range(400)]
    assert min(pauses) < 1 and max(pauses) > 7


def test_the_other_side_sets_the_floor_up_to_a_cap():
    policy = RetryPolicy(5, 0.001, 300, NEVER)
    assert policy.pause(1, 0, 120, 3600) == 120
    assert policy.pause(1, 0, 10**6, 3600) == 3600


def test_no_attempt_after_the_last_or_after_the_total_time():
    policy = RetryPolicy(3, 0.001, 300, total=60)
    assert policy.pause(2, 0, None, 0) is not None
    assert policy.pause(3, 0, None, 0) is None
    assert policy.pause(1, 61, None, 0) is None
    assert policy.pause(1, 30, 40, 3600) is None, "it would come after the total"
