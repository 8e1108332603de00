"""A field of the panel as it was typed -> the operation that sets it. Pure."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from runtime.definition import find
from runtime.models import Version
from runtime.steps import step_types
from runtime.triggers import trigger_kinds
from runtime.triggers.inwords import NotWords, from_words

from .curl import is_curl, read_curl
from .editing import EditError
from .editing.places import label_of
from .editing.triggers import trigger_label, trigger_of
from .forms.base import FieldError
from .forms.layout import LAYOUTS
from .forms.safety import read_safety
from .forms.setup import read, spec_for
from .forms.widgets import widget_for
from .forms.workflow import FIELDS

SAFETY = ("retry", "timeout", "on_error", "on_interrupted")


def field_operation(definition: dict[str, Any], live: Version | None, post: QueryDict) -> dict[str, Any]:
    """`owner` names the step or trigger, empty for the flow; `field` is dotted. Raises FieldError, EditError."""
    owner, field = post.get("owner", ""), post.get("field", "")
    if not owner:
        return _of_workflow(field, post)
    step = find(definition, owner)
    return _of_step(step, live, field, post) if step else _of_trigger(trigger_of(definition, owner), field, post)


def _of_step(step: dict[str, Any], live: Version | None, field: str, post: QueryDict) -> dict[str, Any]:
    kind = step_types().get(step["type"])
    name = label_of(step)
    operation: dict[str, Any] = {"op": "configure", "step": step["id"]}
    if field == "either":
        return {**operation, "set": _either(step, post.get("value", "")), "label": f"Change {name}"}
    if field == "config.url" and step["type"] == "http" and is_curl(post.get("value", "")):
        read_in = {f"config.{key}": value for key, value in read_curl(post["value"]).items()}
        return {**operation, "set": read_in, "label": f"Paste a curl command into {name}"}
    if field.split(".")[0] in SAFETY:
        return {**operation, "set": read_safety(step, field, post), "label": f"Change the safety of {name}"}
    value = read(kind.Config if kind else None, field, post)
    if field == "name":
        published = live is not None and find(live.definition, step["id"]) is not None
        return {**operation, "set": {"name": value}, "follow": not published, "label": f"Rename {name}"}
    title = spec_for(kind.Config if kind else None, field).title
    return {**operation, "set": {field: value}, "label": f"Change “{title}” in {name}"}


def _either(step: dict[str, Any], chosen: str) -> dict[str, Any]:
    """Choosing one of two fields takes the other out, and begins with a value that can be read."""
    layout = LAYOUTS.get(step["type"])
    if layout is None or layout.either is None or chosen not in layout.either.names:
        raise FieldError("Choose one of the options.")
    either, config = layout.either, step.get("config") or {}
    values: dict[str, Any] = {f"config.{name}": None for name in either.names}
    values[f"config.{chosen}"] = config.get(chosen) or either.starts[either.names.index(chosen)]
    if chosen == "while":
        values["config.concurrency"] = None
    return values


def _of_trigger(trigger: dict[str, Any], field: str, post: QueryDict) -> dict[str, Any]:
    kind, name = trigger_kinds().get(trigger["type"]), trigger_label(trigger)
    value = read(kind.Config if kind else None, field, post)
    if trigger["type"] == "schedule" and field == "config.cron":
        value = _cron(value)
    title = spec_for(kind.Config if kind else None, field).title
    label = f"Change “{title}” in {name}"
    return {"op": "configure_trigger", "trigger": trigger["id"], "set": {field: value}, "label": label}


def _cron(text: str | None) -> str | None:
    """A schedule as it is kept: words become the cron line that they mean."""
    if not text or text.strip()[:1] in "0123456789*":
        return text
    try:
        return from_words(text)
    except NotWords as wrong:
        raise FieldError(str(wrong)) from None


def _of_workflow(field: str, post: QueryDict) -> dict[str, Any]:
    spec = FIELDS.get(field)
    if spec is None:
        raise EditError(f"There is no field “{field}”.")
    value = widget_for(spec.kind).read(spec, post)
    if field == "name" and not str(value or "").strip():
        raise FieldError("A flow needs a name.")
    return {"op": "configure_workflow", "set": {field: value}, "label": f"Change “{spec.title}” of the flow"}
