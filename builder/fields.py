"""What the fields of a config model are, told once for everything that reads models: forms, references, renaming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from runtime.steps.fields import Widget, Words

TEMPLATES = {"text", "long_text", "json", "pairs", "values", "addresses", "attachments", "duration"}
"""Kinds whose strings, at any depth, may hold `{{ }}`."""
EXPRESSIONS = {"expression", "expressions"}
"""Kinds whose strings are expressions from end to end."""


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One field of a config model. `kind` is a widget kind of `runtime.steps.fields`, or `choice integer number boolean
    string strings expressions group groups` from the type alone; what nothing fits is `json`."""

    name: str
    kind: str
    title: str
    description: str = ""
    examples: tuple[Any, ...] = ()
    default: Any = None
    required: bool = False
    nullable: bool = False
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    longest: int | None = None
    model: type[BaseModel] | None = None
    connections: tuple[str, ...] = ()
    words: tuple[tuple[str, str], ...] = ()

    def word(self, option: Any) -> str:
        """What an option of a choice is called."""
        text = str(option)
        return dict(self.words).get(text) or (text if text.isupper() else text.replace("_", " ").capitalize())


@cache
def config_fields(model: type[BaseModel]) -> tuple[ConfigField, ...]:
    """The fields of a model in their order, under the names that a definition uses (the aliases)."""
    return tuple(_field(name, info) for name, info in model.model_fields.items())


def config_field(model: type[BaseModel], name: str) -> ConfigField | None:
    return next((field for field in config_fields(model) if field.name == name), None)


def _field(name: str, info: FieldInfo) -> ConfigField:
    annotation, metadata, nullable = _unwrapped(info.annotation, list(info.metadata))
    kind, choices, inner = _kind(annotation, metadata)
    required = info.is_required()
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return ConfigField(
        name=info.alias or name,
        kind=str(extra.get("widget") or kind),
        title=info.title or name.strip("_").replace("_", " ").capitalize(),
        description=info.description or "",
        examples=tuple(info.examples or ()),
        default=None if required else info.get_default(call_default_factory=True),
        required=required,
        nullable=nullable,
        choices=choices,
        minimum=_bound(metadata, Ge, Gt, "ge", "gt"),
        maximum=_bound(metadata, Le, Lt, "le", "lt"),
        longest=next((item.max_length for item in metadata if isinstance(item, MaxLen)), None),
        model=inner,
        connections=next((item.connections for item in metadata if isinstance(item, Widget)), ()),
        words=next((tuple(item.of.items()) for item in metadata if isinstance(item, Words)), ()),
    )


def _unwrapped(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any], bool]:
    """Strip Annotated and `| None`: pydantic lifts the metadata of `Annotated[...]` but not of `Annotated[...] |
    None`."""
    nullable = False
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            metadata = [*metadata, *more]
        elif get_origin(annotation) in (Union, UnionType) and len(_without_none(annotation)) == 1:
            nullable = True
            annotation = _without_none(annotation)[0]
        else:
            return annotation, list(_flat(metadata)), nullable


def _without_none(annotation: Any) -> list[Any]:
    return [item for item in get_args(annotation) if item is not NoneType]


def _flat(metadata: list[Any]) -> Iterator[Any]:
    """A FieldInfo nested in Annotated carries metadata of its own."""
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from item.metadata
        else:
            yield item


def _kind(annotation: Any, metadata: list[Any]) -> tuple[str, tuple[Any, ...], type[BaseModel] | None]:
    if widget := next((item.kind for item in metadata if isinstance(item, Widget)), ""):
        return widget, (), None
    origin = get_origin(annotation)
    if origin is Literal:
        return "choice", get_args(annotation), None
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "group", (), annotation
    if origin is list:
        return _list_kind(*get_args(annotation))
    simple = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return simple.get(annotation, "json"), (), None


def _list_kind(item: Any) -> tuple[str, tuple[Any, ...], type[BaseModel] | None]:
    annotation, metadata, _ = _unwrapped(item, [])
    inner, _, model = _kind(annotation, metadata)
    kinds = {"expression": "expressions", "text": "addresses", "string": "strings", "group": "groups"}
    return kinds.get(inner, "json"), (), model


def _bound(metadata: list[Any], closed: type, open_: type, closed_name: str, open_name: str) -> float | None:
    for item in metadata:
        if isinstance(item, closed):
            return getattr(item, closed_name)
        if isinstance(item, open_):
            return getattr(item, open_name)
    return None


__all__ = ["EXPRESSIONS", "TEMPLATES", "ConfigField", "config_field", "config_fields"]
