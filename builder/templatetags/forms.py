"""`{% field_control form.email %}`: the widget of a bound field with our class, and its hint and errors announced."""

from __future__ import annotations

from django import forms, template
from django.forms import BoundField
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def field_control(field: BoundField, **attrs: str) -> SafeString:
    """Extra attributes by keyword, underscores for dashes: `{% field_control form.url data_slash="" %}`."""
    css = [_css(field.field.widget), field.field.widget.attrs.get("class", "")]
    given = {name.replace("_", "-"): value for name, value in attrs.items()}
    if field.errors:
        css.append("is-invalid")
        given["aria-invalid"] = "true"
    described = _described_by(field)
    if described:
        given["aria-describedby"] = described
    return field.as_widget(attrs=given | {"class": " ".join(filter(None, css))})


def _css(widget: forms.Widget) -> str:
    if isinstance(widget, forms.CheckboxInput):
        return "check"
    if isinstance(widget, forms.Textarea):
        return "textarea"
    if isinstance(widget, forms.RadioSelect | forms.CheckboxSelectMultiple):
        return ""
    return "select" if isinstance(widget, forms.Select) else "input"


def _described_by(field: BoundField) -> str:
    """The ids that `components/field.html` gives to the first error and to the hint."""
    ids = [f"{field.auto_id}_error"] if field.errors else []
    if field.help_text:
        ids.append(f"{field.auto_id}_helptext")
    return " ".join(ids)
