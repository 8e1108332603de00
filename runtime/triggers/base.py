"""What a trigger kind is: a config model, its words, and the names that its runs can use."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from ..steps.base import Config


class TriggerKind(ABC):
    """One way to start runs. Instances are stateless and shared; one module of `runtime/triggers/` holds one of them."""

    type: ClassVar[str]
    label: ClassVar[str]
    icon: ClassVar[str]
    summary: ClassVar[str]
    also: ClassVar[str] = ""
    """What else it is looked for by, and what other products call it."""
    Config: ClassVar[type[Config]]
    example: ClassVar[dict[str, Any]] = {}

    def line(self, config: Mapping[str, Any]) -> str:
        """What the card on the canvas says under the name."""
        return self.summary

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """An example of `trigger` in expressions, if the config tells one."""
        return None

    def next_after(self, config: Mapping[str, Any], moment: datetime) -> datetime | None:
        """When it fires next by the clock, or None."""
        return None
