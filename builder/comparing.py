"""Two definitions of one flow, side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runtime.models import Version, Workflow

from . import drafts
from .diff import Change, changes, marks, marks_before
from .drawing import Drawing, drawing
from .numbers import number_of

DRAFT = "draft"
MOST_OFFERED = 200


@dataclass(frozen=True, slots=True)
class Side:
    """`key` is a version's number, or "draft"."""

    key: str
    title: str
    about: str
    definition: dict[str, Any]
    who: Any
    when: Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed on the way from `left` to `right`, and both drawings with marks at the steps that differ."""

    left: Side
    right: Side
    changes: list[Change]
    left_drawing: Drawing
    right_drawing: Drawing


def side(workflow: Workflow, key: str) -> Side | None:
    """None when there is no such version."""
    if key == DRAFT:
        draft = drafts.load(workflow)
        return Side(DRAFT, "Draft", "What is not published yet", draft.definition, draft.updated_by, draft.updated_at)
    if (number := number_of(key)) is None:
        return None
    found = Version.objects.filter(workflow=workflow, number=number).select_related("created_by").first()
    if found is None:
        return None
    return Side(key, f"v{key}", found.note, found.definition, found.created_by, found.created_at)


def compare(left: Side, right: Side) -> Comparison:
    before, after = left.definition, right.definition
    return Comparison(
        left,
        right,
        changes(before, after),
        drawing(before, marks=marks_before(before, after)),
        drawing(after, marks=marks(before, after)),
    )


def offered(workflow: Workflow) -> list[tuple[str, str]]:
    """What can be compared: the draft and the newest versions, as (key, words)."""
    rows = Version.objects.filter(workflow=workflow, number__isnull=False).order_by("-number")
    live = workflow.live_version
    words = [
        (str(number), f"v{number}{' (live)' if live and live.number == number else ''}")
        for number in rows.values_list("number", flat=True)[:MOST_OFFERED]
    ]
    return [(DRAFT, "Draft"), *words]


def before_of(workflow: Workflow, key: str) -> str:
    """What a side is compared with when nobody says: the draft with the live version, a version with the one before."""
    if key == DRAFT:
        return str(workflow.live_version.number) if workflow.live_version else DRAFT
    rows = Version.objects.filter(workflow=workflow, number__lt=int(key)).order_by("-number")
    return str(rows.values_list("number", flat=True).first() or key)


def apart(html: str, prefix: str) -> str:
    """The same drawing with ids of its own, so that two of them can stand on one page."""
    return re.sub(r' (id|aria-describedby)="', rf' \1="{prefix}', html)
