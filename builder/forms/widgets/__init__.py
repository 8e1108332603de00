"""The widgets: one per kind of field, one file per family."""

from __future__ import annotations

from ..base import Widget
from . import choices, expression, lists, numbers, outline, schema, text

WIDGETS: dict[str, Widget] = {
    widget.kind: widget
    for module in (text, numbers, choices, lists, outline, schema, expression)
    for widget in module.WIDGETS
}


def widget_for(kind: str) -> Widget:
    """The widget of a kind; what nobody knows is edited as JSON."""
    return WIDGETS.get(kind, WIDGETS["json"])
