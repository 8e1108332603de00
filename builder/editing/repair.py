"""Putting one reference right, where it stands, however it is written there: `trigger.email` or `trigger['email']`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.expressions import SyntaxProblem
from runtime.expressions.lexer import Token, tokens

from ..texts import Text, rewritten
from .places import Edit, EditError
from .references import code_of

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
    try:
        path = [key for key, _ in _chain(tokens(old), 0)]
        found = [span for part in code_of(text) for span in _spans(part, path)]
    except SyntaxProblem:
        return text.source
    source = text.source
    for start, end in reversed(found):
        source = source[:start] + new + source[end:]
    return source


def _spans(part: list[Token], path: list[Any]) -> Iterator[tuple[int, int]]:
    """Where a path begins and ends in a text."""
    for index, token in enumerate(part):
        before = "".join(str(one.value) for one in part[max(0, index - 2) : index])
        if token.kind != "name" or before.endswith((".", ".?")):
            continue
        chain = list(_chain(part, index))[: len(path)]
        if [key for key, _ in chain] == path:
            yield token.start, chain[-1][1]


def _chain(part: list[Token], index: int) -> Iterator[tuple[Any, int]]:
    """The name at `index` and what is selected from it: each key, and where it ends."""
    yield part[index].value, part[index].end
    index += 1
    while index + 1 < len(part):
        if part[index].value == "." and part[index + 1].kind in ("name", "quoted"):
            yield part[index + 1].value, part[index + 1].end
            index += 2
        elif part[index].value == "[" and part[index + 1].kind in ("string", "int") and part[index + 2].value == "]":
            yield part[index + 1].value, part[index + 2].end
            index += 3
        else:
            return


OPERATIONS = {"repair": repair}
