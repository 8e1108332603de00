"""Links: what they are made of, and what rotation does to them."""

from __future__ import annotations

import pytest

from runtime import tokens

PLACE = (48213, "hot/yes/ok", 1, "dana@example.com")


def test_a_minted_link_can_be_made_again_from_what_is_stored():
    minted = tokens.mint(*PLACE)
    token = tokens.token_for(*PLACE, minted.nonce, minted.key_id)
    assert tokens.token_hash(token) == minted.token_hash
    assert len(token) == 43 and token not in (minted.nonce, minted.token_hash)


def test_no_two_links_are_alike():
    assert len({tokens.mint(*PLACE).token_hash for _ in range(50)}) == 50
    one = tokens.mint(*PLACE)
    others = [
        (48214, *PLACE[1:]),
        (48213, "hot/yes/no", *PLACE[2:]),
        (*PLACE[:2], 2, PLACE[3]),
        (*PLACE[:3], "lee@example.com"),
    ]
    assert len({tokens.token_for(*place, one.nonce, one.key_id) for place in [PLACE, *others]}) == 5


@pytest.mark.fault(37)
def test_links_survive_rotation_until_their_key_is_taken_off(settings):
    settings.HOLDFAST_LINK_KEYS = ["old"]
    minted, signature = tokens.mint(*PLACE), tokens.callback_signature(7, "call")
    token = tokens.token_for(*PLACE, minted.nonce, minted.key_id)
    settings.HOLDFAST_LINK_KEYS = ["new", "old"]
    assert tokens.token_for(*PLACE, minted.nonce, minted.key_id) == token
    assert tokens.mint(*PLACE).key_id != minted.key_id
    assert tokens.callback_verified(7, "call", signature)
    settings.HOLDFAST_LINK_KEYS = ["new"]
    with pytest.raises(tokens.KeyGone):
        tokens.token_for(*PLACE, minted.nonce, minted.key_id)
    assert not tokens.callback_verified(7, "call", signature)


def test_the_key_id_tells_nothing_of_the_key(settings):
    settings.HOLDFAST_LINK_KEYS = ["short"]
    assert "short" not in tokens.mint(*PLACE).key_id


@pytest.mark.fault(37)
def test_addresses_come_from_the_setting(settings):
    settings.HOLDFAST_PUBLIC_URL = "https://flows.example"
    assert tokens.approval_url("abc") == "https://flows.example/a/abc/"
    address = tokens.callback_url(7, "each[3]/call")
    assert address.startswith("https://flows.example/callbacks/7/") and address.endswith("/each%5B3%5D/call/")


@pytest.mark.parametrize("forged", ["", "x", "ä", "\ud800", "A" * 43])
def test_a_forged_callback_is_not_taken(forged):
    assert not tokens.callback_verified(7, "call", forged)
    assert len(tokens.token_hash(forged)) == 64


def test_a_callback_signature_is_for_one_place():
    signature = tokens.callback_signature(7, "call")
    assert tokens.callback_verified(7, "call", signature)
    assert not tokens.callback_verified(8, "call", signature) and not tokens.callback_verified(7, "call2", signature)
