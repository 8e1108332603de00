"""JSON that everything downstream can hold: Postgres, Python, JavaScript, and the next system that a run calls.

RFC 8259 leaves room that its readers fill differently. Here there is none: at most 64 levels, finite numbers, integers
within 64 bits, no NUL, no lone surrogates, each key once (RFC 7493 asks for most of this). Errors say where.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

MIB = 1024 * 1024
DEEPEST = 64
LEAST_INT, MOST_INT = -(2**63), 2**63 - 1

NUL = "holds a NUL character, which cannot be stored."
SURROGATE = "holds half of a surrogate pair, which is no character."
BIG_INT = "is an integer beyond 64 bits. Send it as text."
NOT_FINITE = "is not a finite number. Send null or text instead."
TOO_DEEP = "is nested more than {} levels deep."


class BadJson(ValueError):
    """`path` leads to the value (`body.items[3].name`); `line` and `column`, from 1, are known where text was read."""

    def __init__(self, path: str, message: str, *, line: int | None = None, column: int | None = None):
        super().__init__(f"{path} {message}" if path else message)
        self.path, self.message, self.line, self.column = path, message, line, column


def loads_strict(data: bytes, limit: int = MIB, root: str = "body", deepest: int = DEEPEST) -> Any:
    """Parse UTF-8 JSON of at most `limit` bytes. Raises BadJson, whose path begins with `root`."""
    if len(data) > limit:
        raise BadJson(root, f"is larger than {limit:,} bytes.")
    _check_depth(data, root, deepest)
    text = _decode(data, root)
    try:
        if not _suspect(data):
            return _QUICK.decode(text)
    except _RefusedQuickly:
        pass
    except ValueError as error:
        raise _syntax(error, data, root) from None
    except RecursionError:
        raise BadJson(root, TOO_DEEP.format(deepest)) from None
    return _read_carefully(text, data, root, deepest)


def check_json(value: Any, root: str = "", deepest: int = DEEPEST) -> None:
    """Raise BadJson unless `value` is made of None, bool, int, float, str, list and dict within the limits above."""
    for path, message in _problems(value, root, deepest):
        raise BadJson(path, message)


def copy_json(value: Any) -> Any:
    """A copy of JSON data, several times as fast as `deepcopy`, which has to look for what is there twice."""
    if isinstance(value, dict):
        return {key: copy_json(inner) for key, inner in value.items()}
    return [copy_json(inner) for inner in value] if isinstance(value, list) else value


def storable_text(text: str) -> str:
    """The text with U+FFFD for what no database text can hold: NUL and lone surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def _read_carefully(text: str, data: bytes, root: str, deepest: int) -> Any:
    """Read again with marks where something is wrong, so that the error can name the path."""
    try:
        value = _MARKING.decode(text)
    except ValueError as error:
        raise _syntax(error, data, root) from None
    except RecursionError:
        raise BadJson(root, TOO_DEEP.format(deepest)) from None
    check_json(value, root, deepest)
    return value


class _RefusedQuickly(Exception):
    pass


class _Refused:
    """Stands for a value that JSON text can spell and we cannot take."""

    def __init__(self, message: str):
        self.message = message


def _quick_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _RefusedQuickly
    return found


def _quick_constant(name: str) -> Any:
    raise _RefusedQuickly


def _marked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Refused:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            return _Refused(f"has the key {json.dumps(_short(key))} twice.")
        found[key] = value
    return found


def _marked_int(digits: str) -> int | _Refused:
    return int(digits) if len(digits) <= 20 else _Refused(BIG_INT)


_QUICK = json.JSONDecoder(object_pairs_hook=_quick_object, parse_constant=_quick_constant)
_MARKING = json.JSONDecoder(
    object_pairs_hook=_marked_object, parse_constant=lambda name: _Refused(NOT_FINITE), parse_int=_marked_int
)

_DIGITS_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBERS = (b"0" * 19, b"0e000", b"0e+000")
_BAD_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def _suspect(data: bytes) -> bool:
    """Whether there may be an integer beyond 64 bits, an infinite float, a NUL or a surrogate. Strings raise false
    alarms, which cost a second reading and nothing else."""
    if b"\\u" in data and _BAD_ESCAPE.search(data):
        return True
    shape = data.translate(_DIGITS_ALIKE)
    return any(mark in shape for mark in _LONG_NUMBERS)


_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BRACES_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _check_depth(data: bytes, root: str, deepest: int) -> None:
    """Before the parser, which recurses. Each round of `replace` takes away the innermost level and nothing else, in C;
    what closes nothing is left to the parser."""
    if data.count(b"[") + data.count(b"{") <= deepest:
        return
    levels = _STRING.sub(b"", data).translate(_BRACES_AS_BRACKETS, _NO_BRACKETS)
    for _ in range(deepest):
        levels, before = levels.replace(b"[]", b""), len(levels)
        if len(levels) == before:
            return
    if b"[]" in levels:
        raise BadJson(root, TOO_DEEP.format(deepest))


def _decode(data: bytes, root: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(data, error.start)
        raise BadJson(root, f"is not UTF-8 at line {line}, column {column}.", line=line, column=column) from None


def _place(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column of a byte offset, both from 1. Columns count characters, as editors do."""
    start = data.rfind(b"\n", 0, offset) + 1
    return data.count(b"\n", 0, offset) + 1, len(data[start:offset].decode("utf-8", "replace")) + 1


def _syntax(error: ValueError, data: bytes, root: str) -> BadJson:
    if not data.strip():
        return BadJson(root, "is empty. Send JSON.", line=1, column=1)
    if not isinstance(error, json.JSONDecodeError):
        return BadJson(root, f"is not valid JSON: {error}.")
    words = f"{error.msg[:1].lower()}{error.msg[1:]}".removesuffix(" at")
    where = f"line {error.lineno}, column {error.colno}"
    return BadJson(root, f"is not valid JSON: {words} at {where}.", line=error.lineno, column=error.colno)


_NAME = re.compile(r"[A-Za-z_$][\w$-]{0,39}", re.ASCII)
_SURROGATES = re.compile("[\ud800-\udfff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _problems(value: Any, root: str, deepest: int) -> Iterator[tuple[str, str]]:
    """(path, message) of all that is wrong, in reading order. Keeps its own stack: nothing here recurses."""
    stack: list[tuple[str, Any, int]] = [(root, value, 0)]
    while stack:
        path, value, depth = stack.pop()
        kind = type(value)
        if kind is str:
            if message := _text_problem(value):
                yield path, message
        elif kind is int:
            if not LEAST_INT <= value <= MOST_INT:
                yield path, BIG_INT
        elif kind is float:
            if not math.isfinite(value):
                yield path, NOT_FINITE
        elif kind is dict or kind is list or kind is tuple:
            if depth == deepest:
                yield path, TOO_DEEP.format(deepest)
            elif kind is dict:
                yield from _key_problems(value, path)
                stack.extend((_member(path, key), value[key], depth + 1) for key in reversed(value))
            else:
                last = len(value) - 1
                stack.extend((f"{path}[{last - n}]", item, depth + 1) for n, item in enumerate(reversed(value)))
        elif value is not None and kind is not bool:
            yield path, value.message if kind is _Refused else f"is of type {kind.__name__}, which JSON does not have."


def _key_problems(value: dict[Any, Any], path: str) -> Iterator[tuple[str, str]]:
    for key in value:
        if type(key) is not str:
            yield path, f"has a key of type {type(key).__name__}. Keys are text."
        elif message := _text_problem(key):
            yield _member(path, key), f"has a name that {message}"


def _text_problem(text: str) -> str:
    if text.isascii():
        return NUL if "\x00" in text else ""
    if "\x00" in text:
        return NUL
    return SURROGATE if _SURROGATES.search(text) else ""


def _member(path: str, key: Any) -> str:
    if type(key) is str and _NAME.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(_short(str(key)))}]"


def _short(key: str) -> str:
    return key if len(key) <= 40 else key[:39] + "…"


def written_decimal(value: Decimal) -> str:
    """Without an exponent and without zeros at the end: "0", not "0E-8"."""
    return f"{value.normalize():f}"
