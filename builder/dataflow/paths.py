"""The way to a value, as an expression reads it."""

from __future__ import annotations

from collections.abc import Sequence

Path = Sequence[str | int]


def written(path: Path) -> str:
    """A path as an expression writes it: `steps.a.output["first name"][0]`."""
    text = str(path[0])
    for part in path[1:]:
        plain = isinstance(part, str) and part.isidentifier()
        text += f".{part}" if plain else f'["{part}"]' if isinstance(part, str) else f"[{part}]"
    return text
