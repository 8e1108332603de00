"""What a value looks like: declared by a schema, guessed from a sample, or unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MISSING: Any = object()
"""No sample. Not None, which is one."""

MOST_FIELDS = 200


@dataclass(frozen=True, slots=True)
class Shape:
    """`type` is a word for the screen: text, number, yes/no, list, group, empty, any. A `closed` group has these
    fields and no others; an open one is only known by a sample. `item` is what a list holds."""

    type: str = "any"
    fields: Mapping[str, Shape] = field(default_factory=dict)
    item: Shape | None = None
    closed: bool = False
    sample: Any = field(default=MISSING, compare=False)
    about: str = ""

    @property
    def known(self) -> bool:
        return self.sample is not MISSING

    def at(self, path: Sequence[str | int]) -> tuple[Shape, int]:
        """The shape at the end of a path, and how many of its parts could be followed."""
        shape: Shape = self
        for count, part in enumerate(path):
            inner = shape.fields.get(part) if isinstance(part, str) else shape.item
            if inner is None:
                return shape, count
            shape = inner
        return shape, len(path)


ANY = Shape()
_WORDS = {
    "string": "text",
    "integer": "number",
    "number": "number",
    "boolean": "yes/no",
    "array": "list",
    "object": "group",
    "null": "empty",
}


def of_sample(value: Any, depth: int = 0) -> Shape:
    """An open shape: the next value may have other fields."""
    match value:
        case None:
            return Shape("empty", sample=None)
        case bool():
            return Shape("yes/no", sample=value)
        case int() | float():
            return Shape("number", sample=value)
        case str():
            return Shape("text", sample=value)
        case list():
            return Shape("list", item=of_sample(value[0], depth + 1) if value and depth < 8 else None, sample=value)
        case dict():
            inner = (
                {key: of_sample(item, depth + 1) for key, item in list(value.items())[:MOST_FIELDS]}
                if depth < 8
                else {}
            )
            return Shape("group", inner, sample=value)
    return ANY


def of_schema(schema: Any, depth: int = 0) -> Shape:
    """A closed shape where the schema lists properties, unless it says that others may come."""
    if not isinstance(schema, dict) or depth > 8:
        return ANY
    kind = schema.get("type")
    kind = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) and kind else kind
    about = str(schema.get("description") or "")
    properties = schema.get("properties")
    if isinstance(properties, dict):
        inner = {str(key): of_schema(item, depth + 1) for key, item in properties.items()}
        return Shape("group", inner, closed=not schema.get("additionalProperties"), about=about)
    item = of_schema(schema["items"], depth + 1) if isinstance(schema.get("items"), dict) else None
    return Shape(_WORDS.get(kind, "any") if isinstance(kind, str) else "any", item=item, about=about)


def group(closed: bool = True, **inner: Shape) -> Shape:
    return Shape("group", inner, closed=closed)


def merged(declared: Shape, sample: Any) -> Shape:
    """The declared shape with the values of a sample. What is declared decides; a sample fills in where nothing is."""
    if sample is MISSING:
        return declared
    seen = of_sample(sample)
    if declared.type == "any":
        return replace(seen, about=declared.about)
    if declared.type == "group" and seen.type == "group":
        inner = {
            key: merged(shape, sample[key] if key in sample else MISSING) for key, shape in declared.fields.items()
        }
        if not declared.closed:
            inner |= {key: shape for key, shape in seen.fields.items() if key not in inner}
        return replace(declared, fields=inner, sample=sample)
    if declared.type == "list" and seen.type == "list":
        item = merged(declared.item, sample[0] if sample else MISSING) if declared.item else seen.item
        return replace(declared, item=item, sample=sample)
    return replace(declared, sample=sample)


def sample_of(shape: Shape) -> Any:
    """A value of this shape for previews: the sample where there is one, built from the fields' samples otherwise."""
    if shape.known:
        return shape.sample
    if shape.type == "group":
        values = {key: sample_of(inner) for key, inner in shape.fields.items()}
        known = {key: value for key, value in values.items() if value is not MISSING}
        return known or MISSING
    return MISSING


SKETCHES: Mapping[str, Any] = {"text": "…", "number": 0, "yes/no": True, "list": [], "empty": None}


def sketch_of(shape: Shape) -> Any:
    """A value of this shape to be filled in: its sample where there is one. What nobody knows is an empty group."""
    if shape.known:
        return shape.sample
    if shape.type == "list" and shape.item is not None:
        return [sketch_of(shape.item)]
    return {key: sketch_of(inner) for key, inner in shape.fields.items()} if shape.fields else SKETCHES.get(shape.type, {})
