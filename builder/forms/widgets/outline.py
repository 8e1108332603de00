"""Values of any shape: as rows that may nest, or as JSON for those who prefer it."""

from __future__ import annotations

import json
from typing import Any

from django.http import QueryDict

from runtime.jsonvalues import BadJson, loads_strict

from ...fields import ConfigField
from ..base import FieldError, Offer, Widget
from ..outline import OutlineError, Row, rows, value_of
from .text import clean

DEEPEST = 8


class Json(Widget):
    kind, grouped = "json", True
    add_word = "Add field"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        as_rows = value is None or value == {} or isinstance(value, dict)
        return {
            "rows": rows(value) if isinstance(value, dict) else [],
            "as_rows": as_rows,
            "text": "" if value is None else json.dumps(value, indent=2, ensure_ascii=False),
            "add_word": self.add_word,
            "blank": Row(0, "", "value"),
        }

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        return self.read_text(post) if post.get("mode") == "json" else read_rows(post)

    def read_text(self, post: QueryDict) -> Any:
        text = clean(post.get("text", ""))
        if not text.strip():
            return None
        try:
            return loads_strict(text.encode(), root="")
        except BadJson as wrong:
            where = f"Line {wrong.line}, column {wrong.column}: " if wrong.line else ""
            message = f"{where}{wrong.path} {wrong.message}".strip()
            raise FieldError(message[:1].upper() + message[1:]) from None


class Values(Json):
    kind, add_word = "values", "Add value"

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        value = super().read(spec, post)
        if value is not None and not isinstance(value, dict):
            raise FieldError("Give each value a name: { … }.")
        return value


def read_rows(post: QueryDict) -> dict[str, Any] | None:
    """Rows are posted as parallel lists: `depth`, `key`, `kind`, `value`, one of each per row."""
    columns = (post.getlist("depth"), post.getlist("key"), post.getlist("kind"), post.getlist("value"))
    found = []
    for depth, key, kind, text in zip(*columns, strict=False):
        level = int(depth) if depth.isdecimal() and len(depth) < 3 else 0
        if level > DEEPEST:
            raise FieldError(f"Rows nest at most {DEEPEST} levels deep. Use JSON for more.")
        found.append(Row(level, clean(key), kind, clean(text)))
    try:
        return value_of(found) or None
    except OutlineError as wrong:
        raise FieldError(str(wrong), wrong.row) from None


WIDGETS = (Json(), Values())
