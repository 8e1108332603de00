"""What the panel beside the canvas shows for one step, one trigger, or the flow itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import F
from django.db.models.lookups import IsNull
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from runtime.clock import business_now
from runtime.definition import Problem, find
from runtime.models import Credential, FormerName, Trigger, Workflow
from runtime.steps import step_types
from runtime.steps.base import StepType
from runtime.triggers import trigger_kinds
from runtime.triggers.base import TriggerKind
from runtime.triggers.inwords import to_words
from runtime.triggers.signatures import generated_secrets

from . import dataflow
from .board import Board
from .callers import reads_of
from .editing.places import label_of
from .editing.triggers import trigger_label
from .forms.base import Offer, Shown
from .forms.layout import LAYOUTS, Either
from .forms.safety import Safety, safety_of
from .forms.setup import CONDITION, LABEL, NOTE, elsewhere, lies_in, setup_fields, show, with_problems
from .forms.workflow import workflow_fields
from .tree import Branch, tree
from .verdicts import Verdict, verdict

TAKES_OUR_SECRET = ("standard", "github")
SAFETY_FIELDS = ("retry", "timeout", "on_error", "on_interrupted", "config.idempotency_header")

ADDRESSES = {"webhook": "hook", "form": "form_page"}
"""Triggers with an address of their own -> the name of its view."""
NEXT_TIMES = 5


@dataclass(frozen=True)
class LaneFields:
    """One lane of a condition or parallel in the Setup tab."""

    id: str
    index: int
    label: Shown
    when: Shown | None
    title: str
    lead: str = ""
    verdict: Verdict | None = None
    removable: bool = False
    movable: bool = False

    @property
    def up(self) -> int:
        return self.index - 1


@dataclass(frozen=True)
class Panel:
    """`owner` is a step or trigger of the definition, or None for the flow's own settings."""

    id: str
    name: str
    kind: StepType | TriggerKind | None
    owner: dict[str, Any] | None
    fields: list[Shown]
    lanes: list[LaneFields] = field(default_factory=list)
    either: Either | None = None
    chosen: str = ""
    safety: Safety | None = None
    general: list[Problem] = field(default_factory=list)
    note: Shown | None = None
    tree: list[Branch] = field(default_factory=list)
    """Worked out when it is shown, which the answer to an edit of a field mostly does not."""
    source: str = ""
    tab: str = "setup"
    setup_problems: int = 0
    safety_problems: int = 0
    shape: str = ""
    address: str = ""
    taken: str = ""
    """What is sent to the address: `POST with JSON`."""
    secret: str = ""
    next_times: list[str] = field(default_factory=list)
    in_words: str = ""
    """What the schedule says, where words say it."""
    output: Any = None
    has_output: bool = False
    pinned: bool = False

    @property
    def is_step(self) -> bool:
        return isinstance(self.kind, StepType)

    @property
    def pinnable(self) -> bool:
        return self.is_step and self.kind.type not in ("condition", "parallel", "stop")

    @property
    def output_text(self) -> str:
        return json.dumps(self.output if self.has_output else {}, indent=2, ensure_ascii=False)

    @property
    def source_types(self) -> list[str]:
        """Each once: the pills of expressions show their icons."""
        return list(dict.fromkeys(branch.icon for branch in self.tree))

    @property
    def first(self) -> list[Shown]:
        return [one for one in self.fields if not one.more]

    @property
    def more(self) -> list[Shown]:
        return [one for one in self.fields if one.more]

    @property
    def more_open(self) -> bool:
        return any(one.error for one in self.more) or bool(self.note and self.note.value)

    @property
    def either_options(self) -> list[tuple[str, str]]:
        return list(zip(self.either.names, self.either.labels, strict=True)) if self.either else []

    @property
    def verdicts(self) -> list[Verdict]:
        return [lane.verdict for lane in self.lanes if lane.verdict]

    def every_field(self) -> list[Shown]:
        lanes = [one for lane in self.lanes for one in (lane.label, lane.when) if one]
        safety = list(self.safety.fields) if self.safety else []
        return [*self.fields, *lanes, *safety, *([self.note] if self.note else [])]


def panel_for(board: Board, owner_id: str, tab: str = "setup") -> Panel | None:
    """The panel of a step or trigger; of the flow for an empty id; None for an id that is not there."""
    if not owner_id:
        return _of_workflow(board)
    step = find(board.definition, owner_id)
    if step:
        return _of_step(board, step, tab)
    trigger = next((one for one in board.definition.get("triggers") or [] if one["id"] == owner_id), None)
    return _of_trigger(board, trigger) if trigger else None


def _of_step(board: Board, step: dict[str, Any], tab: str) -> Panel:
    kind = step_types().get(step["type"])
    problems = [problem for problem in board.problems if problem.step == step["id"]]
    config, offer = step.get("config") or {}, offer_for(board)
    fields = with_problems(setup_fields(step["type"], kind.Config, config, offer), problems) if kind else []
    if step["type"] == "workflow":
        fields = [_with_reads(one) for one in fields]
    names = dataflow.names_at(board.known, step["id"]) if step.get("branches") else {}
    lanes, note = _lanes(step, problems, names), show("note", NOTE, step.get("note", ""))
    safety = safety_of(step, kind, problems, offer) if kind else None
    layout = LAYOUTS.get(step["type"])
    either = layout.either if layout else None
    panel = Panel(
        id=step["id"],
        name=label_of(step),
        kind=kind,
        owner=step,
        fields=fields,
        lanes=lanes,
        either=either,
        chosen=either.chosen(config) if either else "",
        safety=safety,
        note=note,
        tab=tab,
        tree=SimpleLazyObject(lambda: tree(dataflow.available_at(board.known, step["id"]))),
        source=board.samples.source,
        output=board.samples.steps.get(step["id"]),
        has_output=step["id"] in board.samples.steps,
        pinned=step["id"] in board.samples.pins,
    )
    return _counted(panel, problems)


def _with_reads(shown: Shown) -> Shown:
    """Beside the flow that is run stands what it wants to be given."""
    flow = shown.data.get("flow")
    return replace(shown, data={**shown.data, "reads": reads_of(flow)}) if flow else shown


def _of_trigger(board: Board, trigger: dict[str, Any]) -> Panel:
    kind = trigger_kinds().get(trigger["type"])
    problems = [problem for problem in board.problems if problem.step == trigger["id"]]
    fields = setup_fields(trigger["type"], kind.Config, trigger.get("config") or {}, offer_for(board)) if kind else []
    row = Trigger.objects.filter(workflow=board.workflow, key=trigger["id"]).first() if trigger["type"] in ADDRESSES else None
    panel = Panel(
        id=trigger["id"],
        name=trigger_label(trigger),
        kind=kind,
        owner=trigger,
        fields=with_problems(fields, problems),
        tree=tree(dataflow.request_of(board.known)) if trigger["type"] == "webhook" else [],
        source=board.samples.source,
        address=_address(row) if row else "",
        taken=_taken(trigger.get("config") or {}),
        secret=_made_secret(row, trigger.get("config") or {}) if row else "",
        next_times=_next_times(kind, trigger.get("config") or {}),
        in_words=to_words(str((trigger.get("config") or {}).get("cron") or "")) if trigger["type"] == "schedule" else "",
    )
    return _counted(panel, problems)


def _of_workflow(board: Board) -> Panel:
    problems = [problem for problem in board.problems if not problem.step]
    fields = with_problems(workflow_fields(board.definition, offer_for(board)), problems)
    sources = dataflow.available_at(board.known, "")
    panel = Panel(
        id="",
        name=str(board.definition["name"]),
        kind=None,
        owner=None,
        fields=fields,
        tree=tree([one for one in sources if one.path in ("trigger", "run", "workflow")]),
        source=board.samples.source,
    )
    return _counted(panel, problems)


def _address(row: Trigger) -> str:
    """Where a webhook listens, or a form is: known from the first publishing on, and the same ever after."""
    view = ADDRESSES.get(row.type)  # it may have been published as another kind
    return settings.HOLDFAST_ORIGIN + reverse(view, args=[row.token]) if view else ""


def _taken(config: dict[str, Any]) -> str:
    """What a webhook takes; a draft may hold anything."""
    methods = config.get("methods")
    named = " or ".join(map(str, methods)) if isinstance(methods, list) and methods else "POST"
    return f"{named} with {'a form' if config.get('format') == 'form' else 'JSON'}"


def _next_times(kind: TriggerKind | None, config: dict[str, Any]) -> list[str]:
    """When a schedule fires next, by the clocks of its zone; empty for other triggers, and while it is no schedule yet."""
    found: list[str] = []
    moment = business_now() if kind is not None and kind.type == "schedule" else None
    try:
        while moment is not None and len(found) < NEXT_TIMES and (moment := kind.next_after(config, moment)):
            local = moment.astimezone(ZoneInfo(config.get("zone", "UTC")))
            found.append(f"{local:%a} {local.day} {local:%b %Y, %H:%M %Z}")
    except Exception:  # noqa: BLE001 - a config in the middle of being written may be anything
        return []
    return found


def _made_secret(row: Trigger, config: dict[str, Any]) -> str:
    """The signing secret that Holdfast made for this webhook, for the sender's settings; empty where a connection holds
    it, or nothing is signed."""
    signature = config.get("signature")
    if not isinstance(signature, dict) or signature.get("connection") or signature.get("kind") not in TAKES_OUR_SECRET:
        return ""
    return generated_secrets(row.token)[0]


def _counted(panel: Panel, problems: list[Problem]) -> Panel:
    """With the numbers of problems per tab, and the problems that belong to no field."""
    shown = panel.every_field()
    in_safety = [problem for problem in problems if any(lies_in(problem.field, name) for name in SAFETY_FIELDS)]
    in_setup = [problem for problem in problems if problem not in in_safety]
    blocking = [problem for problem in in_setup if not problem.warning]
    parts = [f"{one.name}{'+' if one.more else ''}={one.title}" for one in panel.fields] + [
        f"{lane.id}{lane.index}" for lane in panel.lanes
    ]
    values = {
        "general": elsewhere(shown, in_setup),
        "setup_problems": len(blocking),
        "safety_problems": len([problem for problem in in_safety if not problem.warning]),
        "shape": "|".join([*parts, panel.chosen, panel.safety.shape if panel.safety else "", "made" if panel.secret else ""]),
    }
    return replace(panel, **values)


def _lanes(step: dict[str, Any], problems: list[Problem], names: dict[str, Any]) -> list[LaneFields]:
    branches, condition = step.get("branches") or [], step["type"] == "condition"
    found, last = [], len(branches) - 1
    for index, branch in enumerate(branches):
        word = branch.get("label") or branch["id"]
        fields = [show(f"branches.{index}.label", LABEL, word)]
        if condition and index < last:
            fields.append(show(f"branches.{index}.when", CONDITION, branch.get("when")))
        label, *rules = with_problems(fields, problems)
        removable = len(branches) > (2 if condition else 1) and not (condition and index == last)
        lane = LaneFields(
            branch["id"],
            index,
            label,
            rules[0] if rules else None,
            _lane_title(condition, index, last),
            lead=f"Take the {word} lane when",
            removable=removable,
            movable=removable,
            verdict=verdict(f"verdict-{index}", branch.get("when"), names) if rules else None,
        )
        found.append(lane)
    return found


def _lane_title(condition: bool, index: int, last: int) -> str:
    if not condition:
        return f"Lane {index + 1}"
    if index == last:
        return "Lane otherwise"
    return "Lane when true" if last == 1 else f"Lane {index + 1}"


def offer_for(board: Board) -> Offer:
    """Connections belong to the flow's team: another team's must not even be named."""
    rows = Credential.objects.filter(team_id=board.workflow.team_id).order_by("name").values_list("name", "kind", "config")
    connections = tuple((name, kind, _about(config)) for name, kind, config in rows)
    flows = Workflow.objects.filter(team_id=board.workflow.team_id, deleted_at=None).exclude(pk=board.workflow.pk)
    meant_last = flows.order_by("name", IsNull(F("live_version"), True).desc(), "-pk")  # of several by one name, as `holdfast_flow` has it
    former = FormerName.objects.filter(team_id=board.workflow.team_id, workflow__deleted_at=None).order_by("until")
    renamed = dict(former.values_list("name", "workflow__name"))
    return Offer(connections, dict(meant_last.values_list("name", "pk")), renamed)


def _about(config: Any) -> str:
    return str(config.get("base_url") or config.get("model") or "") if isinstance(config, dict) else ""
