"""The flow's own fields: its name, and what its runs are called and found by."""

from __future__ import annotations

from typing import Any

from ..fields import ConfigField
from .base import Shown
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
    "search": ConfigField(
        "search", "expressions", "Runs are found by", "Each value can be searched for among the runs."
    ),
}


def workflow_fields(definition: dict[str, Any]) -> list[Shown]:
    return [show(name, spec, definition.get(name)) for name, spec in FIELDS.items()]
