"""A version made ready to run: nodes with compiled expressions and parsed policies. Made once per version and process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .backoff import RetryPolicy
from .definition import children
from .durations import parse_duration
from .expressions import Expression, ValueTemplate, compile, compile_template, compile_value
from .shape import FORMAT
from .steps import step_types
from .steps.base import StepType
from .steps.fields import widget_of

DEFAULT_TIMEOUT = 60.0


@dataclass(slots=True)
class Lane:
    id: str
    when: Expression | None
    nodes: list[Node]


@dataclass(slots=True)
class Node:
    """One step. `config` renders to the step's config; expression fields keep their source text."""

    id: str
    type: str
    name: str
    step: StepType
    config: ValueTemplate
    off: bool = False
    lanes: list[Lane] = field(default_factory=list)
    body: list[Node] = field(default_factory=list)
    items: Expression | None = None
    condition: Expression | None = None
    collect: Expression | None = None
    last: bool = False
    """In a while loop: whether some expression reads what the iteration before gave."""
    limit: int = 0
    concurrency: int = 1
    needed: int = 0
    """Of a parallel: how many lanes have to end; 0 for all."""
    on_item_error: str = "stop"
    """Of a loop: what follows a failed iteration."""
    retry: RetryPolicy = RetryPolicy()
    timeout: float = DEFAULT_TIMEOUT
    interrupted: Any = "repeat"
    on_error: str = "fail"
    error_lane: list[Node] = field(default_factory=list)
    reads: frozenset[str] = frozenset()
    """Ids of the steps whose outputs its own expressions read; `*` for any."""
    callbacks: dict[str, str] = field(default_factory=dict)
    """In a loop: callback steps of the body -> their path below the iteration."""


@dataclass(slots=True)
class Plan:
    number: int | None
    workflow_name: str
    team_id: int
    title: Any
    nodes: list[Node]
    referenced: frozenset[str]
    """Ids of the steps whose outputs any expression reads; a resume loads no others."""
    always: frozenset[str]
    """Ids of the conditions and parallels whose output says which lanes were taken."""
    callbacks: dict[str, str]
    """Callback steps outside loops -> their path."""
    on_failure: str = ""
    """The flow that a failed run starts."""
    budget_run: float | None = None
    budget_day: float | None = None
    """US dollars that calls of a run, and of all runs of a day, may cost before a person is asked."""
    search: tuple[Expression, ...] = ()
    """What its runs can be found by."""
    reads: frozenset[str] = frozenset()
    """Ids of the steps whose outputs title and search read; `*` for any."""


class PlanError(Exception):
    """A step that cannot be made ready; the message begins with its id."""


def make_plan(
    definition: dict[str, Any], *, number: int | None = None, workflow_name: str = "", team_id: int = 0
) -> Plan:
    """Compile a definition that has no structural problems. Raises PlanError for one that has."""
    if definition.get("format") != FORMAT:
        raise PlanError(f"This is format {definition.get('format')!r}; this version of Holdfast reads format {FORMAT}.")
    maker = _Maker()
    title = compile_template(definition.get("title") or "")
    maker.note(title)
    nodes = maker.nodes(definition.get("steps") or [])
    search = tuple(filter(None, map(maker.expression, definition.get("search") or [])))
    return Plan(
        number, workflow_name, team_id, title, nodes, frozenset(maker.referenced),
        frozenset(maker.conditions), callback_paths(definition.get("steps") or [], ""), definition.get("on_failure") or "",
        definition.get("budget_run"), definition.get("budget_day"), search, frozenset(maker.reads),
    )


def callback_paths(steps: list[dict[str, Any]], prefix: str) -> dict[str, str]:
    """Callback steps that run once in this sequence -> their path; the bodies of loops are asked for their own."""
    found: dict[str, str] = {}
    for step in steps:
        if step["type"] == "callback":
            found[step["id"]] = prefix + step["id"]
        for name, inner in children(step):
            if name:
                found |= callback_paths(inner, f"{prefix}{step['id']}/{name}/")
    return found


class _Maker:
    def __init__(self) -> None:
        self.referenced: set[str] = set()
        self.reads: set[str] = set()
        self.conditions: set[str] = set()
        self.lasts = 0

    def nodes(self, steps: list[dict[str, Any]]) -> list[Node]:
        return [self.node(step) for step in steps]

    def node(self, step: dict[str, Any]) -> Node:
        outside, self.reads = self.reads, set()
        try:
            node = self._node(step)
            node.reads = frozenset(self.reads)
            return node
        except PlanError:
            raise
        except Exception as wrong:
            raise PlanError(f"{step.get('id')}: {type(wrong).__name__}: {wrong}") from wrong
        finally:
            self.reads = outside

    def _node(self, step: dict[str, Any]) -> Node:
        kind, lasts = step_types()[step["type"]], self.lasts
        raw = kind.Config.model_validate(step.get("config") or {}).model_dump(by_alias=True, mode="json")
        node = Node(step["id"], step["type"], step.get("name") or kind.label, kind, self.config(kind, raw))
        node.off = bool(step.get("off"))
        node.retry = RetryPolicy.of(step.get("retry"))
        if step.get("timeout"):
            node.timeout = parse_duration(step["timeout"]).total_seconds()
        node.interrupted = step.get("on_interrupted") or kind.interrupted(raw)
        self.check_first(node.interrupted)
        node.lanes = [
            Lane(branch["id"], self.expression(branch.get("when")), self.nodes(branch.get("steps") or []))
            for branch in step.get("branches") or ()
        ]
        node.body = self.nodes(step.get("steps") or [])
        if step["type"] == "condition":
            self.conditions.add(step["id"])
        if step["type"] == "loop":
            node.items, node.condition = self.expression(raw.get("items")), self.expression(raw.get("while"))
            node.callbacks = callback_paths(step.get("steps") or [], "")
            node.collect, node.limit, node.concurrency = self.expression(raw.get("collect")), raw["max"], raw["concurrency"]
            node.on_item_error, node.last = raw["on_item_error"], self.lasts > lasts
        if step["type"] == "parallel":
            node.needed = {"all": 0, "any": 1}.get(raw["join"], raw["needed"])
            if node.needed:
                self.conditions.add(step["id"])
        on_error = step.get("on_error") or "fail"
        node.on_error = "lane" if isinstance(on_error, dict) else on_error
        node.error_lane = self.nodes(on_error["steps"]) if isinstance(on_error, dict) else []
        return node

    def config(self, kind: StepType, raw: dict[str, Any]) -> ValueTemplate:
        """Templates are compiled; the fields that hold expressions stay text, for the step to evaluate."""
        fields = {info.alias or name: widget_of(info) for name, info in kind.Config.model_fields.items()}
        expressions = {name: raw[name] for name, widget in fields.items() if widget == "expression"}
        for source in expressions.values():
            self.expression(source)
        template = compile_value({name: value for name, value in raw.items() if name not in expressions})
        self.note(template)
        return _WithExpressions(template, expressions) if expressions else template

    def check_first(self, interrupted: Any) -> None:
        if isinstance(interrupted, dict):
            self.note(compile_value(interrupted["check"]["request"]))
            self.expression(interrupted["check"].get("output"))
            self.expression(interrupted["check"]["happened"])

    def expression(self, source: str | None) -> Expression | None:
        if not source:
            return None
        compiled = compile(source)
        self.note(compiled)
        return compiled

    def note(self, compiled: Any) -> None:
        for path in compiled.references:
            self.lasts += path[0] == "loop" and (len(path) == 1 or path[1] == "last")
            if path[0] == "steps":
                # A path that ends at `steps` may read any of them.
                name = str(path[1]) if len(path) > 1 else "*"
                self.referenced.add(name)
                self.reads.add(name)


class _WithExpressions:
    """A rendered config beside the expression sources that are kept as they are."""

    __slots__ = ("template", "sources", "is_static")

    def __init__(self, template: ValueTemplate, sources: dict[str, Any]):
        self.template, self.sources, self.is_static = template, sources, template.is_static

    def render(self, names: Any) -> dict[str, Any]:
        return {**self.template.render(names), **self.sources}
