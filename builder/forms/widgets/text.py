"""Text in one line or many, with or without `{{ }}`."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from ...fields import ConfigField
from ..base import FieldError, Widget


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


def clean(text: str) -> str:
    """Browsers send CRLF. NUL and lone surrogates can be stored nowhere."""
    if "\x00" in text or any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise FieldError("This holds a character that cannot be stored.")
    return text.replace("\r\n", "\n")


WIDGETS = (Text(), LongText(), PlainText(), Prose())
