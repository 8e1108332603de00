"""A change of a definition in the words of the panel: which field, and its values as people know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from runtime.steps import step_types
from runtime.triggers import trigger_kinds

from .diff import NOTE, Change, FieldChange
from .fields import ConfigField
from .forms.layout import LAYOUTS
from .forms.plain import to_text
from .forms.safety import CHECK_SPECS, ON_ERROR
from .forms.setup import specs_of
from .forms.workflow import FIELDS as FLOW

LONGEST = 120
PLAIN = {
    "type": "Type",
    "text": "Text",
    "beside": "Beside",
    "name": "Name",
    "note": "Note",
    "off": "Switched off",
    "timeout": "Time-out per attempt",
    "order of lanes": "Order of lanes",
    "retry": "Retries",
    "retry.max_attempts": "Attempts",
    "retry.first": "First wait",
    "retry.longest": "Longest wait",
    "retry.total": "All attempts within",
}
INTERRUPTED = {"repeat": "repeat", "ask": "ask a person"}


@dataclass(frozen=True, slots=True)
class Told:
    """One field: what it is called, and its value before and after; None where there was none."""

    field: str
    before: str | None
    after: str | None


def told(change: Change) -> list[Told]:
    return [_told(change, one) for one in change.fields]


def field_title(type_: str, name: str) -> str:
    """What the panel calls a field of a step's or trigger's config; `name` is dotted and may lead into a value."""
    model = _model(type_)
    found = _spec(model, name) if model else None
    if found is None:
        return name
    spec, inside = found
    title = LAYOUTS[type_].titles.get(spec.name, spec.title) if type_ in LAYOUTS else spec.title
    return _within(title, inside)


def _told(change: Change, one: FieldChange) -> Told:
    name, _, rest = one.field.partition(".")
    if name == "on_interrupted":
        return _interrupted(one, rest)
    if name == "on_error":
        return _told_as("If it fails", one, lambda value: ON_ERROR.get(value or "fail", str(value)), always=True)
    if name == "lanes":
        return _lane(one, *rest.split("."))
    if change.type == NOTE:
        return _told_as(PLAIN[one.field], one)
    if not change.owner and one.field in FLOW:
        return _told_as(FLOW[one.field].title, one)
    if not change.owner and name in FLOW:
        return _told_as(_within(FLOW[name].title, rest), one)
    model = _model(change.type)
    if name == "config" and model and (found := _spec(model, rest)):
        spec, inside = found
        return _told_as(field_title(change.type, rest), one, spec.word if spec.choices and not inside else None)
    return _told_as(PLAIN.get(one.field, one.field), one)


def _interrupted(one: FieldChange, rest: str) -> Told:
    if rest:
        part, _, inside = rest.removeprefix("check.").partition(".")
        title = CHECK_SPECS[part].title if part in CHECK_SPECS else part.capitalize()
        return _told_as(f"Check first: {_within(title, inside)}", one)

    def word(value: Any) -> str:
        return "check first" if isinstance(value, dict) else INTERRUPTED.get(value, "as usual")

    return _told_as("If interrupted", one, word, always=True)


def _lane(one: FieldChange, lane: str, part: str = "", *_: str) -> Told:
    return _told_as({"label": f"Name of lane “{lane}”", "when": f"Rule of lane “{lane}”"}.get(part, f"Lane “{lane}”"), one)


def _told_as(field: str, one: FieldChange, word: Any = None, *, always: bool = False) -> Told:
    """`always`: nothing chosen is a value too, the usual one."""
    before, after = (
        None if value is None and not always else (word or plain)(value) for value in (one.before, one.after)
    )
    return Told(field, before, after)


def _within(title: str, inside: str) -> str:
    return f"{title}: {inside}" if inside else title


def _model(type_: str) -> type[BaseModel] | None:
    kind = step_types().get(type_) or trigger_kinds().get(type_)
    return kind.Config if kind else None


def _spec(model: type[BaseModel], name: str) -> tuple[ConfigField, str] | None:
    """The field that a dotted name lies in, and the rest of the name."""
    for known, spec in specs_of(model):
        if name == known or name.startswith(f"{known}."):
            return spec, name[len(known) + 1 :]
    return None


def plain(value: Any) -> str:
    """A value of a definition in one line, as it is typed in the panel."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = " ".join(to_text(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
