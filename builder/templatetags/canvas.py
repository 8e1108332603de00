"""What the builder's templates need of their own."""

from __future__ import annotations

from typing import Any

from django import template

from ..forms.plain import to_text

register = template.Library()
LONGEST = 120


@register.filter
def lowfirst(text: Any) -> str:
    """ "Add Delay" -> "add Delay", for the middle of a sentence."""
    words = str(text or "")
    return words[:1].lower() + words[1:]


@register.filter
def plain(value: Any) -> str:
    """A value of a definition in one line, as it is typed in the panel."""
    text = " ".join(to_text(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
