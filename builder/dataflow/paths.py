"""The way to a value, as an expression reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

Path = Sequence[str | int]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def written(path: Path) -> str:
    """A path as an expression writes it: `steps.a.output["first name"][0]`. A key is only a key, whatever who sent it has put into
    it: a quote ends no text here."""
    text = str(path[0])
    for part in path[1:]:
        plain = isinstance(part, str) and _NAME.fullmatch(part)
        text += f".{part}" if plain else f"[{json.dumps(part, ensure_ascii=False)}]"
    return text
