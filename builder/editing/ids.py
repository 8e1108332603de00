"""Ids made from names: readable, valid, and taken by nobody else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from runtime.definition import RESERVED_IDS, walk

LONGEST = 64


def slug(name: str) -> str:
    """`"Create deal in CRM"` -> `create_deal_in_crm`; a name without Latin letters or digits gives `step`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    if words and not words[0].isalpha():
        words = f"step_{words}"
    return words[:LONGEST].rstrip("_") or "step"


def fresh(name: str, taken: Iterable[str]) -> str:
    """The slug of a name, with a number after it when somebody has it already."""
    base, used = slug(name), {*taken, *RESERVED_IDS}
    candidate, number = base, 1 if base in RESERVED_IDS else 2
    while candidate in used:
        ending = f"_{number}"
        candidate, number = base[: LONGEST - len(ending)] + ending, number + 1
    return candidate


def made_from(step_id: str, name: str) -> bool:
    """Whether an id came from this name, with or without a number."""
    base = slug(name)
    return step_id == base or re.fullmatch(rf"{re.escape(base[: LONGEST - 4])}_\d+", step_id) is not None


def taken_ids(definition: dict[str, Any]) -> set[str]:
    """Ids of steps and triggers; they share one space."""
    steps = {step["id"] for step in walk(definition.get("steps") or [])}
    return steps | {trigger["id"] for trigger in definition.get("triggers") or []}
