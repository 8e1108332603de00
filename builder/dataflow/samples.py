"""Samples, from a run or from what triggers tell, and what each step type gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.definition import walk
from runtime.expressions import ExpressionError, compile, compile_template, compile_value
from runtime.triggers import trigger_kinds
from runtime.triggers.manual import fields_of

from .shapes import ANY, MISSING, Shape, group, merged, of_sample, of_schema, sample_of


@dataclass(frozen=True, slots=True)
class Samples:
    """What a real run had: its input, its steps' outputs by id, and what to call it ("run 48,213"). `pins` are the steps
    whose output a person set instead; `stamp` changes whenever any of it was chosen anew, `came` whenever the run has given
    more."""

    trigger: Any = MISSING
    steps: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    pins: frozenset[str] = frozenset()
    stamp: str = ""
    came: tuple[Any, ...] = ()


TEXT, NUMBER, YES_NO, EMPTY_LIST = Shape("text"), Shape("number"), Shape("yes/no"), Shape("list")


def trigger_shape(definition: dict[str, Any], samples: Samples) -> Shape:
    """What `trigger` is. With several triggers a field counts as known when any of them has it."""
    shapes = [_of_trigger(trigger) for trigger in definition.get("triggers") or []]
    declared = _either(shapes) if shapes else ANY
    return merged(declared, samples.trigger)


def _of_trigger(trigger: dict[str, Any]) -> Shape:
    kind = trigger_kinds().get(trigger.get("type", ""))
    config = trigger.get("config") or {}
    try:
        sample = kind.sample(config) if kind else None
    except Exception:  # noqa: BLE001 - a config in the middle of being written may be anything
        sample = None
    match trigger.get("type"):
        case "webhook":
            body = of_sample(config["sample"]) if config.get("sample") is not None else ANY
            return group(body=body, headers=Shape("group"), query=Shape("group"), method=TEXT)
        case "manual" | "form":
            fields = fields_of(config)
            body = of_sample((sample or {}).get("body") or {})
            body = Shape("group", {one["id"]: body.fields.get(one["id"], TEXT) for one in fields}, closed=True)
            return group(body=body) if trigger["type"] == "manual" else group(body=body, by=TEXT, at=TEXT)
        case "schedule":
            return group(scheduled_at=TEXT, occurrence=TEXT)
        case "api":
            return group(body=of_sample(config["sample"]) if config.get("sample") is not None else ANY)
    return of_sample(sample) if sample is not None else ANY


def _either(shapes: list[Shape]) -> Shape:
    if len(shapes) == 1:
        return shapes[0]
    if any(shape.type == "any" for shape in shapes):
        return ANY
    if not all(shape.type == "group" for shape in shapes):
        return shapes[0]
    names = dict.fromkeys(name for shape in shapes for name in shape.fields)
    inner = {name: _either([shape.fields[name] for shape in shapes if name in shape.fields]) for name in names}
    return Shape("group", inner, closed=all(shape.closed for shape in shapes))


def output_shapes(definition: dict[str, Any], samples: Samples) -> dict[str, Shape]:
    """The output of every step, by id. Computed in page order, so that a `set` may use what came before it."""
    trigger = trigger_shape(definition, samples)
    names: dict[str, Any] = {"steps": {}, "workflow": {"name": definition.get("name", "")}}
    if (value := sample_of(trigger)) is not MISSING:
        names["trigger"] = value
    found: dict[str, Shape] = {}
    for step in walk(definition.get("steps") or []):
        shape = merged(_declared(step, names), samples.steps.get(step["id"], MISSING))
        found[step["id"]] = shape
        if (value := sample_of(shape)) is not MISSING:
            names["steps"][step["id"]] = {"output": value}
    return found


def _declared(step: dict[str, Any], names: Mapping[str, Any]) -> Shape:
    declare = DECLARED.get(step.get("type", ""))
    try:
        return declare(step.get("config") or {}, names) if declare else ANY
    except Exception:  # noqa: BLE001 - a config in the middle of being written may be anything
        return ANY


def _ai(config: Mapping[str, Any], names: Mapping[str, Any]) -> Shape:
    match config.get("task", "extract"):
        case "extract":
            return of_schema(config.get("schema")) if config.get("schema") else ANY
        case "classify":
            labels = config.get("labels") or {}
            label = Shape("text", sample=next(iter(labels))) if labels else TEXT
            return group(label=label, score=Shape("number", about="0 to 1"), reason=TEXT)
    return group(text=TEXT)


def _set(config: Mapping[str, Any], names: Mapping[str, Any]) -> Shape:
    values = config.get("values")
    if not isinstance(values, dict):
        return ANY
    return Shape("group", {key: _computed(value, names) for key, value in values.items()}, closed=True)


def _computed(value: Any, names: Mapping[str, Any]) -> Shape:
    try:
        made = compile_template(value) if isinstance(value, str) else compile_value(value)  # texts are remembered
        return of_sample(made.render(names, steps=20_000))
    except (ExpressionError, ValueError):
        return ANY


def _loop(config: Mapping[str, Any], names: Mapping[str, Any]) -> Shape:
    results = {"results": EMPTY_LIST} if config.get("collect") else {}
    if config.get("on_item_error") == "collect":
        results["errors"] = EMPTY_LIST
    return group(count=NUMBER, succeeded=NUMBER, failed=NUMBER, **results)


def _workflow(config: Mapping[str, Any], names: Mapping[str, Any]) -> Shape:
    return group(run=NUMBER) if config.get("wait") is False else group(run=NUMBER, state=TEXT, output=ANY)


PAGES = group(status=NUMBER, headers=Shape("group"), items=EMPTY_LIST, pages=NUMBER, more=YES_NO)
HTTP = group(status=NUMBER, headers=Shape("group"), body=ANY)
FILE = group(status=NUMBER, headers=Shape("group"), body=group(filename=TEXT, type=TEXT, size=NUMBER, file=TEXT))
FORM_TYPES = {"number": NUMBER, "checkbox": YES_NO}


def _http(config: Mapping[str, Any], names: Mapping[str, Any]) -> Shape:
    if config.get("pages", "none") != "none":
        return PAGES
    return FILE if config.get("response") == "file" else HTTP


def _approval(config: Mapping[str, Any], names: Mapping[str, Any]) -> Shape:
    """The answer, and what approvers fill in beside it."""
    form = config.get("form")
    fields = [one for one in form if isinstance(one, dict) and one.get("id")] if isinstance(form, list) else []
    answers = {one["id"]: replace(FORM_TYPES.get(one.get("type"), TEXT), about=one.get("label", "")) for one in fields}
    return group(
        decision=Shape("text", about="approved, rejected or expired"),
        by=TEXT,
        comment=TEXT,
        form=Shape("group", answers, closed=bool(answers)),
        at=TEXT,
        decisions=EMPTY_LIST,
    )


EMAIL = group(to=Shape("list", item=TEXT), cc=Shape("list", item=TEXT), subject=TEXT)

DECLARED: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Shape]] = {
    "ai": _ai,
    "set": _set,
    "loop": _loop,
    "workflow": _workflow,
    "http": _http,
    "approval": _approval,
    "email": lambda config, names: EMAIL,
    "delay": lambda config, names: group(waited_until=TEXT),
}


def item_shape(step: dict[str, Any], names: Mapping[str, Any]) -> Shape:
    """What `loop.item` is inside a loop: the first item of its list in the sample data."""
    items = (step.get("config") or {}).get("items")
    if not isinstance(items, str):
        return ANY
    try:
        found = compile(items).evaluate(names, steps=20_000)
    except (ExpressionError, ValueError):
        return ANY
    return of_sample(found[0]) if isinstance(found, list) and found else ANY
