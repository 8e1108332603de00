"""The flow's own fields: its name, what its runs are called and found by, and what it allows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..fields import ConfigField
from .base import Offer, Shown
from .setup import show, value_at

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
    "limits.at_most": ConfigField(
        "limits.at_most", "integer", "Runs at a time", "At most so many of this flow go on at a time.", nullable=True,
        minimum=1, maximum=10_000,
    ),
    "limits.key": ConfigField(
        "limits.key", "expression", "Runs are told apart by", "A value of the trigger: a customer, an order.",
        ("trigger.body.customer",), nullable=True,
    ),
    "limits.per_key": ConfigField(
        "limits.per_key", "integer", "Runs at a time for each", "Of those with the same value.", nullable=True,
        minimum=1, maximum=10_000,
    ),
    "limits.per_minute": ConfigField(
        "limits.per_minute", "integer", "Starts in a minute", "So many may begin at once, then evenly.", nullable=True,
        minimum=1, maximum=100_000,
    ),
    "limits.more": ConfigField(
        "limits.more", "choice", "What is more",
        "What is dropped is told to the caller, and is among the runs as cancelled.", default="queue", choices=("queue", "drop"),
        words=(("queue", "Waits its turn"), ("drop", "Is dropped")),
    ),
    "limits.waiting_holds": ConfigField(
        "limits.waiting_holds", "boolean", "Runs that wait keep their slot",
        "Else a run gives it up while it waits for a time, an answer or a call, and queues for another one afterwards.",
        default=True,
    ),
    "limits.priority": ConfigField(
        "limits.priority", "expression", "Priority",
        "From -9 to 9: due runs of a higher one go on first. 0 is the usual one.",
        ("trigger.body.urgent ? 5 : 0",), nullable=True,
    ),
    "limits.max_age": ConfigField(
        "limits.max_age", "duration", "Longest run", "A run that is older fails, also while it waits.", nullable=True
    ),
}


def workflow_fields(definition: dict[str, Any], offer: Offer) -> list[Shown]:
    return [_shown(name, spec, value_at(definition, name), offer) for name, spec in FIELDS.items()]


def _shown(name: str, spec: ConfigField, value: Any, offer: Offer) -> Shown:
    if spec.kind == "expression" and isinstance(value, int):
        value = str(value)
    unset = name.startswith("limits.") and value in (None, "", spec.default)
    return replace(show(name, spec, value, offer), more=unset)
