"""The trigger kinds: one per module."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .base import TriggerKind

BUILT_IN = ("webhook", "form", "schedule", "ended", "manual", "api")


@cache
def trigger_kinds() -> dict[str, TriggerKind]:
    """Type name -> trigger kind, in the order of the palette."""
    return {kind.type: kind for kind in (import_module(f"{__name__}.{name}").KIND for name in BUILT_IN)}
