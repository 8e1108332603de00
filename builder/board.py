"""All that the builder shows of one flow: its draft, what is wrong with it, what changed, and how it is drawn."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeVar

from runtime.definition import Problem, check, digest, walk
from runtime.models import Credential, Version, Workflow

from . import dataflow, drafts
from .approvers import unknown_approvers
from .circles import circles
from .dataflow import Known, Samples
from .diff import Change, changes, marks, marks_of
from .drawing import Drawing, drawing
from .editing.places import label_of
from .editing.triggers import trigger_label
from .fixes import with_fix
from .missing import doubts, missing_connections
from .models import Draft
from .samples import samples_of

WORKFLOW_LABEL = "This flow"
KEPT = 64
T = TypeVar("T")


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
    def known(self) -> Known:
        return Known(self.definition, self.samples)

    @cached_property
    def problems(self) -> list[Problem]:
        """Looked for once for each definition: undo, and every page until the next edit, find what was found before."""
        key = sha256(json.dumps(self.definition).encode()).digest(), self.samples.came, *self._key(0, self.in_team)
        found = _found.get(key)
        return found if found is not None else _remember(_found, key, problems_of(self.known, self.connections, self.in_team))

    @cached_property
    def in_team(self) -> tuple[Problem, ...]:
        """What is wrong with it in this team, with the flows and people that it has."""
        return self._in_team(self.definition)

    @cached_property
    def connections(self) -> frozenset[str]:
        """The names of the connections that the flow's team has."""
        return frozenset(Credential.objects.filter(team=self.workflow.team_id).values_list("name", flat=True))

    @property
    def blocking(self) -> list[Problem]:
        return [problem for problem in self.problems if not problem.warning]

    @cached_property
    def changes(self) -> list[Change]:
        """Since the live version; nothing when there is none."""
        return changes(self.live.definition, self.definition) if self.live else []

    @property
    def unchanged(self) -> bool:
        """The draft is what is live: there is nothing to publish."""
        return self.live is not None and not self.changes and digest(self.definition) == self.live.hash

    @property
    def by_hand(self) -> bool:
        """People start it: what is live has a trigger for that."""
        return self.live is not None and any(one["type"] == "manual" for one in self.live.definition.get("triggers") or [])

    @cached_property
    def drawing(self) -> Drawing:
        drawn = drawing(self.definition, problems=self.problems, marks=marks_of(self.changes), pins=self.samples.pins)
        return _remember(_drawn, self._key(self.draft.revision, self.in_team), drawn)

    @cached_property
    def history(self) -> drafts.History:
        return drafts.history(self.draft)

    @cached_property
    def next_number(self) -> int:
        newest = Version.objects.filter(workflow=self.workflow, number__isnull=False).order_by("-number").first()
        return (newest.number or 0) + 1 if newest else 1

    def drawing_before(self, revision: int, definition: dict[str, Any]) -> Drawing:
        """An earlier revision, drawn by the same rules; mostly the one that this process drew a moment ago."""
        in_team = self._in_team(definition)
        if drawn := _drawn.get(self._key(revision, in_team)):
            return drawn
        live = self.live.definition if self.live else None
        problems, pins = problems_of(Known(definition, self.samples), self.connections, in_team), self.samples.pins
        return drawing(definition, problems=problems, marks=marks(live, definition), pins=pins)

    @cached_property
    def names(self) -> dict[str, str]:
        """Id -> name of every step and trigger; of the flow itself for an empty id."""
        steps = {step["id"]: label_of(step) for step in walk(self.definition.get("steps") or [])}
        triggers = {trigger["id"]: trigger_label(trigger) for trigger in self.definition.get("triggers") or []}
        return {"": WORKFLOW_LABEL, **triggers, **steps}

    def name_of(self, owner: str) -> str:
        return self.names.get(owner, owner)

    def _in_team(self, definition: dict[str, Any]) -> tuple[Problem, ...]:
        team = self.workflow.team_id
        return *circles(definition, team, self.workflow.pk), *unknown_approvers(definition, team)

    def _key(self, revision: int, in_team: tuple[Problem, ...]) -> tuple[Any, ...]:
        """Everything that problems and a drawing depend on, beside the definition of this revision."""
        samples = self.samples
        seen = samples.source, samples.pins, samples.stamp, self.connections, in_team
        return self.workflow.pk, revision, self.workflow.live_version_id, *seen


_drawn: dict[tuple[Any, ...], Drawing] = {}
"""An edit is answered with the difference to the drawing before it."""
_found: dict[tuple[Any, ...], list[Problem]] = {}


def _remember(kept: dict[tuple[Any, ...], T], key: tuple[Any, ...], value: T) -> T:
    """The newest few are kept, the oldest dropped."""
    kept[key] = value
    while len(kept) > KEPT:
        kept.pop(next(iter(kept)), None)
    return value


def problems_of(known: Known, connections: Collection[str], in_team: Iterable[Problem] = ()) -> list[Problem]:
    """Structure first, then references, what is wrong in this team, and connections, each in the order of the page; blocking ones before
    warnings."""
    definition = known.definition
    found = [*check(definition), *dataflow.problems(known), *in_team, *missing_connections(definition, connections)]
    found += doubts(definition)
    return [with_fix(problem, known) for problem in sorted(found, key=lambda problem: problem.warning)]
