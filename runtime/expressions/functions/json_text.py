"""JSON texts and base64: json(text), json_text(value), base64.encode(bytes), base64.decode(text)."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from typing import Any

from .. import limits
from ..errors import EvaluationError
from ..fuel import Evaluation
from .registry import ANY, function

# Strings are skipped as a whole; the last alternatives take one that is not closed, so that the scan stays linear.
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)


@function("json", str)
def parse(run: Evaluation, text: str) -> Any:
    """The value of a JSON text, read strictly: no NaN, no duplicate keys, no lone surrogates, 64-bit numbers."""
    run.charge(10 + len(text) // 16)
    run.allocate(4 * len(text))
    _check_depth(text)
    try:
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_int=_whole, parse_float=_double, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise EvaluationError("value", f"The text is not JSON: {error.msg} at character {error.pos + 1}.") from None
    if "\\u" in text:
        _check_characters(value)
    return value


@function("json_text", ANY)
def write(run: Evaluation, value: Any) -> str:
    from ..results import compact_json, to_json  # results.py needs the conversions of this package

    run.charge(10)
    return compact_json(to_json(value, run))


@function("base64.encode", bytes)
def encode(run: Evaluation, value: bytes) -> str:
    run.allocate(4 + len(value) * 4 // 3)
    return base64.b64encode(value).decode()


@function("base64.decode", str)
def decode(run: Evaluation, text: str) -> bytes:
    run.allocate(len(text))
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("value", "The text is not base64.") from None


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= limits.DATA_DEPTH:
        return
    depth = 0
    for match in _STRUCTURE.finditer(text):
        character = match[0]
        depth += (character in ("[", "{")) - (character in ("]", "}"))
        if depth > limits.DATA_DEPTH:
            raise EvaluationError("value", f"The JSON text is nested deeper than {limits.DATA_DEPTH} levels.")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise EvaluationError("value", "The JSON text has the same key twice in one object.")
    return entries


def _whole(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else 2**70
    if limits.INT_MIN <= value <= limits.INT_MAX:
        return value
    raise EvaluationError("overflow", "The JSON text has a whole number beyond 64 bits.")


def _double(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise EvaluationError("overflow", "The JSON text has a number that is too large.")
    return value


def _refuse_constant(name: str) -> Any:
    raise EvaluationError("value", f"The text is not JSON: {name} is no JSON number.")


def _check_characters(value: Any) -> None:
    if type(value) is str:
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise EvaluationError("value", "The JSON text holds half a character (a lone surrogate).")
    elif type(value) is list:
        for item in value:
            _check_characters(item)
    elif type(value) is dict:
        for key, item in value.items():
            _check_characters(key)
            _check_characters(item)
