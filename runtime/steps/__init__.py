"""The palette: one step type per module, and those that installed packages add by the entry point `holdfast.steps`.

While a step type is being written, before there is a package: `HOLDFAST_STEP_MODULES=my.steps.fax,my.steps.sms` names
modules to import. Each exports `STEP`, or several as `STEPS`. Set it for the web server and the workers alike.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..plugins import added
from .base import StepType

BUILT_IN = (
    "condition", "parallel", "loop", "workflow", "ai", "http", "email", "delay", "approval", "callback", "set", "stop",
)


@cache
def step_types() -> dict[str, StepType]:
    """Type name -> step type, in the order of the palette."""
    found = [import_module(f"{__name__}.{name}").STEP for name in BUILT_IN]
    return {step.type: step for step in [*found, *added("holdfast.steps", "STEP")]}
