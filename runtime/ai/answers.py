"""From a model's words to a value that fits a schema. What does not fit is refused, never mended.

Schemas are read as JSON Schema 2020-12, standing by themselves. Whoever writes one must not hold up every run of the process, nor
whoever sends what is checked: patterns run on RE2, whose time is linear, and a check ends after so many rules. Both hold for
what `jsonschema` does by itself, too, and no schema inside of another chooses another dialect, which would know of neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import jsonschema
import jsonschema._utils
import re2
from referencing.exceptions import Unresolvable

from ..jsonvalues import BadJson, loads_strict
from ..masking import excerpt

CHECKS, CHECKS_EACH, MOST_CHECKS = 100_000, 20, 1_000_000
"""Rules that a value is held against: of any, more for each value inside, and at most so many, which take some seconds. Rules that
refer to each other twice have no end."""
LONGEST_PATTERN, MOST_PATTERNS = 1_000, 100
PATTERN_MEMORY = 1 << 19
"""Bytes: a pattern that compiles to more is refused, and sooner."""
_left: ContextVar[int] = ContextVar("checks_left")


class BadAnswer(ValueError):
    """The answer is not JSON, or does not fit. The message says where."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError, saying where, unless this is a schema that can be used."""
    patterns = set()
    for key, text in _nested(schema):
        if key in ("$ref", "$dynamicRef") and not text.startswith("#"):
            raise ValueError("The schema refers to another document. Put what it needs inside, under $defs.")
        if key == "pattern":
            patterns.add(text)
    if len(patterns) > MOST_PATTERNS:
        raise ValueError(f"The schema has more than {MOST_PATTERNS} patterns. Leave out those that others cover.")
    for pattern in patterns:
        _compiled(pattern)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as wrong:
        raise ValueError(f"The schema is wrong at {_place('schema', wrong.path)}: {excerpt(wrong.message, 200)}.") from None


def read_answer(text: str, value: Any, schema: Mapping[str, Any]) -> Any:
    """The value that the model gave, as JSON or in words, once it fits the schema. Raises BadAnswer."""
    found = _parsed(text) if value is None else value
    if wrong := misfit(found, schema, "answer"):
        raise BadAnswer(f"The model's answer does not fit the schema at {wrong}")
    return found


def misfit(value: Any, schema: Mapping[str, Any], root: str) -> str:
    """Where and why a value does not fit a schema, or an empty string: `answer.score: 'x' is not of type 'integer'.`"""
    before = _left.set(min(MOST_CHECKS, CHECKS + CHECKS_EACH * _count(value)))
    try:
        problem = jsonschema.exceptions.best_match(_Validator(_in_one_dialect(schema)).iter_errors(value))
    except _TooMuch:
        return f"{root}: it is too much to be checked. Send less, or simplify the schema."
    except (RecursionError, Unresolvable):
        return f"{root}: the schema refers to itself, or to something that it does not have."
    finally:
        _left.reset(before)
    return "" if problem is None else f"{_place(root, problem.absolute_path)}: {excerpt(problem.message, 200)}."


def _parsed(text: str) -> Any:
    """The whole answer, or the one fenced block in it, or what stands between the first and the last brace."""
    candidates = [text.strip(), *_fenced(text), text[text.find("{") : text.rfind("}") + 1]]
    problem = ""
    for candidate in candidates:
        try:
            return loads_strict(candidate.encode("utf-8", "replace"), root="answer")
        except BadJson as wrong:
            problem = problem or str(wrong)
    raise BadAnswer(f"The model's answer is not JSON: “{excerpt(text.strip(), 120)}” ({problem})")


def _fenced(text: str) -> Iterator[str]:
    """What stands in closed fences of three backticks, alone or marked as JSON."""
    pieces = text.split("```")
    for inside in pieces[1 : len(pieces) - 1 : 2]:
        mark, _, rest = inside.partition("\n")
        if mark.strip().lower() in ("", "json"):
            yield rest.strip()


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


def _unique_items(_validator: Any, unique: Any, instance: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """jsonschema compares each item with each."""
    if unique and isinstance(instance, list) and len({_key(item) for item in instance}) < len(instance):
        yield jsonschema.ValidationError(f"{excerpt(repr(instance[:20]), 80)} has non-unique elements")


def _key(value: Any) -> Any:
    """Equal for what is equal as JSON: 1 and 1.0, and not 1 and true."""
    if isinstance(value, list):
        return "list", tuple(map(_key, value))
    if isinstance(value, dict):
        return "object", frozenset((name, _key(inner)) for name, inner in value.items())
    return isinstance(value, bool), value


class _TooMuch(Exception):
    """There were more rules than a check may take."""


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*given: Any) -> Any:
        left = _left.get()
        if not left:
            raise _TooMuch
        _left.set(left - 1)
        return check(*given)

    return counted


_OURS = {"pattern": _matches, "patternProperties": _pattern_properties, "uniqueItems": _unique_items}
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    {name: _counted(check) for name, check in (jsonschema.Draft202012Validator.VALIDATORS | _OURS).items()},
)
# What `additionalProperties` does by itself, with all names of `patternProperties` in one pattern, and `unevaluated…`, which walks
# through the schema once more.
jsonschema._utils.re = SimpleNamespace(search=lambda pattern, text: _compile(pattern, MOST_PATTERNS * PATTERN_MEMORY).search(text))
for _name in ("find_evaluated_property_keys_by_schema", "find_evaluated_item_indexes_by_schema"):
    setattr(jsonschema._utils, _name, _counted(getattr(jsonschema._utils, _name)))


def _count(value: Any) -> int:
    """How many values there are in it, itself too."""
    count, stack = 0, [value]
    while stack:
        one = stack.pop()
        count += 1
        stack.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return count


def _in_one_dialect(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {name: _in_one_dialect(inner) for name, inner in schema.items() if name != "$schema" or not isinstance(inner, str)}
    return [_in_one_dialect(inner) for inner in schema] if isinstance(schema, list) else schema


def _compiled(pattern: str) -> Any:
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"A pattern is longer than {LONGEST_PATTERN:,} characters.")
    return _compile(pattern, PATTERN_MEMORY)


@lru_cache(maxsize=MOST_PATTERNS)
def _compile(pattern: str, memory: int) -> Any:
    options = re2.Options()
    options.log_errors, options.max_mem = False, memory
    try:
        return re2.compile(pattern, options)
    except re2.error as wrong:
        raise ValueError(f"The pattern “{pattern[:80]}” cannot be used: {wrong}.") from None


def _nested(schema: Any) -> Iterator[tuple[str, str]]:
    """Every text in the schema, with its key; patterns of names as `pattern`."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            yield from ((key, text) for key, text in node.items() if isinstance(text, str))
            if isinstance(names := node.get("patternProperties"), Mapping):
                yield from (("pattern", name) for name in names)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def _place(root: str, path: Any) -> str:
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
