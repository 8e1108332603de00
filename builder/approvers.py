"""Accounts and teams that approvals name and that a flow of this team may not ask, or that are not there: nothing tells which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime.definition import Problem, walk
from runtime.people import is_name, unknown
from runtime.steps import step_types

from .fields import config_fields


def unknown_approvers(definition: dict[str, Any], team_id: int) -> Iterator[Problem]:
    """One for each name. What a run works out is asked about when the run asks."""
    found = list(_named(definition))
    wrong = unknown((name for _, _, name in found), team_id) if found else {}
    for step, field, name in found:
        if name in wrong:
            yield Problem(step, f"config.{field}", wrong[name])


def _named(definition: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(step id, field, name) of steps that are not off."""
    for step in walk(definition.get("steps") or []):
        kind, config = step_types().get(step["type"]), step.get("config")
        if kind is None or step.get("off") or not isinstance(config, dict):
            continue
        for field in config_fields(kind.Config):
            lines = config.get(field.name) if field.kind == "addresses" else None
            for line in lines if isinstance(lines, list) else ():
                if isinstance(line, str) and "{{" not in line and is_name(line):
                    yield step["id"], field.name, line
