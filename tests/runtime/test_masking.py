"""Known secrets do not reach what is stored, in whatever dress."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from html import escape
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from runtime.masking import MASK, SHORTEST, Masker, excerpt

SECRET = 'p@ss "wörd"/+&=<x>'


def test_an_empty_masker_gives_the_value_itself():
    value = {"a": [1, "x"]}
    assert Masker().mask(value) is value


def test_every_dress_at_any_depth_in_values_and_keys():
    masker = Masker([SECRET])
    dresses = [
        SECRET, quote(SECRET), quote(SECRET, safe=""), quote_plus(SECRET), quote(SECRET, safe="").lower(),
        escape(SECRET),
        SECRET.encode().hex(), SECRET.encode().hex().upper(),
        json.dumps(SECRET), b64encode(SECRET.encode()).decode(), urlsafe_b64encode(SECRET.encode()).decode(),
    ]  # fmt: skip
    masked = masker.mask({"deep": [{"list": dresses}], f"key {SECRET}": 1, "text": " and ".join(dresses)})
    for dress in dresses:
        assert dress not in json.dumps(masked, ensure_ascii=False)
    assert masked["deep"][0]["list"][0] == MASK and f"key {MASK}" in masked


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)
def test_inside_a_longer_base64_text(before, after):
    masker = Masker(["hunter2-hunter2"])
    for encode in (b64encode, urlsafe_b64encode):
        packed = encode(f"{before}hunter2-hunter2{after}".encode()).decode()
        assert MASK in masker.mask(packed)


def test_basic_authorization_is_masked():
    header = "Basic " + b64encode(b"ann:correct horse").decode()
    masked = Masker(["correct horse"]).mask(header)
    assert MASK in masked and b64encode(b"correct horse").decode().rstrip("=")[4:-2] not in masked


def test_what_is_too_short_to_be_a_secret_is_left():
    masker = Masker(["", "1", "abc"])
    assert masker.mask("1 abc 123") == "1 abc 123"


def test_the_longer_of_two_secrets_goes_whole():
    assert Masker(["token", "token-and-more"]).mask("token-and-more") == MASK


def test_secrets_can_be_added_and_other_values_stay():
    masker = Masker(["first"])
    masker.add(["second"])
    assert masker.mask(["first second", 1, None, True, 1.5]) == [f"{MASK} {MASK}", 1, None, True, 1.5]


@given(st.integers(0, 40))
def test_where_a_text_was_cut_no_half_of_a_secret_is_left(most):
    masker = Masker(["hunter2-hunter2", SECRET])
    for secret in ("hunter2-hunter2", SECRET, SECRET.encode().hex(), b64encode(SECRET.encode()).decode()):
        body = f"“{excerpt(f'key={secret} and more, much more than that', most)}” (too long… really)"
        assert secret[:SHORTEST] not in masker.mask({"body": body})["body"]
