"""Test runs of a draft: of the whole flow, or of one step alone. Marked as tests, and kept out of lists and figures."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from runtime.definition import find
from runtime.models import Workflow
from runtime.publish import snapshot
from runtime.starts import Started, start_with_files
from runtime.steps.base import File

from .dryrun import Unsound, rendered_config
from .editing.places import label_of
from .testshape import literal, with_pins

TEST_KEY = "test"


def start_test(
    workflow: Workflow,
    definition: dict[str, Any],
    *,
    trigger_key: str,
    input: dict[str, Any],
    user: Any,
    pins: Mapping[str, Any] = MappingProxyType({}),
    key: str | None = None,
    files: Mapping[str, File] = MappingProxyType({}),
) -> Started:
    """A run of exactly this draft, but for pinned steps; with the key of an earlier one, that one. Raises DefinitionError when it
    has problems that block."""
    version = snapshot(workflow, with_pins(definition, pins), user=user)
    return start_with_files(version, files, trigger_key=trigger_key, input=input, user=user, test=True, idempotency_key=key)


def start_step_test(
    workflow: Workflow, definition: dict[str, Any], step_id: str, names: Mapping[str, Any], *, user: Any
) -> Started:
    """A run of this step alone, with its config as the sample data fills it in, once. Raises ExpressionError,
    Unsound."""
    step = find(definition, step_id)
    if step is None:
        raise Unsound("There is no such step any more.")
    alone = {
        "format": 1,
        "name": f"{definition['name']}: {label_of(step)}"[:200],
        "steps": [
            {
                "id": step["id"],
                "type": step["type"],
                "name": label_of(step)[:200],
                "config": _without_defaults(literal(rendered_config(step, names)), step),
                "retry": {"max_attempts": 1},
                **({"timeout": step["timeout"]} if step.get("timeout") else {}),
            }
        ],
    }
    trigger = names.get("trigger")
    return start_test(
        workflow, alone, trigger_key=TEST_KEY, input=trigger if isinstance(trigger, dict) else {}, user=user
    )


def _without_defaults(config: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """Only what the step itself says: defaults fill in again by themselves."""
    return {key: value for key, value in config.items() if key in (step.get("config") or {})}
