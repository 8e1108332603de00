"""Small charts as SVG, sized by attributes: the content security policy forbids styles, and no script is needed."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from .states import shown_state

register = template.Library()

BAR, GAP = 4, 2


@register.simple_tag
def meter(value: float | None, most: float, state: str = "", label: str = "") -> SafeString:
    """A share of `most` as a bar. Without a `label` it is decoration: the number must stand beside it."""
    share = 0.0 if not most or not value else min(100.0, max(0.0, 100.0 * float(value) / float(most)))
    css = f"meter is-{shown_state(state).css}" if state else "meter"
    naming = format_html('role="img" aria-label="{}"', label) if label else format_html('aria-hidden="{}"', "true")
    return format_html('<svg class="{}" {}><rect width="{}%" height="100%" rx="2"/></svg>', css, naming, f"{share:.4g}")


@register.simple_tag
def run_spark(states: Sequence[str]) -> SafeString:
    """The last runs, oldest first: failures below the axis, waits hollow, so that colour is not the only difference."""
    names = [shown_state(state).css for state in states]
    words = {"succeeded": "succeeded", "failed": "failed", "waiting": "waiting", "running": "running"}
    told = ", ".join(f"{names.count(name)} {word}" for name, word in words.items())
    bars = format_html_join("", "{}", ((_run_bar(place, name),) for place, name in enumerate(names)))
    return format_html(
        '<svg class="spark" width="{}" height="24" role="img" aria-label="Last {} runs: {}">{}</svg>',
        max(1, len(names) * (BAR + GAP)),
        len(names),
        told,
        bars,
    )


def _run_bar(place: int, name: str) -> SafeString:
    x = place * (BAR + GAP)
    if name == "failed":
        return format_html('<rect x="{}" y="12" width="4" height="10" rx="1" class="spark__bad"/>', x)
    if name == "waiting":
        return format_html('<rect x="{}" y="4.6" width="2.8" height="12.8" rx="1" class="spark__wait"/>', x + 0.6)
    css = {"running": "spark__run", "attention": "spark__ask"}.get(name, "spark__bar")
    return format_html('<rect x="{}" y="4" width="4" height="14" rx="1" class="{}"/>', x, css)


@register.simple_tag
def spark(values: Sequence[float], label: str, state: str = "") -> SafeString:
    """Counts over time as columns on a base line, oldest first; `state` colours them, an empty slot stays grey."""
    most = max([*values, 1])
    bars = format_html_join(
        "",
        '<rect x="{}" y="{}" width="4" height="{}" rx="1" class="{}"/>',
        (
            (place * (BAR + GAP), 20 - height, height, "spark__value" if value else "spark__bar")
            for place, value in enumerate(values)
            for height in [max(1, round(16 * value / most) + (3 if value else 0))]
        ),
    )
    return format_html(
        '<svg class="spark {}" width="{}" height="20" role="img" aria-label="{}">{}</svg>',
        f"is-{shown_state(state).css}" if state else "",
        max(1, len(values) * (BAR + GAP)),
        label,
        bars,
    )
