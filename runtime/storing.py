"""Values as they are stored: JSON text with its secrets masked, and how much of it."""

from __future__ import annotations

import json
from json.encoder import c_make_encoder, encode_basestring
from typing import Any

from django.conf import settings

from .jsonvalues import BadJson, check_json
from .masking import Masker

LARGEST_VALUE = 1 << 20
LARGEST_INLINE = 256 << 10
"""Outputs that are larger than so many bytes have a row of their own."""
GIVE_LESS = "Give less, such as fewer fields."
ASK_FOR_LESS = "Ask for less, such as fewer fields or a page at a time, or have HOLDFAST_LARGEST_OUTPUT_MIB raised."
_ENCODER = json.JSONEncoder(check_circular=False, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
# `JSONEncoder.encode` makes one of these for each value, which takes as long as a small value itself.
_PIECES = c_make_encoder(None, _ENCODER.default, encode_basestring, None, ":", ",", False, False, False) if c_make_encoder else None


class Unstorable(ValueError):
    """A value that the database or JSON cannot hold."""


def encode(value: Any) -> str:
    """Compact JSON text. Raises ValueError or TypeError for what JSON does not know, RecursionError for what holds itself."""
    return "".join(_PIECES(value, 0)) if _PIECES else _ENCODER.encode(value)


def too_large(what: str, most: int, remedy: str) -> Unstorable:
    return Unstorable(f"{what} is larger than {most / (1 << 20):g} MiB. {remedy}")


def largest_output() -> int:
    """Bytes of JSON that a step may give."""
    return int(settings.HOLDFAST_LARGEST_OUTPUT_MIB * (1 << 20))


def json_text(value: Any, masker: Masker, what: str, most: int, remedy: str) -> str:
    """JSON text as it is stored, secrets masked. Raises Unstorable, which says what is too large and what to do."""
    try:
        text = encode(masker.mask(value))
        size = len(text) if text.isascii() else len(text.encode())
        if "\\u0000" in text:
            check_json(value)
    except UnicodeEncodeError:
        raise Unstorable("The value holds half of a character (a lone surrogate), which cannot be stored.") from None
    except BadJson as wrong:
        raise Unstorable(str(wrong)) from None
    except (ValueError, TypeError, RecursionError) as wrong:
        raise Unstorable(f"The value is no storable JSON: {wrong}") from None
    if size > most:
        raise too_large(what, most, remedy)
    return text
