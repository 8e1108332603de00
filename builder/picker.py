"""What the picker offers: all step types by category, and those that often come after the one before."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.steps import step_types
from runtime.steps.base import StepType

OFTEN_AFTER = {
    "": ("ai", "http", "condition"),
    "ai": ("condition", "approval", "http"),
    "http": ("condition", "set", "email"),
    "condition": ("approval", "email", "stop"),
    "approval": ("http", "email", "condition"),
    "delay": ("condition", "http", "email"),
    "loop": ("http", "email", "condition"),
    "parallel": ("http", "ai", "approval"),
    "email": ("delay", "callback", "stop"),
    "callback": ("condition", "http", "email"),
    "workflow": ("condition", "email", "approval"),
    "set": ("condition", "http", "loop"),
}


@dataclass(frozen=True, slots=True)
class Category:
    name: str
    kinds: tuple[StepType, ...]


def picks() -> list[Category]:
    """Every step type, by category in the order in which the palette has them."""
    found: dict[str, list[StepType]] = {}
    for kind in step_types().values():
        found.setdefault(kind.category, []).append(kind)
    return [Category(name, tuple(kinds)) for name, kinds in found.items()]


def suggested_after(type_: str) -> list[StepType]:
    known = step_types()
    return [known[name] for name in OFTEN_AFTER.get(type_, OFTEN_AFTER[""]) if name in known]


def suggested_instead(type_: str) -> list[StepType]:
    """Those of the same category: what a step is most often changed into."""
    known = step_types()
    category = known[type_].category if type_ in known else ""
    alike = [kind for kind in known.values() if kind.category == category and kind.type != type_]
    return alike or [kind for kind in suggested_after("") if kind.type != type_]
