"""What the builder's templates need of their own."""

from __future__ import annotations

import json
from typing import Any

from django import template

from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from ..changewords import Told, plain, told
from ..diff import Change
from .formats import display_name

register = template.Library()


@register.filter
def lowfirst(text: Any) -> str:
    """ "Add Delay" -> "add Delay", for the middle of a sentence."""
    words = str(text or "")
    return words[:1].lower() + words[1:]


@register.filter
def kind_label(type_: str) -> str:
    """What a step type or trigger kind is called."""
    kind = step_types().get(type_) or trigger_kinds().get(type_)
    return kind.label if kind else type_


@register.filter
def in_words(change: Change) -> list[Told]:
    """The fields of a change as the panel calls them."""
    return told(change)


@register.filter
def as_line(value: Any) -> str:
    """Any value, in one line that is not too long."""
    return plain(value)


@register.filter
def people(users: list[Any], reader: Any = None) -> str:
    """ "Dana", "Dana and Lee", "Dana, Lee and Tom"; "You" for whoever reads it, "Somebody" for nobody who is known."""
    *most, last = ["You" if user == reader else display_name(user) for user in users] or ["Somebody"]
    return f"{', '.join(most)} and {last}" if most else last


@register.filter
def as_json(value: Any) -> str:
    """For a data attribute; quotes are escaped as in every other one."""
    return json.dumps(value)
