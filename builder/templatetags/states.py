"""The states that people see. A state is always a word, a shape and a colour, all three."""

from __future__ import annotations

from typing import Any, NamedTuple

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from .drawings import STATES as DRAWINGS

register = template.Library()


class Shown(NamedTuple):
    css: str
    word: str


SHOWN = {
    "running": Shown("running", "Running"),
    "waiting": Shown("waiting", "Waiting"),
    "attention": Shown("attention", "Needs attention"),
    "failed": Shown("failed", "Failed"),
    "succeeded": Shown("succeeded", "Succeeded"),
    "cancelled": Shown("cancelled", "Cancelled"),
    "queued": Shown("queued", "Not started"),
    "skipped": Shown("skipped", "Skipped"),
}

# Words of the tables that people do not need to tell apart, by the state they are shown as.
ALIASES = {
    "open": "running",
    "ready": "running",
    "claimed": "running",
    "uncertain": "attention",
    "suspended": "waiting",
    "resolved": "succeeded",
    "sending": "running",
    "sent": "succeeded",
    "answered": "succeeded",
    "refused": "failed",
    "not_sent": "failed",
    "unknown": "attention",
}


@register.simple_tag
def state_pill(state: Any, dispatch: str = "", word: str = "") -> SafeString:
    """`{% state_pill run.state dispatch=run.dispatch.state %}`: the filled form, for headers.

    An open run looks as its dispatch row says (waiting, else running). `word` replaces the word: "Retrying in 8 s".
    """
    return _state(state, dispatch, word, "state")


@register.simple_tag
def state_bare(state: Any, dispatch: str = "", word: str = "") -> SafeString:
    """The form for tables: icon and word in colour, without a ground."""
    return _state(state, dispatch, word, "state state--bare")


@register.simple_tag
def state_icon(state: Any, dispatch: str = "", word: str = "", hidden: bool = False) -> SafeString:
    """The shape alone, coloured, with the word for assistive technology; `hidden` where the word stands beside it."""
    shown = shown_state(state, dispatch)
    spoken = "" if hidden else format_html('<span class="vh">{}:</span>', word or shown.word)
    return format_html('<span class="si-wrap is-{}">{}{}</span>', shown.css, state_shape(shown.css), spoken)


@register.simple_tag
def state_shape(css: str) -> SafeString:
    """Only the SVG; its colour comes from the `is-…` class of an ancestor."""
    inside = mark_safe(DRAWINGS[css])  # noqa: S308 - a constant of ours
    return format_html('<svg class="si" viewBox="0 0 16 16" aria-hidden="true">{}</svg>', inside)


@register.filter
def state_class(state: Any, dispatch: str = "") -> str:
    """`is-waiting`, for rows, filters and steps: sets the colours that everything inside reads."""
    return f"is-{shown_state(state, dispatch).css}"


@register.filter
def state_word(state: Any, dispatch: str = "") -> str:
    return shown_state(state, dispatch).word


def shown_state(state: Any, dispatch: str = "") -> Shown:
    """A state that we do not know is shown by its own name rather than hidden behind a guess."""
    name = str(getattr(state, "state", state) or "queued")
    if name == "open" and dispatch:
        name = str(dispatch)
    name = ALIASES.get(name, name)
    return SHOWN.get(name) or Shown("queued", name.replace("_", " ").capitalize())


def _state(state: Any, dispatch: str, word: str, css: str) -> SafeString:
    shown = shown_state(state, dispatch)
    return format_html('<span class="{} is-{}">{}{}</span>', css, shown.css, state_shape(shown.css), word or shown.word)
