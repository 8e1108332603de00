"""The example flows: useful at once, on what every installation has. They are files, in the form that export writes."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from runtime.definition import walk
from runtime.models import Team, Workflow
from runtime.publish import publish

from . import drafts
from .teams import ensure_default_team

FOLDER = Path(__file__).parent / "example_flows"
MADE_AT_START = ("lead_qualification", "invoice_approval", "support_triage", "new_starter", "weekly_report")
"""Those that a new installation has already. The others call the outside or need an address, so people choose them."""
ON_THE_LIST = 4
MOST_ICONS = 9


@dataclass(frozen=True, slots=True)
class Example:
    """`about` is one line, `more` tells the rest; `art` is the drawing that stands for its shape, `kinds` are the types of
    its triggers and steps in the order of the page."""

    name: str
    title: str
    about: str
    more: str
    art: str
    kinds: tuple[str, ...]
    definition: dict[str, Any]

    @property
    def icons(self) -> tuple[str, ...]:
        return self.kinds[:MOST_ICONS]


@cache
def examples() -> tuple[Example, ...]:
    """In the order of their file names: `10_lead_qualification.json`."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.json")))


def example(name: str) -> dict[str, Any] | None:
    """A definition to change freely, or None."""
    return next((deepcopy(one.definition) for one in examples() if one.name == name), None)


def load(team: Team | None = None, *, user: Any = None) -> str:
    """Make and publish the first examples in a team, by default the first one. Those that are there already, also deleted or
    renamed ones, are left alone, so that this can be called at every start. Returns what was done, in a few words."""
    user = user or get_user_model().objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if team is None and user is None:
        return "none: there is no team and no administrator"
    team = team or ensure_default_team(user)
    wanted = [one for one in examples() if one.name in MADE_AT_START]
    made = [flow for one in wanted if (flow := _load(team, one, user))]
    return f"{len(made)} made" if made else "already there"


@transaction.atomic
def _load(team: Team, one: Example, user: Any) -> Workflow | None:
    Team.objects.select_for_update().get(pk=team.pk)
    if Workflow.objects.filter(team=team, versions__note=_note(one)).exists():
        return None
    workflow = Workflow.objects.create(team=team, name=one.definition["name"], created_by=user)
    drafts.begin(workflow, one.definition, user=user)
    publish(workflow, one.definition, note=_note(one), user=user)
    return workflow


def _note(one: Example) -> str:
    """By which an example that was loaded before is recognised, whatever it is called now."""
    return f"The example “{one.title}”"


def _read(path: Path) -> Example:
    definition = json.loads(path.read_text(encoding="utf-8"))
    about, _, more = definition["description"].partition("\n")
    kinds = [trigger["type"] for trigger in definition["triggers"]] + [step["type"] for step in walk(definition["steps"])]
    name = path.stem.partition("_")[2]
    return Example(name, definition["name"], about, more, _art(definition), tuple(kinds), definition)


def _art(definition: dict[str, Any]) -> str:
    """Which of the gallery's drawings looks like it."""
    types = [step["type"] for step in definition["steps"]]
    return next((type_ for type_ in types if type_ in ("parallel", "loop", "condition")), "line")
