"""Numbers, and lengths of time as a number and a unit."""

from __future__ import annotations

import re
from typing import Any

from django.http import QueryDict

from runtime.durations import parse_duration

from ...fields import ConfigField
from ..base import FieldError, Offer, Widget
from .text import clean

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ONE_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


class Number(Widget):
    kind = "number"
    of, step = float, "any"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        return {"minimum": spec.minimum, "maximum": spec.maximum, "step": self.step, "default": spec.default}

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        text = post.get("value", "").strip()
        if not text:
            return None
        try:
            number = self.of(text)
        except ValueError:
            raise FieldError(
                "Write a whole number." if self.of is int else "Write a number, such as 12 or 3.5."
            ) from None
        if number != number or number in (float("inf"), float("-inf")):
            raise FieldError("Write a number, such as 12 or 3.5.")
        if spec.minimum is not None and number < spec.minimum:
            raise FieldError(f"At least {spec.minimum:g}.")
        if spec.maximum is not None and number > spec.maximum:
            raise FieldError(f"At most {spec.maximum:,g}.")
        return number


class Integer(Number):
    kind = "integer"
    of, step = int, "1"


class Duration(Widget):
    """A number with a unit; what is more than that (`1d 12h`, a template) is kept and edited as text."""

    kind = "duration"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        text = str(value or "")
        simple = _ONE_UNIT.fullmatch(text)
        return {
            "number": simple[1] if simple else text,
            "unit": simple[2] if simple else "",
            "units": UNITS,
            "default": spec.default or "",
        }

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        return read_duration(post.get("number", ""), post.get("unit", ""))


def read_duration(number: str, unit: str, *, templates: bool = True) -> str | None:
    """`("2", "d")` -> `2d`; a number with its own unit, or a template, counts as it stands."""
    text = clean(number).strip()
    if not text:
        return None
    if "{{" in text and templates:
        return text
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        text += unit if unit in UNITS else "s"
    text = text.replace("min", "m").replace("sec", "s")
    try:
        parse_duration(text)
    except ValueError as wrong:
        raise FieldError(str(wrong)) from None
    return text


WIDGETS = (Number(), Integer(), Duration())
