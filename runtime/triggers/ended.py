"""Another flow ended: when a run of another flow of the team fails, succeeds or is cancelled, a run of this one starts.

So one flow can look after the failures of all. It knows whose end it is as `trigger.run`, `trigger.flow`, `trigger.output` and
`trigger.error`.

Test runs start nothing, and a flow is not started by its own ends. Chains of flows that start each other stop at the
eighth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from ..steps.base import Config
from ..steps.fields import Widget, Words
from .base import TriggerKind

WORDS = {"failed": "fails", "succeeded": "succeeds", "cancelled": "is cancelled", "any": "ends"}


class EndedConfig(Config):
    when: Annotated[
        Literal["failed", "succeeded", "cancelled", "any"],
        Words({"failed": "Fails", "succeeded": "Succeeds", "cancelled": "Is cancelled", "any": "Ends"}),
    ] = Field("failed", title="When a run")
    flow: Annotated[str, Field(max_length=200), Widget("flow")] = Field(
        "", title="Of the flow", description="When empty, of any flow of the team."
    )


class Ended(TriggerKind):
    type = "ended"
    label = "Another flow ended"
    icon = "flag"
    summary = "Start when a run of another flow fails or succeeds"
    also = "error trigger on failure when another fails"
    Config = EndedConfig
    example = {"when": "failed"}

    def line(self, config: Mapping[str, Any]) -> str:
        what = WORDS.get(str(config.get("when", "failed")), "ends")
        return f"When a run of {config.get('flow') or 'any flow'} {what}"

    def sample(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        state = config.get("when", "failed")
        failed = state in ("failed", "any")
        return {
            "run": {"id": 48213, "title": "Halden Robotics", "state": "failed" if failed else state, "ended_at": "2027-01-15T09:00:00+00:00"},
            "flow": {"name": config.get("flow") or "Lead qualification", "version": 3},
            "output": None,
            "error": {"step": "deal", "name": "Create deal", "message": "crm.example answered 422."} if failed else None,
        }


KIND = Ended()
