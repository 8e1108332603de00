"""All that the builder shows of one flow: its draft, what is wrong with it, what changed, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runtime.definition import Problem, check, find
from runtime.models import Version, Workflow

from . import dataflow, drafts
from .dataflow import Samples
from .diff import Change, changes, marks
from .drawing import Drawing, drawing
from .editing.places import EditError, label_of
from .editing.triggers import trigger_label, trigger_of
from .models import Draft
from .samples import samples_of

WORKFLOW_LABEL = "This flow"


@dataclass(frozen=True)
class Board:
    """Everything but the draft is worked out when it is asked for, once."""

    workflow: Workflow
    draft: Draft

    @classmethod
    def of(cls, workflow: Workflow) -> Board:
        return cls(workflow, drafts.load(workflow))

    @property
    def definition(self) -> dict[str, Any]:
        return self.draft.definition

    @property
    def live(self) -> Version | None:
        return self.workflow.live_version

    @cached_property
    def samples(self) -> Samples:
        return samples_of(self.workflow)

    @cached_property
    def problems(self) -> list[Problem]:
        return problems_of(self.definition, self.samples)

    @property
    def blocking(self) -> list[Problem]:
        return [problem for problem in self.problems if not problem.warning]

    @cached_property
    def changes(self) -> list[Change]:
        """Since the live version; nothing when there is none."""
        return changes(self.live.definition, self.definition) if self.live else []

    @cached_property
    def drawing(self) -> Drawing:
        live = self.live.definition if self.live else None
        return drawing(self.definition, problems=self.problems, marks=marks(live, self.definition))

    @cached_property
    def history(self) -> drafts.History:
        return drafts.history(self.draft)

    @cached_property
    def next_number(self) -> int:
        newest = Version.objects.filter(workflow=self.workflow, number__isnull=False).order_by("-number").first()
        return (newest.number or 0) + 1 if newest else 1

    def drawing_of(self, definition: dict[str, Any]) -> Drawing:
        """Another definition of this flow, such as the one before an edit, drawn by the same rules."""
        live = self.live.definition if self.live else None
        return drawing(definition, problems=problems_of(definition, self.samples), marks=marks(live, definition))

    def name_of(self, owner: str) -> str:
        """The name of a step or trigger by its id; of the flow itself for nothing."""
        step = find(self.definition, owner) if owner else None
        if step:
            return label_of(step)
        try:
            return trigger_label(trigger_of(self.definition, owner)) if owner else WORKFLOW_LABEL
        except EditError:
            return owner


def problems_of(definition: dict[str, Any], samples: Samples) -> list[Problem]:
    """Structure first, then references, each in the order of the page; blocking ones before warnings."""
    found = [*check(definition), *dataflow.problems(definition, samples)]
    return sorted(found, key=lambda problem: problem.warning)
