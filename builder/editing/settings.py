"""Operations on the workflow itself: its name, what its runs are called and found by, or all of it at once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .places import Edit, EditError, copied
from .values import set_values

FIELDS = {"name", "description", "title", "search", "on_failure", "budget_run", "budget_day", "limits"}


def configure_workflow(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`set`: name, description, title (a template), search (expressions), the flow that failures start, budgets,
    limits."""
    draft = copied(definition)
    set_values(draft, operation["set"], allowed=FIELDS)
    if not str(draft.get("name") or "").strip():
        raise EditError("A flow needs a name.")
    return Edit(draft, str(operation.get("label") or "Change the flow's settings"))


def replace(definition: dict[str, Any], operation: dict[str, Any]) -> Edit:
    """`definition`: all of it, as an import or a restored version brings it. Checked for problems, not for
    permission."""
    new = operation["definition"]
    if not isinstance(new, dict) or not isinstance(new.get("steps", []), list):
        raise EditError("That is not a definition.")
    return Edit(deepcopy(new), str(operation.get("label") or "Replace the whole flow"))


OPERATIONS = {"configure_workflow": configure_workflow, "replace": replace}
