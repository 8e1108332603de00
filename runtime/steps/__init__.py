"""The palette: one step type per module, and those that installed packages add by the entry point `holdfast.steps`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from .base import StepType

BUILT_IN = (
    "condition", "parallel", "loop", "ai", "http", "email", "delay", "approval", "callback", "set", "stop",
)


@cache
def step_types() -> dict[str, StepType]:
    """Type name -> step type, in the order of the palette."""
    found = [import_module(f"{__name__}.{name}").STEP for name in BUILT_IN]
    found += [point.load() for point in entry_points(group="holdfast.steps")]
    return {step.type: step for step in found}
