"""Text in one line or many, with or without `{{ }}`."""

from __future__ import annotations

from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django.http import QueryDict

from ...fields import ConfigField
from ..base import FieldError, Offer, Widget

PARTS_OF_THE_WORLD = {"Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"}


class Text(Widget):
    kind = "text"

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        text = clean(post.get("value", ""))
        if spec.longest and len(text) > spec.longest:
            raise FieldError(f"At most {spec.longest} characters; these are {len(text):,}.")
        if not text and (spec.nullable or not spec.default):
            return None
        return text


class LongText(Text):
    kind = "long_text"


class PlainText(Text):
    kind = "string"


class Prose(Text):
    """Lines for people to read, in which braces are just braces."""

    kind = "prose"


class Zone(Text):
    """The name of a time zone, with those that there are to choose from."""

    kind = "zone"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        return {"options": _zones()}


@cache
def _zones() -> tuple[str, ...]:
    """UTC, and the zones that are called after a place."""
    return "UTC", *sorted(name for name in available_timezones() if name.partition("/")[0] in PARTS_OF_THE_WORLD)


def clean(text: str) -> str:
    """Browsers send CRLF. NUL and lone surrogates can be stored nowhere."""
    if "\x00" in text or any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise FieldError("This holds a character that cannot be stored.")
    return text.replace("\r\n", "\n")


WIDGETS = (Text(), LongText(), PlainText(), Prose(), Zone())
