"""What the builder's templates need of their own."""

from __future__ import annotations

from typing import Any

from django import template

from ..changewords import Told, told
from ..diff import Change

register = template.Library()


@register.filter
def lowfirst(text: Any) -> str:
    """ "Add Delay" -> "add Delay", for the middle of a sentence."""
    words = str(text or "")
    return words[:1].lower() + words[1:]


@register.filter
def in_words(change: Change) -> list[Told]:
    """The fields of a change as the panel calls them."""
    return told(change)
