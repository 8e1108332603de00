"""A whole number as an address or a form tells it."""

from __future__ import annotations


def number_of(text: str) -> int | None:
    """None for what is none, or is more than a key of ours can be: 18 digits always fit into a bigint."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
