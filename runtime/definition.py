"""The definition of a workflow: its problems, and how to walk it.

A definition stays the JSON that it was written as: the models of its shape check it and are thrown away, so that export is
exactly what was imported. Every problem names the step (or trigger), the field and the remedy.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from .expressions import ExpressionError, compile, patterns_in
from .shape import Definition
from .slots import HIGHEST
from .steps import step_types
from .steps.fields import UNREADABLE
from .triggers import trigger_kinds

MOST_STEPS = 10_000
MOST_PATTERNS = 500
"""Of matches(): each may take some milliseconds to be compiled, at every save and by whoever opens the flow."""
DEEPEST = 24
PATTERNS = "patterns"
"""The field of the problem that there are too many of them: a draft, which may have others, is not saved with it."""
MISSING = "missing"
"""The kind of a problem that is a field left empty."""
LONGEST_REMEMBERED = 20_000
"""Characters of a config, what is wrong with which is not worked out again for each edit elsewhere."""
RESERVED_IDS = {"on_error", "trigger", "steps", "loop", "run", "workflow", "callbacks"}


@dataclass(frozen=True, slots=True)
class Problem:
    """What stands in the way of publishing. `step` is a step or trigger id, empty for the workflow itself; `field` a
    dotted path such as `config.url` or `branches.0.when`. A warning does not block. `kind` is MISSING or UNREADABLE where
    it is one of these; `row` counts from 0 which rule of a condition is at fault."""

    step: str
    field: str
    message: str
    warning: bool = False
    fix: dict[str, Any] | None = field(default=None, compare=False)
    kind: str = ""
    row: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.step, self.field, self.message) if part)


class DefinitionError(ValueError):
    """The definition cannot be used. `problems` lists all of them."""

    def __init__(self, problems: list[Problem]):
        super().__init__("; ".join(map(str, problems[:5])))
        self.problems = problems


def check(definition: Any) -> list[Problem]:
    """All structural problems of a definition, in the order of its steps; empty when it can be run."""
    if oversize := too_large(definition):
        return [oversize]
    try:
        Definition.model_validate(definition)
    except ValidationError as error:
        problems = [_from_pydantic(item, definition) for item in error.errors(include_url=False) if _meant(item, definition)]
        return _in_order(problems, definition)
    return _in_order(list(_meaning(definition)), definition)


def require(definition: Any) -> None:
    """Raise DefinitionError unless the definition has no problem that blocks."""
    problems = [problem for problem in check(definition) if not problem.warning]
    if problems:
        raise DefinitionError(problems)


def canonical(definition: dict[str, Any]) -> str:
    """One text for one definition, whatever the order of its keys."""
    return json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(definition: dict[str, Any]) -> str:
    """SHA-256 of the canonical text, in hex."""
    return hashlib.sha256(canonical(definition).encode()).hexdigest()


def children(step: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(name, steps) of every sequence inside a step: each branch by its id, a loop's body as "", `on_error`."""
    for branch in step.get("branches") or ():
        yield branch["id"], branch.get("steps") or []
    if step.get("steps") is not None:
        yield "", step["steps"]
    if isinstance(step.get("on_error"), dict):
        yield "on_error", step["on_error"].get("steps") or []


def walk(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every step, parents before children, in the order of the page."""
    for step in steps:
        yield step
        if "branches" in step or "steps" in step or "on_error" in step:
            for _, inner in children(step):
                yield from walk(inner)


def find(definition: dict[str, Any], step_id: str) -> dict[str, Any] | None:
    """The step with this id, or None."""
    return next((step for step in walk(definition.get("steps") or []) if step.get("id") == step_id), None)


def too_large(definition: Any) -> Problem | None:
    """Refuse by depth and count before anything recursive looks at it."""
    count, patterns, stack = 0, 0, [([definition], 0)]
    while stack:
        value, depth = stack.pop()
        if depth > 8 * DEEPEST:
            return Problem("", "steps", f"Steps are nested too deeply. At most {DEEPEST} levels.")
        if isinstance(value, dict):
            count += "type" in value and "id" in value
            value = value.values()
        for inner in value:
            if isinstance(inner, str):
                patterns += patterns_in(inner)
                if "\x00" in inner or not inner.isascii() and re.search("[\ud800-\udfff]", inner):
                    return Problem("", "", "The text holds a NUL or a lone surrogate, which cannot be stored.")
            elif isinstance(inner, dict | list):
                stack.append((inner, depth + 1))
    if patterns > MOST_PATTERNS:
        return Problem("", PATTERNS, f"A workflow uses matches() at most {MOST_PATTERNS} times; this one does {patterns:,} times.")
    if count > MOST_STEPS:
        return Problem("", "steps", f"A workflow has at most {MOST_STEPS:,} steps; this one has {count:,}.")
    return None


def _meant(item: dict[str, Any], definition: Any) -> bool:
    """Whether a problem is of the alternative that was written: of a word, or of a mapping (`on_error`, `on_interrupted`)."""
    value = definition
    for key in item["loc"]:
        if isinstance(key, str) and key.startswith("literal["):
            return not isinstance(value, dict)
        if isinstance(key, str) and key[:1].isupper():
            if not isinstance(value, dict):
                return False
        elif isinstance(value, dict | list) and (isinstance(key, int) or key in value):
            try:
                value = value[key]
            except (IndexError, KeyError, TypeError):
                return True
    return True


def _from_pydantic(item: dict[str, Any], definition: Any) -> Problem:
    """Turn a pydantic error's location into (step, field), and its words into ours."""
    owner, rest, value = "", [], definition
    for key in item["loc"]:
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
            rest.append(str(key))
        elif isinstance(value, dict) and key in value:
            value = value[key]
            rest.append(str(key))
        elif isinstance(key, str) and (key[:1].isupper() or key.startswith("literal[")):
            continue
        else:
            rest.append(str(key))
        if isinstance(value, dict) and isinstance(value.get("id"), str) and isinstance(value.get("type"), str):
            owner, rest = value["id"], []
    return Problem(owner, ".".join(rest), _words(item), kind=_kind(item))


def _kind(item: dict[str, Any]) -> str:
    """That of a pydantic error, where it is one of ours."""
    empty = item["type"] in ("too_short", "string_too_short") and item["ctx"]["min_length"] == 1
    return MISSING if empty else item["type"] if item["type"] in (MISSING, UNREADABLE) else ""


def _words(item: dict[str, Any]) -> str:
    if kind := _kind(item):
        return "This is missing: fill it in." if kind == MISSING else str(item["msg"])
    match item["type"]:
        case "extra_forbidden":
            return f"There is no field “{item['loc'][-1]}” here. Remove it."
        case "string_pattern_mismatch":
            return "Use lower-case letters, digits and _, beginning with a letter, at most 64."
        case "value_error":
            return str(item["msg"]).removeprefix("Value error, ")
        case _:
            return f"{item['msg']}."


def _meaning(definition: dict[str, Any]) -> Iterator[Problem]:
    """What the shape alone cannot say: known types, ids used once, containers, and each config."""
    seen: set[str] = set()
    yield from _limits(definition.get("limits") or {})
    for trigger in definition.get("triggers") or []:
        yield from _trigger(trigger, seen)
    for step in walk(definition.get("steps") or []):
        yield from _step(step, seen)
    yield from _notes(definition)


def _limits(limits: dict[str, Any]) -> Iterator[Problem]:
    if limits.get("per_key") and not limits.get("key"):
        words = "Say by which value of the trigger runs are told apart, such as trigger.body.customer."
        yield Problem("", "limits.key", words)
    if limits.get("key") and not limits.get("per_key"):
        yield Problem("", "limits.per_key", "Say how many runs may go on at a time for each value of the key.")
    for name in ("key", "priority"):
        source = str(limits.get(name) or "")
        if source and any(path[0] != "trigger" for path in compile(source).references):
            words = "This is worked out when the run starts: use the trigger and nothing else."
            yield Problem("", f"limits.{name}", words)
    if limits.get("priority") and not compile(str(limits["priority"])).references:
        value = _constant(str(limits["priority"]))
        if type(value) is not int or abs(value) > HIGHEST:
            words = f"Use a whole number from -{HIGHEST} to {HIGHEST}; 0 is the usual one."
            yield Problem("", "limits.priority", words)


def _constant(source: str) -> Any:
    try:
        return compile(source).evaluate({})
    except ExpressionError:
        return None


def _trigger(trigger: dict[str, Any], seen: set[str]) -> Iterator[Problem]:
    kind = trigger_kinds().get(trigger["type"])
    if kind is None:
        yield Problem(trigger["id"], "type", f"There is no trigger of type “{trigger['type']}”.")
        return
    yield from _unique(trigger["id"], seen)
    yield from _config(trigger["id"], kind.Config, trigger.get("config") or {})


def _step(step: dict[str, Any], seen: set[str]) -> Iterator[Problem]:
    kind = step_types().get(step["type"])
    if kind is None:
        yield Problem(step["id"], "type", f"There is no step of type “{step['type']}”. Is its package installed?")
        return
    yield from _unique(step["id"], seen)
    yield from _config(step["id"], kind.Config, step.get("config") or {})
    if kind.children != "branches" and step.get("branches") is not None:
        yield Problem(step["id"], "branches", f"{kind.label} has no lanes.")
    if kind.children != "steps" and step.get("steps") is not None:
        yield Problem(step["id"], "steps", f"{kind.label} holds no steps.")
    if kind.children == "branches":
        yield from _branches(step)
    if kind.children == "steps" and not step.get("steps"):
        yield Problem(step["id"], "steps", "The loop is empty. Add a step to it.", warning=True)
    if not kind.outside and step.get("on_interrupted") is not None:
        yield Problem(step["id"], "on_interrupted", f"{kind.label} makes no call that could be interrupted.")


def _notes(definition: dict[str, Any]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, note in enumerate(definition.get("notes") or []):
        if note["id"] in seen:
            yield Problem("", f"notes.{index}.id", f"Two notes have the id “{note['id']}”. Rename one of them.")
        if note.get("beside") and find(definition, note["beside"]) is None:
            words = f"A note stands beside “{note['beside']}”, which is no step of this flow. It is shown at the top."
            yield Problem("", f"notes.{index}.beside", words, warning=True)
        seen.add(note["id"])


def _branches(step: dict[str, Any]) -> Iterator[Problem]:
    branches = step.get("branches") or []
    if len(branches) < (2 if step["type"] == "condition" else 1):
        yield Problem(step["id"], "branches", "Add another lane.")
    ids: set[str] = set()
    for index, branch in enumerate(branches):
        if branch["id"] in ids or branch["id"] == "on_error":
            yield Problem(step["id"], f"branches.{index}.id", f"The lane id “{branch['id']}” is already taken.")
        ids.add(branch["id"])
        last = index == len(branches) - 1
        if step["type"] == "condition" and not last and not branch.get("when"):
            yield Problem(step["id"], f"branches.{index}.when", "Say when this lane is taken.")
        if (step["type"] != "condition" or last) and branch.get("when"):
            words = "The last lane is for everything else" if step["type"] == "condition" else "Every lane runs"
            yield Problem(step["id"], f"branches.{index}.when", f"{words}: remove its condition.")


def _unique(owner: str, seen: set[str]) -> Iterator[Problem]:
    if owner in RESERVED_IDS:
        yield Problem(owner, "id", f"“{owner}” has a meaning of its own in expressions. Choose another id.")
    if owner in seen:
        yield Problem(owner, "id", f"The id “{owner}” is used twice. Rename one of them.")
    seen.add(owner)


def _config(owner: str, model: type[BaseModel], config: dict[str, Any]) -> Iterator[Problem]:
    text = json.dumps(config)
    wrong = _wrong if len(text) > LONGEST_REMEMBERED else _remembered
    for place, message, kind in wrong(model, text):
        yield Problem(owner, place, message, kind=kind)


def _wrong(model: type[BaseModel], config: str) -> tuple[tuple[str, str, str], ...]:
    """(field, message, kind) of all that a config in JSON has wrong."""
    try:
        model.model_validate(json.loads(config))
    except ValidationError as error:
        return tuple((_place(item["loc"]), _words(item), _kind(item)) for item in error.errors(include_url=False))
    return ()


_remembered = lru_cache(maxsize=4096)(_wrong)
"""Of hundreds of steps an edit changes one."""


def _place(location: Iterable[Any]) -> str:
    return ".".join(["config", *(str(part) for part in location if not str(part).startswith(("function-", "is-instance")))])


def _in_order(problems: list[Problem], definition: Any) -> list[Problem]:
    """Sort by where the step stands on the page; a definition without a sound shape keeps the order found."""
    try:
        places = {step["id"]: place for place, step in enumerate(walk(definition["steps"]))}
    except (KeyError, TypeError, AttributeError):
        return problems
    return sorted(problems, key=lambda problem: places.get(problem.step, -1))
