"""Values become JSON text, or an error that says why not."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.masking import Masker
from runtime.storing import GIVE_LESS, LARGEST_VALUE, Unstorable, encode, json_text

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(VALUES)
def test_the_text_is_compact_json_of_the_value(value):
    assert encode(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def holds_itself() -> list:
    value: list = [1]
    value.append({"again": value})
    return value


@pytest.mark.parametrize("value", [
    float("nan"), [float("inf")], {"at": datetime(2026, 1, 1)}, Decimal(2), b"bytes", {1, 2}, {(1, 2): 3}, object(),
    holds_itself(), "\ud83d", {"key\ud83d": 1}, ["\0"],
])  # fmt: skip
def test_what_is_no_json_is_refused_each_time_and_leaves_nothing_behind(value):
    for _ in range(2):
        with pytest.raises(Unstorable):
            json_text(value, Masker(), "The output", LARGEST_VALUE, GIVE_LESS)
    assert json_text([1], Masker(), "The output", LARGEST_VALUE, GIVE_LESS) == "[1]"
