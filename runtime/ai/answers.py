"""From a model's words to a value that fits a schema. What does not fit is refused, never mended.

Schemas are read as JSON Schema 2020-12, standing by themselves. Their patterns run on RE2, whose time is linear: with
Python's, one pattern could hold up every run of the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import re2

from ..jsonvalues import BadJson, loads_strict
from ..masking import excerpt

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL | re.IGNORECASE)


class BadAnswer(ValueError):
    """The answer is not JSON, or does not fit. The message says where."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError, saying where, unless this is a schema that can be used."""
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as wrong:
        raise ValueError(f"The schema is wrong at {_place('schema', wrong.path)}: {excerpt(wrong.message, 200)}.") from None
    for key, text in _nested(schema):
        if key in ("$ref", "$dynamicRef") and not text.startswith("#"):
            raise ValueError("The schema refers to another document. Put what it needs inside, under $defs.")
        if key == "pattern":
            _compiled(text)


def read_answer(text: str, value: Any, schema: Mapping[str, Any]) -> Any:
    """The value that the model gave, as JSON or in words, once it fits the schema. Raises BadAnswer."""
    found = _parsed(text) if value is None else value
    if wrong := misfit(found, schema, "answer"):
        raise BadAnswer(f"The model's answer does not fit the schema at {wrong}")
    return found


def misfit(value: Any, schema: Mapping[str, Any], root: str) -> str:
    """Where and why a value does not fit a schema, or an empty string: `answer.score: 'x' is not of type 'integer'.`"""
    problem = jsonschema.exceptions.best_match(_Validator(schema).iter_errors(value))
    return "" if problem is None else f"{_place(root, problem.absolute_path)}: {excerpt(problem.message, 200)}."


def _parsed(text: str) -> Any:
    """The whole answer, or the one fenced block in it, or what stands between the first and the last brace."""
    candidates = [text.strip(), *_FENCED.findall(text), text[text.find("{") : text.rfind("}") + 1]]
    problem = ""
    for candidate in candidates:
        try:
            return loads_strict(candidate.encode("utf-8", "replace"), root="answer")
        except BadJson as wrong:
            problem = problem or str(wrong)
    raise BadAnswer(f"The model's answer is not JSON: “{excerpt(text.strip(), 120)}” ({problem})")


def _matches(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and not _compiled(pattern).search(instance):
        yield jsonschema.ValidationError(f"{excerpt(instance, 80)!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, _schema: Any
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, dict):
        for pattern, schema in patterns.items():
            matching = _compiled(pattern)
            for name, inner in instance.items():
                if matching.search(name):
                    yield from validator.descend(inner, schema, path=name, schema_path=pattern)


_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {"pattern": _matches, "patternProperties": _pattern_properties}
)


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as wrong:
        raise ValueError(f"The pattern “{pattern[:80]}” cannot be used: {wrong}.") from None


def _nested(schema: Any) -> Iterator[tuple[str, str]]:
    """Every text in the schema, with its key."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            yield from ((key, text) for key, text in node.items() if isinstance(text, str))
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _place(root: str, path: Any) -> str:
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
