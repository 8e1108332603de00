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

from runtime.models import Team, Workflow
from runtime.publish import publish

from . import drafts
from .teams import ensure_default_team

FOLDER = Path(__file__).parent / "example_flows"


@dataclass(frozen=True, slots=True)
class Example:
    """`about` is one line for the gallery, `art` the drawing that stands for its shape."""

    name: str
    title: str
    about: str
    art: str
    definition: dict[str, Any]


@cache
def examples() -> tuple[Example, ...]:
    """In the order of their file names: `10_lead_qualification.json`."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("*.json")))


def gallery() -> tuple[Example, ...]:
    return examples()


def example(name: str) -> dict[str, Any] | None:
    """A definition to change freely, or None."""
    return next((deepcopy(one.definition) for one in examples() if one.name == name), None)


def load(team: Team | None = None, *, user: Any = None) -> str:
    """Make and publish each example in a team, by default the first one. Those that are there already, also deleted or
    renamed ones, are left alone, so that this can be called at every start. Returns what was done, in a few words."""
    user = user or get_user_model().objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if team is None and user is None:
        return "none: there is no team and no administrator"
    team = team or ensure_default_team(user)
    made = [flow for one in examples() if (flow := _load(team, one, user))]
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
    name = path.stem.partition("_")[2]
    return Example(name, definition["name"], definition["description"].partition("\n")[0], _art(definition), definition)


def _art(definition: dict[str, Any]) -> str:
    """Which of the gallery's drawings looks like it."""
    types = [step["type"] for step in definition["steps"]]
    return next((type_ for type_ in types if type_ in ("parallel", "loop", "condition")), "line")
