"""`{% icon "bolt" %}`: an inline SVG, ours where we drew one, else Lucide's. `{% step_icon step.type %}` by kind."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from lucide import IconDoesNotExist, _render_icon

from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .drawings import ICONS

register = template.Library()

PLUGIN_ICON = "puzzle"
LUCIDE_NAMES = {"stop": "octagon-x", "key": "key-round", "trash": "trash-2", "logout": "log-out"}


@register.simple_tag
def icon(name: str, size: int = 20, css: str = "", label: str = "") -> SafeString:
    """`size` is 20, 16 or 12 pixels. Without a `label` the icon is hidden from assistive technology.

    Raises `IconDoesNotExist` for a name that neither we nor Lucide have: a typing error should not reach a screen.
    """
    return _drawn(name, size, css, label) if name in ICONS else _lucide(name, size, css, label)


@register.simple_tag
def step_icon(kind: str, size: int = 20, css: str = "") -> SafeString:
    """The icon that a step type or trigger kind names; a puzzle piece for one that is unknown or names none that there is."""
    known = step_types().get(kind) or trigger_kinds().get(kind)
    try:
        return icon(known.icon if known else PLUGIN_ICON, size=size, css=css)
    except IconDoesNotExist:
        return icon(PLUGIN_ICON, size=size, css=css)


@lru_cache(maxsize=512)
def _drawn(name: str, size: int, css: str, label: str) -> SafeString:
    inside = mark_safe(ICONS[name])  # noqa: S308 - a constant of ours
    return format_html('<svg class="{}" viewBox="0 0 20 20" {}>{}</svg>', _classes(size, css), _naming(label), inside)


@lru_cache(maxsize=512)
def _lucide(name: str, size: int, css: str, label: str) -> SafeString:
    """Lucide draws on 24 units; the same class gives it our size and, as nearly as a scale allows, our weight."""
    whole = _render_icon(LUCIDE_NAMES.get(name, name), None)
    inside = whole[whole.index(">") + 1 : whole.rindex("</svg>")]
    return format_html(
        '<svg class="{} i--24" viewBox="0 0 24 24" {}>{}</svg>',
        _classes(size, css),
        _naming(label),
        mark_safe(inside),  # noqa: S308 - from the package's own files
    )


def _classes(size: int, css: str) -> str:
    return " ".join(filter(None, ("i", f"i--{size}" if size != 20 else "", css)))


def _naming(label: str) -> SafeString:
    return format_html('role="img" aria-label="{}"', label) if label else mark_safe('aria-hidden="true"')


__all__ = ["IconDoesNotExist", "icon", "step_icon"]
