"""`{% load holdfast %}` loads every tag and filter of the design system."""

from __future__ import annotations

from django import template

from . import charts, formats, forms, icons, json_table, json_view, shell, states

register = template.Library()

for part in (charts, formats, forms, icons, json_table, json_view, shell, states):
    register.tags.update(part.register.tags)
    register.filters.update(part.register.filters)
