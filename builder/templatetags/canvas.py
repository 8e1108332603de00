"""What the builder's templates need of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django import template
from django.template import Context
from django.template.loader import get_template
from django.utils.safestring import SafeString

from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from ..changewords import Told, plain, told
from ..diff import Change
from ..drawing import Card
from ..tree import Branch
from .formats import display_name

register = template.Library()


@register.simple_tag(takes_context=True)
def step_card(context: Context, card: Card, oob: bool = False) -> SafeString:
    """The card of a step. A flow of hundreds has few that differ from what was drawn a moment ago."""
    folded = context.get("folded")
    return _card(
        card,
        oob,
        selected=card.id == context.get("selected"),
        folded=None if folded is None else card.id in folded,
        step_query=context.get("step_query", ""),
        readonly=bool(context.get("readonly")),
    )


@lru_cache(maxsize=4096)
def _card(card: Card, oob: bool, **shown: Any) -> SafeString:
    return get_template("canvas/card.html").template.render(Context({"card": card, "oob": oob, **shown}))


@register.simple_tag
@lru_cache(maxsize=1024)
def data_source(branch: Branch) -> SafeString:
    """A root of the data tree with all under it. What hundreds of steps give is mostly what it was a moment ago."""
    return get_template("canvas/branch.html").template.render(Context({"branch": branch, "root": True}))


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
def people(users: Sequence[Any], reader: Any = None) -> str:
    """ "Dana", "Dana and Lee", "Dana, Lee and Tom"; "You" for whoever reads it, "Somebody" for nobody who is known."""
    *most, last = ["You" if user == reader else display_name(user) for user in users] or ["Somebody"]
    return f"{', '.join(most)} and {last}" if most else last


@register.filter
def as_json(value: Any) -> str:
    """For a data attribute; quotes are escaped as in every other one."""
    return json.dumps(value)
