"""What people write who come from another product, and what it is called here. Two tables: spellings, which cannot even be
read as an expression, and names, which can but stand for nothing. Both only suggest: who edits presses the button."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime.definition import walk
from runtime.expressions import SyntaxProblem, compile, compile_template, suggest

from ..editing.places import label_of
from ..editing.triggers import trigger_label
from ..texts import Text, in_code
from .paths import Path, written
from .shapes import ANY, Shape

if TYPE_CHECKING:
    from .problems import Checker

LONGEST = 5_000
QUOTES = str.maketrans("“”„‘’", "\"\"\"''")
SPELLINGS = tuple((re.compile(pattern), new) for pattern, new in (
    (r"===", "=="),
    (r"!==", "!="),
    (r"<>", "!="),
    (r"(?<![=!<>])=(?!=)", "=="),
    (r"(?<!&)&(?!&)", "&&"),
    (r"\|\s*(upper|lower|trim)\b(?!\s*\()", r".\1()"),
    (r"(?<!\|)\|(?!\|)", "||"),
    (r"(?i:\band\b)", "&&"),
    (r"(?i:\bor\b)", "||"),
    (r"(?i:\bis\s+not\b)", "!="),
    (r"(?i:\bis\b)", "=="),
    (r"(?i:\bnot\b)\s*", "!"),
    (r"\?\.(?=[A-Za-z_])", ".?"),
    (r"\s+(\.(?:upper|lower|trim)\(\))", r"\1"),
    (r"\.toLowerCase\(", ".lower("),
    (r"\.toUpperCase\(", ".upper("),
    (r"\.includes\(", ".contains("),
    (r"\.(starts|ends)with\(", r".\1With("),
    (r"(?<![\w.])len\(", "size("),
    (r"(?<![\w.])str\(", "string("),
    (r"(?<![\w.$])(?:Date\.)?now\(\)|\$now\b|\$today\b", "run.started_at"),
    (r"\$input\.(?:item|first\(\)|last\(\))(?:\.json)?", "json"),
    (r"\$execution\b", "run"),
    (r"\$(?=[A-Za-z_])", ""),
    (r"\b\d+__(?=[A-Za-z_])", "json."),
))  # fmt: skip
"""Of operators, functions and `$` names, outside quotes; in this order, for `===` holds a `=` too."""
NODE = re.compile(
    r"""\$(?:node\s*\[\s*(?P<q>['"])(?P<a>.+?)(?P=q)\s*\]|\(\s*(?P<p>['"])(?P<b>.+?)(?P=p)\s*\))"""
    r"(?:\.(?:item|first\(\)|last\(\)))?(?:\.json)?"
)
"""`$('Qualify lead').item.json` and `$node["Qualify lead"].json`: another step by its name."""

ITEM = frozenset({"item", "items", "element", "each", "row", "current", "current_item", "it"})
INDEX = frozenset({"index", "i", "idx", "iteration"})
SENT = frozenset({"body", "input", "inputs", "payload", "params", "event", "request", "req", "webhook", "form", "flow_input", "bundle"})
REQUEST = frozenset({"headers", "query", "method"})
BEFORE = frozenset({"json", "data", "previous", "prev", "last", "previous_result", "result", "results", "output", "response"})
"""What came from right before, as other products call it: of several things here, the one that has the field."""
SECRETS = frozenset({"env", "vars", "secrets", "secret", "process", "credentials"})
CONSTANTS = {"True": "true", "False": "false", "TRUE": "true", "FALSE": "false", "None": "null", "undefined": "null", "nil": "null", "NULL": "null"}
ANSWER = {"body": "body", "data": "body", "json": "body", "result": "body", "headers": "headers", "status": "status", "statusCode": "status"}
OUTPUTS = frozenset({"output", "outputs", "result", "results", "json", "response"})
OTHERS = {"now": "run.started_at", "today": "run.started_at", "execution": "run", "flow": "workflow"}
PADDING = frozenset({"json", "data", "body", "output", "outputs", "result", "value", "input", "event", "payload", "response"})
"""Words between a name and its field that may mean nothing here: the value itself has the field, and no such word."""
NOISE = frozenset({"json", "output", "input", "event"})
"""Those that mean nothing here where nobody knows the value."""


def respelled(definition: Mapping[str, Any], text: Text) -> str | None:
    """The text as an expression here is spelled, where that makes it readable; None where it does not help, or is too long to
    be looked through."""
    if len(text.source) > LONGEST:
        return None
    names = {label_of(step): f"steps.{step['id']}.output" for step in walk(definition.get("steps") or [])}
    names |= {trigger_label(trigger): "trigger.body" for trigger in definition.get("triggers") or []}
    source = in_code(text.source, text.kind, lambda code: NODE.sub(lambda found: names.get(found["a"] or found["b"], found[0]), code), quoted=True)
    source = in_code(source, text.kind, lambda code: code.translate(QUOTES))
    source = in_code(source, text.kind, _spelled)
    return source if source != text.source and readable(source, text.kind) else None


def _spelled(code: str) -> str:
    for pattern, new in SPELLINGS:
        code = pattern.sub(new, code)
    return code


def readable(source: str, kind: str) -> bool:
    try:
        compile(source) if kind == "expression" else compile_template(source)
    except SyntaxProblem:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Meant:
    """What a name stands for: `message` says it; `new` takes the place of `old`, where there is something to take it."""

    message: str
    old: str = ""
    new: str = ""


def meant(checker: Checker, text: Text, path: Path, sees: Collection[str]) -> Meant | None:
    """What a reference with an unknown first name was meant to be. `sees` are the field's own names, such as `response`."""
    root, rest = str(path[0]), path[1:]
    if root in CONSTANTS:
        return _is(root, CONSTANTS[root])
    if (step := checker.places.step(root)) and checker.usable(text, root):
        return _gives(label_of(step), root, [root], rest)
    if root in ("results", "outputs") and rest and (step := checker.places.step(str(rest[0]))) and checker.usable(text, step["id"]):
        return _gives(label_of(step), step["id"], [root, rest[0]], rest[1:])
    if "response" in sees and root in ANSWER:
        return _is(root, f"response.{ANSWER[root]}")
    if root in OTHERS:
        return _is(root, OTHERS[root])
    if root in SECRETS:
        return Meant(f"There is no name “{root}”: expressions do not see secrets. Store it as a connection and choose that in the step.")
    if root in ITEM or root in INDEX or rest[:1] == ("iter",):
        return _of_loop(checker, text, root, rest)
    if root in REQUEST and root in checker.trigger.fields:
        return _is(root, f"trigger.{root}")
    if root in SENT and "body" in checker.trigger.fields:
        if rest and (rest[0] in REQUEST or rest[0] == "body") and rest[0] in checker.trigger.fields:
            return _is(root, "trigger")
        return _is(root, "trigger.body", rest, checker.trigger.fields["body"])
    return _before(checker, text, root, rest) if root in BEFORE else None


def of_trigger(trigger: Shape, rest: Path) -> Path | None:
    """`trigger.email` and `trigger.data.email`: the way from the trigger to what was sent, in its body; None where it is not known."""
    body = trigger.fields.get("body")
    if body is None:
        return None
    for way in _padded(rest):
        if way and body.at(way)[1] == len(way):
            return ("body", *way)
    if not body.fields and not body.closed and (rest[0] in NOISE or suggest(str(rest[0]), trigger.fields) is None):
        return ("body", *_bare(rest))
    return None


def _is(root: str, new: str, rest: Path = (), shape: Shape = ANY) -> Meant:
    """`new` in the place of the name, and of the padding after it."""
    way = next((way for way in _padded(rest) if way and shape.at(way)[1] == len(way)), _bare(rest))
    old = written([root, *rest[: len(rest) - len(way)]])
    return Meant(f"There is no name “{root}”: here it is {new}.", old, new)


def _gives(name: str, step_id: str, base: list[str], rest: Path) -> Meant:
    gap = rest[:1] if rest[:1] and rest[0] in OUTPUTS else ()
    new = f"steps.{step_id}.output"
    return Meant(f"There is no name “{base[0]}”: what “{name}” gives is {new}.", written([*base, *gap]), new)


def _of_loop(checker: Checker, text: Text, root: str, rest: Path) -> Meant | None:
    old = [root]
    if rest[:1] == ("iter",):  # flow_input.iter.value
        old, root, rest = [root, *rest[:2]], "index" if rest[1:2] == ("index",) else "item", rest[2:]
    if not checker.loops(text):
        return Meant(f"There is no name “{old[0]}”, and no loop around this step whose item it could be.")
    if root in INDEX:
        return Meant(f"There is no name “{old[0]}”: inside a loop it is loop.index.", written(old), "loop.index")
    if rest[:1] == ("json",):
        old = [*old, "json"]
    return Meant(f"There is no name “{old[0]}”: inside a loop it is loop.item.", written(old), "loop.item")


def _before(checker: Checker, text: Text, root: str, rest: Path) -> Meant | None:
    """Of what is there at this place the nearest that has the field; else the loop's item, what the step before gave, what
    was sent."""
    places = list(checker.before(text))
    for base, shape in places:
        for way in _padded(rest):
            if way and shape.at(way)[1] == len(way):
                return _is(root, base, rest, shape)
    return _is(root, places[0][0], rest, places[0][1]) if places else None


def _bare(rest: Path) -> Path:
    return rest[1:] if rest and rest[0] in NOISE else rest


def _padded(rest: Path) -> Iterator[Path]:
    """The way to a field with all its padding, and then with less and less."""
    yield rest
    while rest and rest[0] in PADDING:
        rest = rest[1:]
        yield rest
