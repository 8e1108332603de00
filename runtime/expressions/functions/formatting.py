"""text.format(list): the specification's strings extension. %s %d %f %e %x %X %o %b, and %%."""

from __future__ import annotations

import math
import re
from typing import Any

from .. import limits
from ..errors import EvaluationError
from ..fuel import Evaluation, text_size
from ..operators import too_deep
from ..times import format_duration, format_timestamp
from ..values import Duration, Timestamp, TypeValue, Uint, in_words, key_value
from .conversions import format_double, format_whole
from .registry import function

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]*))?(.?))", re.DOTALL)
_WHOLE = (int, Uint)


@function("text.format", str, list)
def format_text(run: Evaluation, template: str, arguments: list) -> str:
    run.charge(len(template) // 16)
    pieces, last, used = [], 0, 0
    for match in _CLAUSE.finditer(template):
        pieces.append(template[last : match.start()])
        last = match.end()
        run.charge(1)
        if match[1]:
            pieces.append("%")
            continue
        if used >= len(arguments):
            raise EvaluationError("value", f"format() has no value for `{match[0]}`: the list has {len(arguments)}.")
        piece = _clause(run, match[3], _precision(match[2]), arguments[used])
        run.allocate(text_size(piece))
        pieces.append(piece)
        used += 1
    pieces.append(template[last:])
    run.allocate(text_size(template))
    return "".join(pieces)


def _precision(digits: str | None) -> int:
    if not digits:
        return 6
    if len(digits) > 4 or int(digits) > limits.FORMAT_PRECISION:
        raise EvaluationError("value", f"format() shows at most {limits.FORMAT_PRECISION} digits.")
    return int(digits)


def _clause(run: Evaluation, clause: str, precision: int, value: Any) -> str:
    if clause == "s":
        return _text(run, value, 0)
    if clause == "d":
        return _decimal(value)
    if clause in ("f", "e"):
        return _real(clause, precision, value)
    if clause in ("x", "X"):
        return _hexadecimal(run, clause, value)
    if clause in ("o", "b"):
        return _whole(clause, value)
    raise EvaluationError("value", f"format() does not know `%{clause}`. Use %s, %d, %f, %e, %x, %o or %b.")


def _text(run: Evaluation, value: Any, depth: int) -> str:
    """Lists and maps in brackets, map entries by the order of their keys' texts."""
    kind = type(value)
    if kind is list or kind is dict:
        if depth >= limits.DATA_DEPTH:
            raise too_deep()
        run.charge(len(value))
        return _list_text(run, value, depth + 1) if kind is list else _map_text(run, value, depth + 1)
    text = _scalar_text(value)
    run.allocate(text_size(text))  # now, and not for the whole list: the same text may be in it a thousand times
    return text


def _list_text(run: Evaluation, items: list, depth: int) -> str:
    return "[" + ", ".join([_text(run, item, depth) for item in items]) + "]"


def _map_text(run: Evaluation, entries: dict, depth: int) -> str:
    texts = {_text(run, key_value(key), depth): _text(run, item, depth) for key, item in entries.items()}
    return "{" + ", ".join(f"{key}: {texts[key]}" for key in sorted(texts)) + "}"


def _scalar_text(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return value
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind in _WHOLE:
        return format_whole(value)
    if kind is float:
        return format_double(value)
    if kind is Timestamp:
        return format_timestamp(value)
    if kind is Duration:
        return format_duration(value)
    if kind is TypeValue:
        return value.name
    if kind is bytes:
        return value.decode(errors="replace")
    raise EvaluationError("type", f"%s cannot show {in_words(value)}.")


def _decimal(value: Any) -> str:
    if type(value) in _WHOLE:
        return format_whole(value)
    if type(value) is float and not math.isfinite(value):
        return format_double(value)
    raise EvaluationError("type", f"%d shows whole numbers, not {in_words(value)}.")


def _real(clause: str, precision: int, value: Any) -> str:
    if type(value) not in (float, *_WHOLE):
        raise EvaluationError("type", f"%{clause} shows numbers, not {in_words(value)}.")
    value = float(value)
    return f"{value:.{precision}{clause}}" if math.isfinite(value) else format_double(value)


def _hexadecimal(run: Evaluation, clause: str, value: Any) -> str:
    if type(value) in _WHOLE:
        return _whole(clause, value)
    if type(value) is str:
        run.allocate(text_size(value))
        value = value.encode(errors="replace")
    if type(value) is not bytes:
        raise EvaluationError("type", f"%{clause} shows whole numbers, texts and bytes, not {in_words(value)}.")
    run.allocate(2 * len(value))
    return value.hex() if clause == "x" else value.hex().upper()


def _whole(clause: str, value: Any) -> str:
    if type(value) is bool and clause == "b":
        return "1" if value else "0"
    if type(value) not in _WHOLE:
        raise EvaluationError("type", f"%{clause} shows whole numbers, not {in_words(value)}.")
    return f"{value:{clause}}"
