"""The words of a shell command as people copy it: from a terminal, from documentation, or from a browser for bash or cmd."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""(?P<gap>\s+|\\\s+|\\\Z)"""
    r"""|\$'(?P<ansi>(?:\\.|[^'\\])*)'|'(?P<single>[^']*)'|\$?"(?P<double>(?:\\.|[^"\\])*)"|\\(?P<one>.)|(?P<bare>[^\s'"\\$]+|\$)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_ENDS = re.compile(r"[|;<>&]|\d>")


def shell_words(text: str) -> list[str]:
    """The words of the first command; what is piped or redirected is not part of it. Variables stay as they are written.
    Raises ValueError where a quote does not end.

    A line that goes on may have lost its break on the way through a field, so a backslash before a blank parts words.
    """
    if '^"' in text:  # for cmd: a caret takes the meaning of what follows
        text = re.sub(r"\^\r?\n", " ", text)
        text = re.sub(r"\^(.)", r"\1", text, flags=re.DOTALL)
    words: list[str] = []
    word, place = None, 0
    while place < len(text):
        found = _PIECE.match(text, place)
        if found is None:
            raise ValueError("A quote does not end.")
        place = found.end()
        if found["gap"]:
            words += [] if word is None else [word]
            word = None
            continue
        if found["bare"] and word is None and _ENDS.match(found["bare"]):
            break
        word = (word or "") + _said(found)
    return words if word is None else [*words, word]


def _said(found: re.Match[str]) -> str:
    if found["ansi"] is not None:
        text = _ESCAPE.sub(_meant, found["ansi"])
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if found["double"] is not None:
        return re.sub(r'\\(["\\$`])|\\\r?\n', lambda one: one[1] or "", found["double"])
    return next(one for one in (found["single"], found["one"], found["bare"]) if one is not None)


def _meant(found: re.Match[str]) -> str:
    """An escape of `$'…'`, as bash reads it."""
    text = found[1]
    if text[0] in "xuU" and len(text) > 1:
        return chr(min(int(text[1:], 16), 0x10FFFF))
    if text[0] in "01234567":
        return chr(int(text, 8) & 255)
    return _NAMED.get(text, text)
