"""References that lead nowhere, in words, with a way to put them right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from runtime.definition import Problem, walk
from runtime.expressions import SyntaxProblem, compile, compile_template, suggest

from ..editing.places import label_of
from ..forms.conditions import decompose
from ..texts import Text, texts
from .available import NO_SAMPLES, trigger_name
from .samples import Samples, output_shapes, trigger_shape
from .scope import AT_END, SEES_ITS_LOOP, Places, Reach, Seen, lane_label
from .shapes import ANY, Shape

Path = Sequence[str | int]
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
RULES_OF_REQUESTS = ("config.dedupe", "config.only")
"""A webhook's own rules: they see the request, and not the run that it begins."""


def problems(definition: dict[str, Any], samples: Samples = NO_SAMPLES) -> list[Problem]:
    """All of them, in the order of the page. A warning may turn out well; the others cannot."""
    checker = Checker(
        definition, Places.of(definition), trigger_shape(definition, samples), output_shapes(definition, samples)
    )
    return [problem for text in texts(definition) for problem in checker.problems(text)]


@dataclass(frozen=True, slots=True)
class Checker:
    definition: dict[str, Any]
    places: Places
    trigger: Shape
    outputs: dict[str, Shape]

    def problems(self, text: Text) -> Iterator[Problem]:
        if text.field in RULES_OF_REQUESTS or "{{" not in text.source and text.kind == "template":
            return
        try:
            compiled = compile(text.source) if text.kind == "expression" else compile_template(text.source)
        except SyntaxProblem:
            return  # the structural check says it, in the same place
        for path in compiled.references:
            if problem := self.reference(text, path, guarded=path in compiled.references_with_default):
                yield problem
        yield from _empty_rules(text)

    def reference(self, text: Text, path: Path, guarded: bool) -> Problem | None:
        root, rest = str(path[0]), path[1:]
        if root in OWN_NAMES.get(text.field, ()):
            return None
        match root:
            case "steps":
                return self.step(text, rest, guarded)
            case "trigger":
                return self.known(text, ["trigger"], self.trigger, rest, trigger_name(self.definition), guarded)
            case "loop":
                return self.loop(text, rest, guarded)
            case "run" | "workflow":
                return self.one_of(text, [root], rest, ABOUT[root])
            case "callbacks":
                callbacks = [key for key in self.places.ways if self.type_of(key) == "callback"]
                return self.one_of(text, [root], rest, callbacks)
        guess = suggest(root, ROOTS)
        return _problem(text, f"There is no name “{root}”.", _instead([root], [guess] if guess else None))

    def step(self, text: Text, rest: Path, guarded: bool) -> Problem | None:
        if not rest:
            return None
        target = str(rest[0])
        step = self.places.step(target)
        if step is None:
            usable = [key for key in self.places.ways if self.seen(text, key).reach in (Reach.SURE, Reach.MAYBE)]
            guess = suggest(target, usable)
            fix = _instead(["steps", target], ["steps", guess] if guess else None)
            return _problem(text, f"There is no step “{target}”.", fix)
        if problem := self.order(text, step, self.seen(text, target), guarded):
            return replace(problem, fix=_or_else(target, rest[1:])) if problem.warning else problem
        if len(rest) > 1 and rest[1] != "output":
            fix = _instead(["steps", target, rest[1]], ["steps", target, "output", rest[1]])
            return _problem(text, f"Read what “{label_of(step)}” gives from its output.", fix)
        return self.known(text, ["steps", target, "output"], self.outputs[target], rest[2:], label_of(step), guarded)

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

    def known(self, text: Text, base: list[str], shape: Shape, rest: Path, name: str, guarded: bool) -> Problem | None:
        """Whether a declared or sampled value has this field. A sample only warns: the next value may have it."""
        inner, followed = shape.at(rest)
        if followed == len(rest) or inner.type not in ("group",) or not isinstance(rest[followed], str) or guarded:
            return None
        if not inner.closed and not inner.fields:
            return None
        missing, way = rest[followed], [*base, *rest[:followed]]
        guess = suggest(missing, inner.fields)
        if guess is None and len(inner.fields) == 1:
            guess = next(iter(inner.fields))
        words = f"{name} returns no “{missing}”." if base[0] == "steps" else f"{name} has no “{missing}”."
        return _problem(
            text, words, _instead([*way, missing], [*way, guess] if guess else None), warning=not inner.closed
        )

    def loop(self, text: Text, rest: Path, guarded: bool) -> Problem | None:
        around = self.places.loops(text.owner, inside=text.field in SEES_ITS_LOOP)
        if not around:
            return _problem(text, "There is no loop around this step.")
        if len(rest) > 1 and rest[0] == "item":
            return self.known(text, ["loop", "item"], self.item(around[-1]), rest[1:], "The item", guarded)
        if "while" not in (around[-1].get("config") or {}):
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
        guess = suggest(str(rest[0]), known)
        fix = _instead([*base, rest[0]], [*base, guess] if guess else None)
        return _problem(text, f"“{base[0]}” has no “{rest[0]}”.", fix)

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
    for number, rule in enumerate(rules.each() if rules else (), start=1):
        if rule.incomplete():
            yield _problem(text, f"Rule {number} has no value to compare with.")


def _instead(old: Path, new: Path | None) -> dict[str, Any] | None:
    """`{"old", "new"}`: how the reference is written now, and how it would be right; `label` is for the button."""
    if new is None:
        return None
    return {"old": written(old), "new": written(new), "label": f"Use {new[-1]}", "guess": str(new[-1])}


def _or_else(target: str, rest: Path) -> dict[str, Any]:
    """What may not be there, with something else in its place: `steps.?call.output.id.orValue("")`."""
    new = written(["steps", target, *rest]).replace("steps.", "steps.?", 1) + '.orValue("")'
    return {"old": written(["steps", target, *rest]), "new": new, "label": "Else use nothing"}


def written(path: Path) -> str:
    """A path as an expression writes it: `steps.a.output["first name"][0]`."""
    text = str(path[0])
    for part in path[1:]:
        plain = isinstance(part, str) and part.isidentifier()
        text += f".{part}" if plain else f'["{part}"]' if isinstance(part, str) else f"[{part}]"
    return text


def _problem(text: Text, message: str, fix: dict[str, Any] | None = None, *, warning: bool = False) -> Problem:
    if fix:
        message += f" Did you mean “{fix['guess']}”?"
    return Problem(text.owner, text.field, message, warning, fix)
