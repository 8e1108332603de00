"""The data tree as it is drawn: rows with a name, a short value and a type, and the path that a click inserts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .dataflow import Shape, Source
from .dataflow.paths import written
from .dataflow.shapes import MISSING

DEEPEST, MOST, LONGEST = 6, 60, 60


@dataclass(frozen=True, slots=True)
class Branch:
    """`path` is an expression. `icon` is set for roots only: the type of the step behind it."""

    path: str
    key: str
    value: str
    type: str
    children: tuple[Branch, ...] = ()
    icon: str = ""
    maybe: bool = False
    about: str = ""


def tree(sources: list[Source]) -> list[Branch]:
    return [_root(source) for source in sources]


def _root(source: Source) -> Branch:
    shape, path = source.shape, source.path
    if source.path == "trigger" and "body" in shape.fields:
        inner = (*_children("trigger.body", shape.fields["body"], 0), *_rest(shape))
    else:
        inner = _children(path, shape, 0)
    return Branch(
        path, source.name, "" if inner else _value(shape), "" if inner else shape.type, inner, source.type, source.maybe
    )


def _rest(shape: Shape) -> tuple[Branch, ...]:
    """Headers and the like stand below what the body holds; an unknown body can be used as a whole."""
    others = {key: inner for key, inner in shape.fields.items() if key != "body" or not inner.fields}
    return _children("trigger", Shape("group", others), 0)


def _children(path: str, shape: Shape, depth: int) -> tuple[Branch, ...]:
    if depth >= DEEPEST:
        return ()
    if shape.type == "list" and shape.item is not None:
        first = f"{path}[0]"
        return (_branch(first, "first item", shape.item, depth),)
    return tuple(_branch(_joined(path, key), key, inner, depth) for key, inner in list(shape.fields.items())[:MOST])


def _branch(path: str, key: str, shape: Shape, depth: int) -> Branch:
    return Branch(path, key, _value(shape), shape.type, _children(path, shape, depth + 1), about=shape.about)


def _joined(path: str, key: str) -> str:
    return path + written(["", key])


def _value(shape: Shape) -> str:
    return short(shape.sample) if shape.known else ""


def short(value: Any) -> str:
    """A value in one short line: text as it is, a list by its length."""
    if value is MISSING:
        return ""
    if isinstance(value, str):
        text = " ".join(value.split())
    elif isinstance(value, list):
        text = f"{len(value)} item{'' if len(value) == 1 else 's'}"
    elif isinstance(value, dict):
        text = f"{len(value)} field{'' if len(value) == 1 else 's'}"
    else:
        text = json.dumps(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
