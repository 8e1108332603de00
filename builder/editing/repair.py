"""Putting one reference right, where it stands."""

from __future__ import annotations

import re
from typing import Any

from ..texts import Text, rewritten
from .places import Edit, EditError


def repair(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`owner`, `field` (the text or what holds it), `old` and `new`: references as expressions write them."""
    owner, place, old, new = (str(operation[name]) for name in ("owner", "field", "old", "new"))
    pattern = re.compile(rf"(?<![\w.]){re.escape(old)}(?!\w)")

    def change(text: Text) -> str:
        inside = text.owner == owner and (text.field == place or text.field.startswith(f"{place}."))
        return pattern.sub(lambda _: new, text.source) if inside else text.source

    repaired = rewritten(definition, change)
    if repaired == definition:
        raise EditError(f"“{old}” is written in another way there. Change it by hand.")
    return Edit(repaired, f"Use {new.rpartition('.')[2]}", owner)


OPERATIONS = {"repair": repair}
