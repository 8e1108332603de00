"""The flow's own fields: its name, and what its runs are called and found by."""

from __future__ import annotations

from typing import Any

from ..fields import ConfigField
from .base import Offer, Shown
from .setup import show

FIELDS = {
    "name": ConfigField("name", "string", "Name", required=True, longest=200),
    "description": ConfigField("description", "prose", "Description", "What it does, for those who come after you."),
    "title": ConfigField(
        "title",
        "text",
        "Runs are called",
        "Shown in lists and mails. Made when the run starts.",
        ("{{ trigger.body.company }}",),
    ),
    "on_failure": ConfigField(
        "on_failure", "flow", "When a run fails, start", "Another flow; it is told which run failed, where and why."
    ),
    "budget_run": ConfigField(
        "budget_run", "number", "Budget of a run", "US dollars. When AI has cost as much, the run asks a person.", nullable=True, minimum=0
    ),
    "budget_day": ConfigField(
        "budget_day", "number", "Budget of a day", "US dollars, of all runs of this flow, by UTC.", nullable=True, minimum=0
    ),
    "search": ConfigField(
        "search", "expressions", "Runs are found by", "Each value, and each of a list, can be searched for among the runs, by how it begins."
    ),
}


def workflow_fields(definition: dict[str, Any], offer: Offer) -> list[Shown]:
    return [show(name, spec, definition.get(name), offer) for name, spec in FIELDS.items()]
