"""Types of config fields. Each carries the check that is made when the definition is saved, and the widget that edits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from ..durations import parse_duration
from ..expressions import SyntaxProblem, compile, compile_template, compile_value


@dataclass(frozen=True, slots=True)
class Widget:
    """How the builder's panel edits the field. `connections` are the kinds of connection to choose from; empty: all."""

    kind: str
    connections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Words:
    """What the options of a choice are called on screen. One that is not named is called as it is written: `at_once`, “At once”."""

    of: Mapping[str, str]


UNREADABLE = "unreadable"
"""The kind of every problem that is a text's own spelling."""


def _unreadable(problem: SyntaxProblem) -> PydanticCustomError:
    return PydanticCustomError(UNREADABLE, "{problem}", {"problem": str(problem)})


def _expression(source: str) -> str:
    try:
        compile(source)
    except SyntaxProblem as problem:
        raise _unreadable(problem) from None
    return source


def _template(source: str) -> str:
    try:
        compile_template(source)
    except SyntaxProblem as problem:
        raise _unreadable(problem) from None
    return source


def _value(value: Any) -> Any:
    try:
        compile_value(value)
    except SyntaxProblem as problem:
        raise _unreadable(problem) from None
    return value


def _duration(text: str) -> str:
    if "{{" in text:
        return _template(text)
    parse_duration(text)
    return text


def _length(text: str) -> str:
    if "{{" in text:
        raise ValueError("A fixed length is needed here, such as 30s, 15m or 2h: it holds for all runs of a version.")
    parse_duration(text)
    return text


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"“{name[:60]}” is not a time zone. Use a name such as Europe/Berlin.") from None
    return name


Expression = Annotated[str, Widget("expression"), AfterValidator(_expression)]
Text = Annotated[str, Widget("text"), AfterValidator(_template)]
LongText = Annotated[str, Widget("long_text"), AfterValidator(_template)]
Json = Annotated[Any, Widget("json"), AfterValidator(_value)]
Pairs = Annotated[dict[str, Text], Widget("pairs")]
Addresses = Annotated[list[Text], Widget("addresses")]
Duration = Annotated[str, Widget("duration"), AfterValidator(_duration)]
Length = Annotated[str, Widget("duration"), AfterValidator(_length)]
"""A duration that no run works out: it is read when the version is made ready."""
Zone = Annotated[str, Field(max_length=64), Widget("zone"), AfterValidator(_zone)]
ConnectionName = Annotated[str, Widget("connection")]
JsonSchema = Annotated[dict[str, Any], Widget("schema")]
Labels = Annotated[dict[str, str], Widget("labels")]
"""Label -> one line that describes it."""
FormFields = Annotated[list[dict[str, Any]], Widget("form_fields")]


def widget_of(info: FieldInfo) -> str:
    """The widget kind of a config field, also of an optional one; an empty string for the type's own default."""
    marks = [*info.metadata, *(mark for part in get_args(info.annotation) for mark in getattr(part, "__metadata__", ()))]
    return next((mark.kind for mark in marks if isinstance(mark, Widget)), "")
