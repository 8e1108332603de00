"""Putting one reference right, where it stands."""

from __future__ import annotations

import re
from typing import Any

from ..texts import Text, in_code, rewritten
from .places import Edit, EditError

LONGEST = 60
"""Of what an edit's name shows of the new text, in characters."""


def repair(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`owner`, `field` (the text or what holds it), `old` and `new`: references as expressions write them, or the whole text."""
    owner, place, old, new = (str(operation[name]) for name in ("owner", "field", "old", "new"))

    def change(text: Text) -> str:
        inside = text.owner == owner and (text.field == place or text.field.startswith(f"{place}."))
        return replaced(text, old, new) if inside else text.source

    repaired = rewritten(definition, change)
    if repaired == definition:
        raise EditError(f"“{old}” is written in another way there. Change it by hand.")
    shown = " ".join(new.split())
    return Edit(repaired, f"Use {shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + '…'}", owner)


def replaced(text: Text, old: str, new: str) -> str:
    """The text with `new` wherever its code says `old`: not inside a longer name, not in quotes, not in prose."""
    if text.source == old:
        return new
    pattern = re.compile(rf"(?<![\w.])(?<!\.\?){re.escape(old)}(?!\w)")
    return in_code(text.source, text.kind, lambda code: pattern.sub(lambda _: new, code), quoted='"' in old)


OPERATIONS = {"repair": repair}
