"""One of several: options of the type, yes or no, a connection of the team."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from runtime.workdays import calendars, parts

from ...fields import ConfigField
from ..base import FieldError, Offer, Widget

FEW = 4
"""Up to this many short options are shown side by side, more in a list."""
ROOM, WIDE = 6, 54
"""Letters that an option's own edges take, and those that the panel has."""


class Choice(Widget):
    kind = "choice"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        options = [(option, spec.word(option)) for option in spec.choices]
        short = len(options) <= FEW and sum(len(word) + ROOM for _, word in options) <= WIDE
        return {"options": options, "chosen": spec.default if value is None else value, "side_by_side": short}

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        text = post.get("value", "")
        for option in spec.choices:
            if str(option) == text:
                return option
        raise FieldError("Choose one of the options.")


class YesNo(Widget):
    kind = "boolean"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        return {"on": spec.default if value is None else value}

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        return bool(post.get("value"))


class Connection(Widget):
    kind = "connection"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        fitting = [one for one in offer.connections if not spec.connections or one[1] in spec.connections]
        missing = ""
        if value and value not in [name for name, _, _ in fitting]:
            known = any(name == value for name, _, _ in offer.connections)
            missing = "does not fit here" if known else "missing"
        return {"options": fitting, "missing": missing}

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        return post.get("value", "").strip() or None


class Flow(Widget):
    """Another flow of the team, by its name."""

    kind = "flow"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        name = value if isinstance(value, str) else ""
        missing = bool(value) and name not in offer.flows
        now = offer.renamed.get(name, "") if missing else ""
        return {"options": list(offer.flows), "missing": missing, "now": now, "flow": offer.flows.get(now or name)}

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        return post.get("value", "").strip() or None


class Calendar(Widget):
    """A country with its public holidays, or a part of it: `DE`, `DE-BY`."""

    kind = "calendar"

    def data(self, spec: ConfigField, value: Any, offer: Offer) -> dict[str, Any]:
        country, _, part = str(value or "").upper().partition("-")
        return {
            "countries": calendars(),
            "country": country,
            "parts": parts(country),
            "part": part,
            "missing": bool(country) and country not in calendars(),
        }

    def read(self, spec: ConfigField, post: QueryDict) -> Any:
        country, part = post.get("country", "").strip(), post.get("part", "").strip()
        return f"{country}-{part}" if part in parts(country) else country or None


WIDGETS = (Choice(), YesNo(), Connection(), Flow(), Calendar())
