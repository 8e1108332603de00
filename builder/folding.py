"""Collapsed containers, remembered for each person."""

from __future__ import annotations

from typing import Any

from runtime.definition import find
from runtime.models import Workflow

from . import drafts
from .models import Fold


def folded(workflow: Workflow, user: Any) -> set[str]:
    """The ids of the steps whose inside this person does not want to see."""
    return set(Fold.objects.filter(workflow=workflow, user=user).values_list("step", flat=True))


def fold(workflow: Workflow, user: Any, step: str, *, away: bool) -> None:
    """Steps that are not in the draft are not remembered."""
    if not away:
        Fold.objects.filter(workflow=workflow, user=user, step=step).delete()
    elif find(drafts.load(workflow).definition, step):
        Fold.objects.get_or_create(workflow=workflow, user=user, step=step)
