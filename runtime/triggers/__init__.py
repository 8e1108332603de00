"""The trigger kinds: one per module, and those that installed packages add by the entry point `holdfast.triggers`.

A module that `HOLDFAST_STEP_MODULES` names may export one as `KIND`, or several as `KINDS`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..plugins import added
from .base import TriggerKind

BUILT_IN = ("webhook", "form", "schedule", "ended", "manual", "api")


@cache
def trigger_kinds() -> dict[str, TriggerKind]:
    """Type name -> trigger kind, in the order of the palette."""
    found = [import_module(f"{__name__}.{name}").KIND for name in BUILT_IN]
    return {kind.type: kind for kind in [*found, *added("holdfast.triggers", "KIND")]}
