"""The fields of the Setup tab, and reading one of them back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.http import QueryDict
from pydantic import BaseModel

from runtime.definition import Problem

from ..fields import ConfigField, config_fields
from .base import FieldError, Offer, Shown
from .layout import Layout, layout_of
from .plain import to_text
from .widgets import WIDGETS, widget_for

CONDITION = ConfigField("when", "condition", "When", nullable=True)
LABEL = ConfigField("label", "string", "Lane", longest=80)
NAME = ConfigField("name", "string", "Name", longest=200)
NOTE = ConfigField("note", "prose", "Note", "For those who edit this flow.")


def specs_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, ConfigField]]:
    """Every field by its dotted name; groups are opened up."""
    for spec in config_fields(model):
        name = f"{prefix}{spec.name}"
        if spec.kind == "group" and spec.model:
            yield from specs_of(spec.model, f"{name}.")
        else:
            yield name, spec


def setup_fields(type_: str, model: type[BaseModel], config: Mapping[str, Any], offer: Offer) -> list[Shown]:
    """The fields of a config, arranged; those that the config's other values make pointless are left out."""
    specs = dict(specs_of(model))
    layout = layout_of(type_, list(specs.items()))
    order = [*layout.first, *(name for name in specs if name not in layout.first and name not in layout.under)]
    found = []
    for name in (one for top in order for one in (top, *(low for low, high in layout.under.items() if high == top))):
        if name in specs and name not in layout.hidden and _wanted(name, layout, config):
            found.append(_shown(name, specs, layout, config, offer))
    return found


def _wanted(name: str, layout: Layout, config: Mapping[str, Any]) -> bool:
    if layout.either and name in layout.either.names:
        return name == layout.either.chosen(config)
    return layout.when[name](config) if name in layout.when else True


def _shown(
    name: str, specs: Mapping[str, ConfigField], layout: Layout, config: Mapping[str, Any], offer: Offer
) -> Shown:
    shown = show(f"config.{name}", specs[name], value_at(config, name), offer)
    said = layout.said(config).get(name)
    return replace(
        shown,
        title=said.title if said else layout.titles.get(name, shown.title),
        help=said.help if said else shown.help,
        example=said.example if said else shown.example,
        more=name not in layout.first and _is_usual(layout.under.get(name, name), specs, config),
        width=layout.beside.get(name, ""),
    )


def _is_usual(name: str, specs: Mapping[str, ConfigField], config: Mapping[str, Any]) -> bool:
    return value_at(config, name) in (None, "", specs[name].default)


def show(name: str, spec: ConfigField, value: Any, offer: Offer = Offer()) -> Shown:  # noqa: B008
    widget = widget_for(spec.kind)
    example = next((to_text(one) for one in spec.examples if isinstance(one, (str, int, float))), "")
    if spec.default not in (None, "") and isinstance(spec.default, (str, int, float)):
        example = str(spec.default)  # what holds when it stays empty
    return Shown(
        name=name,
        kind=widget.kind,
        title=spec.title,
        help=spec.description,
        required=spec.required,
        value=value,
        data={**widget.data(spec, value, offer), "grouped": widget.grouped},
        example=example,
    )


def spec_for(model: type[BaseModel] | None, field: str) -> ConfigField:
    """The field behind a dotted name of the panel (`config.url`, `branches.0.when`, `name`). Raises FieldError."""
    head, _, rest = field.partition(".")
    if head == "config" and model is not None:
        spec = dict(specs_of(model)).get(rest)
        if spec:
            return spec
    if head == "branches" and rest.count(".") == 1:
        return {"when": CONDITION, "label": LABEL}.get(rest.partition(".")[2]) or _no_such(field)
    return {"name": NAME, "note": NOTE}.get(field) or _no_such(field)


def read(model: type[BaseModel] | None, field: str, post: QueryDict) -> Any:
    """What was typed into a field of the panel. None takes it out. Raises FieldError."""
    spec = spec_for(model, field)
    return WIDGETS.get(spec.kind, WIDGETS["json"]).read(spec, post)


def _no_such(field: str) -> ConfigField:
    raise FieldError(f"There is no field “{field}” here any more.")


def with_problems(fields: Iterable[Shown], problems: list[Problem]) -> list[Shown]:
    """Each field with the first problem that lies in it. Blocking ones come before warnings."""
    ordered = sorted(problems, key=lambda problem: problem.warning)
    result = []
    for shown in fields:
        mine = next((problem for problem in ordered if lies_in(problem.field, shown.name)), None)
        if mine:
            at = mine.field[len(shown.name) + 1 :] if mine.row is None else str(mine.row)
            shown = replace(shown, error=mine.message, warning=mine.warning, fix=mine.fix, more=False, at=at)
        result.append(shown)
    return result


def elsewhere(fields: Iterable[Shown], problems: list[Problem]) -> list[Problem]:
    """Problems of the step that lie in none of the fields: shown at the top."""
    names = [shown.name for shown in fields]
    return [problem for problem in problems if not any(lies_in(problem.field, name) for name in names)]


def lies_in(place: str, field: str) -> bool:
    return place == field or place.startswith(f"{field}.")


def value_at(config: Any, name: str) -> Any:
    for part in name.split("."):
        if not isinstance(config, Mapping):
            return None
        config = config.get(part)
    return config
