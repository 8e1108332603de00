"""Rewriting what texts say about steps whose id changes: `steps.old.…` and `callbacks.old`.

By tokens, not by a search: a text in quotes that mentions `steps.old` is prose, and a field that is called `steps` is
another thing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtime.expressions import SyntaxProblem
from runtime.expressions.lexer import Token, tokens

from ..texts import Text, rewritten, texts

ROOTS = {"steps", "callbacks"}


def renamed(definition: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A copy in which every reference to a step of `names` (old id -> new id) uses the new id, and notes stand beside it."""
    result = rewritten(definition, lambda text: rename_in(text, names))
    for note in result.get("notes") or []:
        if note.get("beside") in names:
            note["beside"] = names[note["beside"]]
    return result


def rename_in(text: Text, names: Mapping[str, str]) -> str:
    """The text with the new ids. One that cannot be read stays as it is: its own problem is shown beside it."""
    try:
        found = [*_mentioned(text, names)]
    except SyntaxProblem:
        return text.source
    source = text.source
    for token in reversed(found):
        new = names[token.value]
        source = source[: token.start] + (f'"{new}"' if token.kind == "string" else new) + source[token.end :]
    return source


def rewritings(definition: dict[str, Any], old: str, new: str) -> Iterator[tuple[Text, str]]:
    """Every text that speaks of `old`, and what it becomes when that is called `new`."""
    for text in texts(definition):
        if (after := rename_in(text, {old: new})) != text.source:
            yield text, after


def code_of(text: Text) -> Iterator[list[Token]]:
    """The tokens of an expression; of a template those of each of its parts. Raises SyntaxProblem."""
    if text.kind == "expression":
        yield tokens(text.source)
        return
    start = text.source.find("{{")
    while start >= 0:
        part = tokens(text.source, start + 2, in_braces=True)
        yield part
        start = text.source.find("{{", part[-1].end + 2)


def _mentioned(text: Text, names: Mapping[str, str]) -> Iterator[Token]:
    for part in code_of(text):
        yield from _ids(part, names)


def _ids(part: list[Token], names: Mapping[str, str]) -> Iterator[Token]:
    for index, token in enumerate(part):
        before = part[index - 1].value if index else ""
        if token.kind != "name" or token.value not in ROOTS or before == ".":
            continue
        rest = [one for one in part[index + 1 : index + 4] if one.value != "?"]
        if (
            len(rest) > 1
            and rest[0].value in (".", "[")
            and rest[1].kind in ("name", "string")
            and rest[1].value in names
        ):
            yield rest[1]
