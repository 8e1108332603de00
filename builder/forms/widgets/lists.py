"""Lists of lines, and pairs of a name and a text."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from ...fields import ConfigField
from ..base import FieldError, Offer, Widget
from .text import clean


class Lines(Widget):
    kind, grouped = "strings", True
    templates = False
    placeholder = ""
    noun = "line"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        lines = value if isinstance(value, list) else []
        return {
            "rows": [str(line) for line in lines],
            "templates": self.templates,
            "noun": self.noun,
            "placeholder": self.placeholder,
        }

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        lines = [clean(line).strip() for line in post.getlist("value")]
        return [line for line in lines if line] or None


class Addresses(Lines):
    kind, templates, noun, placeholder = "addresses", True, "address", "name@example.com"


class Attachments(Lines):
    kind, templates, noun, placeholder = "attachments", True, "file", "a file, or / for data"


class Expressions(Lines):
    kind, noun, placeholder = "expressions", "expression", "trigger.body.email"


class Pairs(Widget):
    """A map of names to texts, in its order."""

    kind, grouped = "pairs", True
    templates = True
    words = ("Name", "Value", "Add field")

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        pairs = list(value.items()) if isinstance(value, dict) else []
        key, text, add = self.words
        return {"rows": pairs, "templates": self.templates, "key_word": key, "value_word": text, "add_word": add}

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        found: dict[str, str] = {}
        rows = zip(post.getlist("key"), post.getlist("value"), strict=False)
        for row, (key, text) in enumerate(rows):
            name, text = clean(key).strip(), clean(text)
            if not name and not text.strip():
                continue
            if not name:
                raise FieldError("Give this a name.", row)
            if name in found:
                raise FieldError(f"“{name}” is there twice.", row)
            found[name] = text
        return found or None


class Labels(Pairs):
    kind, templates = "labels", False
    words = ("Label", "What belongs to it", "Add label")


class Examples(Pairs):
    kind, templates = "examples", False
    words = ("Input", "Answer", "Add example")


WIDGETS = (Lines(), Addresses(), Attachments(), Expressions(), Pairs(), Labels(), Examples())
