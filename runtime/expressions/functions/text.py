"""Text: the standard functions and those of the specification's strings extension, and lower() and upper()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import EvaluationError
from ..fuel import Evaluation, search_steps, text_size
from ..patterns import pattern_charged, pattern_search
from .registry import FUNCTIONS, function

_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SHORT = 8
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_QUOTE = str.maketrans(_QUOTED | {"\\": "\\\\", '"': '\\"'})


@function("size", str)
@function("text.size", str)
@function("size", bytes)
@function("bytes.size", bytes)
def size(run: Evaluation, value: str | bytes) -> int:
    return len(value)


@function("text.contains", str, str)
def contains(run: Evaluation, text: str, part: str) -> bool:
    run.charge(search_steps(text, part))
    return part in text


@function("text.startsWith", str, str)
def starts_with(run: Evaluation, text: str, prefix: str) -> bool:
    run.charge(len(prefix) // 256)
    return text.startswith(prefix)


@function("text.endsWith", str, str)
def ends_with(run: Evaluation, text: str, suffix: str) -> bool:
    run.charge(len(suffix) // 256)
    return text.endswith(suffix)


@function("matches", str, str)
@function("text.matches", str, str)
def matches(run: Evaluation, text: str, pattern: str) -> bool:
    """RE2 syntax; true when the pattern is found anywhere in the text."""
    return pattern_charged(run, pattern)(run, text)


def _bind(name: str, bind: Callable[[str], Callable[[Evaluation, str], Any]]) -> None:
    FUNCTIONS["method", name].bind_constant = bind


_bind("startsWith", lambda prefix: lambda run, text: text.startswith(prefix))
_bind("endsWith", lambda suffix: lambda run, text: text.endswith(suffix))
_bind("matches", pattern_search)


@function("text.charAt", str, int)
def char_at(run: Evaluation, text: str, index: int) -> str:
    _check_index(text, index)
    return text[index : index + 1]


@function("text.indexOf", str, str)
@function("text.indexOf", str, str, int)
def index_of(run: Evaluation, text: str, part: str, start: int = 0) -> int:
    _check_index(text, start)
    run.charge(search_steps(text, part))
    return text.find(part, start)


@function("text.lastIndexOf", str, str)
@function("text.lastIndexOf", str, str, int)
def last_index_of(run: Evaluation, text: str, part: str, last: int | None = None) -> int:
    if last is None:
        last = len(text)
    _check_index(text, last)
    run.charge(search_steps(text, part))
    if len(part) <= _SHORT:
        return text.rfind(part, 0, last + len(part))
    # CPython looks from the end in time that grows with the product of both lengths; from the beginning it does not.
    run.charge(len(text) // 64)
    run.lend(2 * text_size(text) + text_size(part))
    backwards = text[: last + len(part)][::-1]
    place = backwards.find(part[::-1])
    return place if place < 0 else len(backwards) - place - len(part)


@function("text.substring", str, int)
@function("text.substring", str, int, int)
def substring(run: Evaluation, text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
    _check_index(text, start)
    _check_index(text, end)
    if start > end:
        raise EvaluationError("value", f"The range from {start} to {end} ends before it starts.")
    part = text[start:end]
    run.allocate(text_size(part))
    return part


def _check_index(text: str, index: int) -> None:
    if not 0 <= index <= len(text):
        raise EvaluationError("value", f"{index} is outside of the text, which has {len(text)} characters.")


@function("text.replace", str, str, str)
@function("text.replace", str, str, str, int)
def replace(run: Evaluation, text: str, old: str, new: str, limit: int = -1) -> str:
    run.charge(search_steps(text, old))
    count = text.count(old) if limit < 0 else min(text.count(old), limit)
    longest = len(text) + count * max(len(new) - len(old), 0)
    run.allocate(longest if text.isascii() and new.isascii() else 4 * longest)
    return text.replace(old, new, count)


@function("text.split", str, str)
@function("text.split", str, str, int)
def split(run: Evaluation, text: str, separator: str, limit: int = -1) -> list[str]:
    """At most `limit` pieces when it is not negative; an empty separator splits into characters."""
    if limit == 0:
        return []
    run.charge(search_steps(text, separator))
    most = text.count(separator) + 1 if separator else len(text)
    pieces = most if limit < 0 else min(most, limit)
    run.charge(pieces // 8)
    run.allocate(16 * (1 + pieces) + text_size(text))
    if separator:
        return text.split(separator, pieces - 1)
    if pieces < 1:
        return []
    return [*text[: pieces - 1], text[pieces - 1 :]]


@function("list.join", list)
@function("list.join", list, str)
def join(run: Evaluation, pieces: list, separator: str = "") -> str:
    run.charge(len(pieces) // 8)
    total = text_size(separator) * len(pieces)
    for piece in pieces:
        if type(piece) is not str:
            raise EvaluationError(
                "type", "join() needs a list of texts. Turn the items into text first: list.map(x, string(x)).join()."
            )
        total += text_size(piece)
    run.allocate(total)
    return separator.join(pieces)


@function("text.trim", str)
def trim(run: Evaluation, text: str) -> str:
    run.allocate(text_size(text))
    return text.strip(_WHITE_SPACE)


@function("text.lowerAscii", str)
def lower_ascii(run: Evaluation, text: str) -> str:
    _copy(run, text)
    return text.lower() if text.isascii() else text.translate(_LOWER)


@function("text.upperAscii", str)
def upper_ascii(run: Evaluation, text: str) -> str:
    _copy(run, text)
    return text.upper() if text.isascii() else text.translate(_UPPER)


@function("text.lower", str)
def lower(run: Evaluation, text: str) -> str:
    _copy(run, text, growth=3)
    return text.lower()


@function("text.upper", str)
def upper(run: Evaluation, text: str) -> str:
    _copy(run, text, growth=3)
    return text.upper()


@function("text.reverse", str)
def reverse(run: Evaluation, text: str) -> str:
    _copy(run, text)
    return text[::-1]


@function("strings.quote", str)
def quote(run: Evaluation, text: str) -> str:
    _copy(run, text, growth=2)
    return f'"{text.translate(_QUOTE)}"'


def _copy(run: Evaluation, text: str, growth: int = 1) -> None:
    run.charge(len(text) // 64)
    run.allocate(text_size(text) * (1 if text.isascii() and growth == 3 else growth))
