"""References that lead nowhere, in words, with a way to put them right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from runtime.definition import Problem, walk
from runtime.expressions import SyntaxProblem, compile, compile_template, suggest

from ..editing.places import label_of
from ..editing.repair import replaced
from ..forms.conditions import decompose, rule_with
from ..texts import Text, texts
from .habits import ITEM, OUTPUTS, Meant, meant, of_trigger, respelled
from .known import Known
from .paths import Path, written
from .scope import AT_END, SEES_ITS_LOOP, USABLE, Places, Reach, Seen, lane_label
from .shapes import ANY, Shape

ROOTS = ("trigger", "steps", "loop", "run", "workflow", "callbacks")
ABOUT = {"run": ("id", "started_at", "test"), "workflow": ("name", "version"), "loop": ("item", "index")}
OWN_NAMES = {
    "config.dedupe": ("headers", "body", "query", "method"),
    "config.only": ("headers", "body", "query", "method"),
    "config.success_if": ("response",),
    "config.page_items": ("response",),
    "config.page_next": ("response",),
    "on_interrupted.check.happened": ("response",),
    "on_interrupted.check.output": ("response",),
}
"""Fields whose expressions see other names than the workflow's, or more."""
MOST_GUESSES = 200
"""Wrong names of a flow for which a near one is looked for, among all that there are: nobody reads further."""
LENGTHS = ("length", "size", "count")
GIVES_NOTHING = ("condition", "parallel", "stop")
RULES_OF_REQUESTS = ("config.dedupe", "config.only")
"""A webhook's own rules: they see the request, and not the run that it begins."""


def problems(known: Known) -> list[Problem]:
    """All of them, in the order of the page. A warning may turn out well; the others cannot."""
    checker = Checker(known)
    return [problem for text in texts(known.definition) for problem in checker.problems(text)]


def put_right(known: Known, text: Text) -> str | None:
    """What a text that cannot be read was meant to be, spelled and named as here; None where nobody can tell."""
    source = respelled(known.definition, text)
    if source is None:
        return None
    text = replace(text, source=source)
    for problem in list(Checker(known).problems(text)):
        if problem.fix and not problem.warning:
            text = replace(text, source=replaced(text, problem.fix["old"], problem.fix["new"]))
    return text.source


@dataclass(frozen=True, slots=True)
class Checker:
    known: Known
    guessed: list[str] = field(default_factory=list)

    @property
    def places(self) -> Places:
        return self.known.places

    @property
    def trigger(self) -> Shape:
        return self.known.trigger

    @property
    def outputs(self) -> dict[str, Shape]:
        return self.known.outputs

    def problems(self, text: Text) -> Iterator[Problem]:
        if text.field in RULES_OF_REQUESTS or "{{" not in text.source and text.kind == "template":
            return
        try:
            compiled = compile(text.source) if text.kind == "expression" else compile_template(text.source)
        except SyntaxProblem:
            return  # the structural check says it, in the same place
        for path in compiled.references:
            if problem := self.reference(text, path, guarded=path in compiled.references_with_default):
                yield replace(problem, row=rule_with(text.source, written(path))) if text.kind == "expression" else problem
        yield from _empty_rules(text)

    def reference(self, text: Text, path: Path, guarded: bool) -> Problem | None:
        root, rest = str(path[0]), path[1:]
        if root in OWN_NAMES.get(text.field, ()):
            return None
        match root:
            case "steps":
                return self.step(text, rest, guarded)
            case "trigger":
                return self.field_of(text, ["trigger"], self.trigger, rest, self.known.trigger_name, guarded)
            case "loop":
                return self.loop(text, rest, guarded)
            case "run" | "workflow":
                return self.one_of(text, [root], rest, ABOUT[root])
            case "callbacks":
                callbacks = [key for key in self.places.ways if self.type_of(key) == "callback"]
                return self.one_of(text, [root], rest, callbacks)
        if habit := meant(self, text, path, OWN_NAMES.get(text.field, ())):
            return _meant(text, habit)
        guess = self.guess(root, ROOTS)
        return _problem(text, f"There is no name “{root}”.", _instead([root], [guess] if guess else None))

    def guess(self, name: str, known: Iterable[str]) -> str | None:
        if len(self.guessed) == MOST_GUESSES:
            return None
        self.guessed.append(name)
        return suggest(name, known)

    def step(self, text: Text, rest: Path, guarded: bool) -> Problem | None:
        if not rest:
            return None
        target = str(rest[0])
        step = self.places.step(target)
        if step is None:
            guess = self.guess(target, (key for key in self.places.ways if self.usable(text, key)))
            fix = _instead(["steps", target], ["steps", guess] if guess else None)
            return _problem(text, f"There is no step “{target}”.", fix)
        if step["type"] == "loop" and step in self.loops(text) and (item := next((at for at, part in enumerate(rest) if at and part in ITEM), 0)):
            words = "The loop gives its output at its end. Inside it, its item is loop.item."
            return _meant(text, Meant(words, written(["steps", *rest[: item + 1]]), "loop.item"))
        if problem := self.order(text, step, self.seen(text, target), guarded):
            return replace(problem, fix=_or_else(target, rest[1:])) if problem.warning else problem
        if len(rest) > 1 and rest[1] != "output":
            new = ["steps", target, "output", *(() if rest[1] in OUTPUTS else rest[1:2])]
            fix = {**_use(["steps", target, rest[1]], new), "label": f"Use {'.'.join(map(str, new[2:]))}"}
            return _problem(text, f"What “{label_of(step)}” gives stands in its output: {written(new)}.", fix)
        return self.field_of(text, ["steps", target, "output"], self.outputs[target], rest[2:], label_of(step), guarded)

    def order(self, text: Text, step: dict[str, Any], seen: Seen, guarded: bool) -> Problem | None:
        name, box = label_of(step), seen.through
        match seen.reach:
            case Reach.LATER if not text.owner:
                return _problem(text, "This is made when the run starts: no step has run yet. Use the trigger.")
            case Reach.LATER:
                own = step["id"] == text.owner
                return _problem(
                    text, "This step has no output before it has run." if own else f"“{name}” runs later than this."
                )
            case Reach.OTHER_LANE:
                return _problem(
                    text,
                    f"“{name}” is in another lane of “{label_of(box or {})}”, not taken together with this one.",
                )
            case Reach.ALONGSIDE:
                return _problem(text, f"“{name}” runs in another lane at the same time. Use it after the lanes join.")
            case Reach.INSIDE_LOOP:
                return _problem(
                    text,
                    f"“{name}” is inside “{label_of(box or {})}”. Outside, only what the loop collects is there.",
                )
            case Reach.MAYBE if not guarded and box:
                lane = lane_label(box, seen.lane)
                words = f"“{name}” runs only in the lane {lane} of “{label_of(box)}”. Say what else, with .orValue(…)."
                return _problem(text, words, warning=True)
        if step.get("off") and not guarded:
            return _problem(text, f"“{name}” is turned off and gives nothing.")
        return None

    def field_of(self, text: Text, base: list[str], shape: Shape, rest: Path, name: str, guarded: bool) -> Problem | None:
        """Whether a declared or sampled value has this field. A sample only warns: the next value may have it."""
        inner, followed = shape.at(rest)
        if followed < len(rest) and inner.type in ("list", "text") and rest[followed] in LENGTHS:
            whole, long = written([*base, *rest[:followed]]), written([*base, *rest[: followed + 1]])
            return _meant(text, Meant(f"How many there are is size({whole}).", long, f"size({whole})"))
        if followed == len(rest) or inner.type != "group" or not isinstance(rest[followed], str) or guarded:
            return None
        if not inner.closed and not inner.fields:
            return None
        missing, way = rest[followed], [*base, *rest[:followed]]
        if base == ["trigger"] and not followed and (new := of_trigger(self.trigger, rest)):
            words = f"{name} has no “{missing}”: what was sent stands in its body, {written(['trigger', *new])}."
            return _meant(text, Meant(words, written(["trigger", *rest]), written(["trigger", *new])))
        guess = self.guess(missing, inner.fields)
        if guess is None and len(inner.fields) == 1:
            guess = next(iter(inner.fields))
        words = f"{name} returns no “{missing}”." if base[0] == "steps" else f"{name} has no “{missing}”."
        return _problem(
            text, words, _instead([*way, missing], [*way, guess] if guess else None), warning=not inner.closed
        )

    def loop(self, text: Text, rest: Path, guarded: bool) -> Problem | None:
        around = self.loops(text)
        if not around:
            return _problem(text, "There is no loop around this step.")
        if len(rest) > 1 and rest[0] == "item":
            return self.field_of(text, ["loop", "item"], self.item(around[-1]), rest[1:], "The item", guarded)
        if "while" not in (around[-1].get("config") or {}):
            if rest and (rest[0] in ITEM | {"value"} or self.item(around[-1]).at(rest[:1])[1]) and rest[0] not in ABOUT["loop"]:
                new = ["loop", "item", *(() if rest[0] in ITEM | {"value"} else rest[:1])]
                return _meant(text, Meant(f"“loop” has no “{rest[0]}”: it is {written(new)}.", written(["loop", rest[0]]), written(new)))
            return self.one_of(text, ["loop"], rest, ABOUT["loop"])
        if len(rest) > 1 and rest[0] == "last":
            inside = [step["id"] for step in walk(around[-1].get("steps") or [])]
            return self.one_of(text, ["loop.last"], rest[1:], inside)
        return self.one_of(text, ["loop"], rest, ("index", "last", "item"))

    def item(self, loop: dict[str, Any]) -> Shape:
        """What the list holds that the loop goes through, where that is a plain reference."""
        source = (loop.get("config") or {}).get("items")
        try:
            [path] = compile(source).references if isinstance(source, str) else ()
        except (SyntaxProblem, ValueError):
            return ANY
        if written(path) != source:
            return ANY
        base = (
            self.trigger
            if path[0] == "trigger"
            else self.outputs.get(str(path[1]), ANY)
            if len(path) > 2 and path[0] == "steps"
            else ANY
        )
        rest = path[1:] if path[0] == "trigger" else path[3:]
        found, followed = base.at(rest)
        return found.item or ANY if followed == len(rest) else ANY

    def one_of(self, text: Text, base: list[str], rest: Path, names: Iterable[str]) -> Problem | None:
        known = list(names)
        if not rest or rest[0] in known:
            return None
        guess = self.guess(str(rest[0]), known)
        fix = _instead([*base, rest[0]], [*base, guess] if guess else None)
        return _problem(text, f"“{base[0]}” has no “{rest[0]}”.", fix)

    def loops(self, text: Text) -> list[dict[str, Any]]:
        """Those around the place of a text, outermost first."""
        return self.places.loops(text.owner, inside=text.field in SEES_ITS_LOOP)

    def usable(self, text: Text, target: str) -> bool:
        return self.seen(text, target).reach in USABLE

    def before(self, text: Text) -> Iterator[tuple[str, Shape]]:
        """Where the data of a place may come from, nearest first: (what to write, what it looks like)."""
        if around := self.loops(text):
            yield "loop.item", self.item(around[-1])
        for target in reversed(self.places.ways):
            if self.seen(text, target).reach is Reach.SURE and self.type_of(target) not in GIVES_NOTHING:
                output = self.outputs[target]
                yield f"steps.{target}.output", output
                if "body" in output.fields:
                    yield f"steps.{target}.output.body", output.fields["body"]
        if "body" in self.trigger.fields:
            yield "trigger.body", self.trigger.fields["body"]

    def seen(self, text: Text, target: str) -> Seen:
        if not text.owner or text.owner not in self.places.ways:
            return Seen(Reach.LATER)
        return self.places.seen(text.owner, target, at_end=text.field in AT_END)

    def type_of(self, step_id: str) -> str:
        step = self.places.step(step_id)
        return step["type"] if step else ""


def _empty_rules(text: Text) -> Iterator[Problem]:
    """A comparison with nothing, such as the builder writes while a rule is being filled in."""
    if text.kind != "expression" or '""' not in text.source:
        return
    rules = decompose(text.source)
    for row, rule in enumerate(rules.each() if rules else ()):
        if rule.incomplete():
            yield replace(_problem(text, f"Rule {row + 1} has no value to compare with."), row=row)


def _instead(old: Path, new: Path | None) -> dict[str, Any] | None:
    """`{"old", "new"}`: how the reference is written now, and how it would be right; `label` is for the button."""
    if new is None:
        return None
    return {**_use(old, new), "label": f"Use {new[-1]}", "guess": str(new[-1])}


def _use(old: Path, new: Path) -> dict[str, Any]:
    return {"old": written(old), "new": written(new), "label": f"Use {written(new)}"}


def _meant(text: Text, habit: Meant) -> Problem:
    fix = {"old": habit.old, "new": habit.new, "label": f"Use {habit.new}"} if habit.new else None
    return _problem(text, habit.message, fix)


def _or_else(target: str, rest: Path) -> dict[str, Any]:
    """What may not be there, with something else in its place: `steps.?call.output.id.orValue("")`."""
    new = written(["steps", target, *rest]).replace("steps.", "steps.?", 1) + '.orValue("")'
    return {"old": written(["steps", target, *rest]), "new": new, "label": "Else use nothing"}


def _problem(text: Text, message: str, fix: dict[str, Any] | None = None, *, warning: bool = False) -> Problem:
    if fix and "guess" in fix:
        message += f" Did you mean “{fix['guess']}”?"
    return Problem(text.owner, text.field, message, warning, fix)
