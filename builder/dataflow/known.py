"""What is known of one definition, worked out when it is first asked for: many answers about it need the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..editing.triggers import trigger_label
from .samples import Samples, output_shapes, trigger_shape
from .scope import Places
from .shapes import Shape

NO_SAMPLES = Samples()


@dataclass(frozen=True)
class Known:
    """A definition that stays as it is for as long as this is held, and the sample data of its flow."""

    definition: dict[str, Any]
    samples: Samples = NO_SAMPLES

    @cached_property
    def places(self) -> Places:
        return Places.of(self.definition)

    @cached_property
    def trigger(self) -> Shape:
        return trigger_shape(self.definition, self.samples)

    @cached_property
    def trigger_name(self) -> str:
        """What to call it in words."""
        triggers = self.definition.get("triggers") or []
        return trigger_label(triggers[0]) if len(triggers) == 1 else "Trigger"

    @cached_property
    def outputs(self) -> dict[str, Shape]:
        """Of every step, by id."""
        return output_shapes(self.definition, self.samples)
