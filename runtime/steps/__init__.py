"""The palette: one step type per module, and those that installed packages add by the entry point `holdfast.steps`.

While a step type is being written, before there is a package: `HOLDFAST_STEP_MODULES=my.steps.fax,my.steps.sms` names
modules to import. Each exports `STEP`, or several as `STEPS`. Set it for the web server and the workers alike.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from .base import StepType

BUILT_IN = (
    "condition", "parallel", "loop", "workflow", "ai", "http", "email", "delay", "approval", "callback", "set", "stop",
)


@cache
def step_types() -> dict[str, StepType]:
    """Type name -> step type, in the order of the palette."""
    found = [import_module(f"{__name__}.{name}").STEP for name in BUILT_IN]
    found += [point.load() for point in entry_points(group="holdfast.steps")]
    for name in filter(None, os.environ.get("HOLDFAST_STEP_MODULES", "").replace(" ", "").split(",")):
        module = import_module(name)
        found += getattr(module, "STEPS", None) or [module.STEP]
    return {step.type: step for step in found}
