"""The data tree of the panel: everything that may be used at a place, with sample values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.definition import walk

from ..editing.places import label_of
from .known import Known
from .samples import item_shape
from .scope import AT_END, SEES_ITS_LOOP, USABLE, Reach
from .shapes import ANY, MISSING, Shape, of_sample, sample_of

REQUEST = ("body", "headers", "query", "method")


@dataclass(frozen=True, slots=True)
class Source:
    """One root of the tree. `path` is how expressions name it; `maybe` says that it is only there if its lane was
    taken."""

    path: str
    name: str
    type: str
    shape: Shape
    maybe: bool = False


def available_at(known: Known, step_id: str) -> list[Source]:
    """The trigger, the innermost loop's item, the steps that have run before this one, and the run itself."""
    definition, outputs, places = known.definition, known.outputs, known.places
    sources = [Source("trigger", known.trigger_name, _trigger_type(definition), known.trigger)]
    for loop in places.loops(step_id)[-1:]:
        fields = {"index": of_sample(0)}
        if _is_while(loop):
            given = {step["id"]: Shape("group", {"output": outputs[step["id"]]}) for step in _inside(loop)}
            fields["last"] = Shape("group", given, closed=True)
        else:
            fields = {"item": item_shape(loop, names_at(known, loop["id"])), **fields}
        sources.append(Source("loop", label_of(loop), "loop", Shape("group", fields, closed=True)))
    for target in places.ways:
        seen, step = places.seen(step_id, target), places.step(target)
        if seen.reach in USABLE and step and not step.get("off") and _says_something(step, outputs[target]):
            source = Source(
                f"steps.{target}.output", label_of(step), step["type"], outputs[target], seen.reach is Reach.MAYBE
            )
            sources.append(source)
    return [*sources, *_about_the_run(definition)]


def request_of(known: Known) -> list[Source]:
    """What a webhook's own rule may use: the request, before there is a run."""
    return [Source(name, name.capitalize(), "webhook", known.trigger.fields.get(name, ANY)) for name in REQUEST]


def names_at(known: Known, step_id: str, *, field: str = "") -> dict[str, Any]:
    """Names for evaluating on sample data at a place, as far as samples reach. Some fields of a loop see its inside."""
    definition, outputs, places = known.definition, known.outputs, known.places
    names: dict[str, Any] = {
        "steps": {},
        "run": {"id": 1, "started_at": "2027-01-15T09:00:00+00:00", "test": True},
        "workflow": {"name": definition.get("name", ""), "version": 1},
        "callbacks": {step["id"]: f"https://…/callbacks/1/{step['id']}/" for step in _callbacks(definition)},
    }
    if (trigger := sample_of(known.trigger)) is not MISSING:
        names["trigger"] = trigger
    for target in places.ways:
        seen = places.seen(step_id, target, at_end=field in AT_END)
        if seen.reach in USABLE and (value := sample_of(outputs[target])) is not MISSING:
            names["steps"][target] = {"output": value}
    for loop in places.loops(step_id, inside=field in SEES_ITS_LOOP):
        item = sample_of(item_shape(loop, names))
        names["loop"] = {"index": 0} | ({"item": item} if item is not MISSING else {})
        if _is_while(loop):
            given = {step["id"]: sample_of(outputs[step["id"]]) for step in _inside(loop)}
            names["loop"]["last"] = {step: {"output": one} for step, one in given.items() if one is not MISSING}
    return names


def _is_while(loop: dict[str, Any]) -> bool:
    return bool((loop.get("config") or {}).get("while"))


def _inside(loop: dict[str, Any]) -> list[dict[str, Any]]:
    return list(walk(loop.get("steps") or []))


def _trigger_type(definition: dict[str, Any]) -> str:
    triggers = definition.get("triggers") or []
    return triggers[0]["type"] if triggers else "manual"


def _says_something(step: dict[str, Any], shape: Shape) -> bool:
    """Conditions, parallels and stops have no output of their own, unless a run has shown one."""
    return step["type"] not in ("condition", "parallel", "stop") or shape.known


def _callbacks(definition: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for step in walk(definition.get("steps") or []) if step.get("type") == "callback"]


def _about_the_run(definition: dict[str, Any]) -> list[Source]:
    run = Shape("group", {"id": Shape("number"), "started_at": Shape("text"), "test": Shape("yes/no")}, closed=True)
    flow = Shape("group", {"name": of_sample(definition.get("name", "")), "version": Shape("number")}, closed=True)
    sources = [Source("run", "This run", "run", run), Source("workflow", "This flow", "flow", flow)]
    if callbacks := _callbacks(definition):
        inner = {step["id"]: Shape("text", about="The address that continues this run.") for step in callbacks}
        sources.append(Source("callbacks", "Callback addresses", "callback", Shape("group", inner, closed=True)))
    return sources
