"""Texts with {{ expressions }} in them, and JSON trees of such texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from . import limits
from .errors import EvaluationError
from .expression import Program, _too_deep
from .fuel import Evaluation, text_size
from .lexer import tokens
from .operators import too_deep
from .references import Path, References
from .results import JSON, to_json, to_text

Names = Mapping[str, Any]
_Part = str | Program


class _Renderer:
    """What a template and a tree of templates share: one budget for the whole of a rendering."""

    __slots__ = ("source", "is_static", "references", "references_with_default", "_cost", "_slots", "_build")

    def __init__(self, source: Any, programs: list[Program], build: Callable[[Evaluation], JSON]) -> None:
        references = References()
        for program in programs:
            references.include(program.references)
        self.source = source
        self.is_static = not programs  # it reads nothing and always gives the same
        self.references: tuple[Path, ...] = references.paths
        self.references_with_default: frozenset[Path] = references.guarded
        self._cost = sum(program.cost for program in programs)
        self._slots = max((program.slots for program in programs), default=0)
        self._build = build

    def render(self, names: Names, *, steps: int = limits.STEPS, memory: int = limits.MEMORY) -> JSON:
        """The value for these names, as JSON data. Raises EvaluationError; its source is the text that holds the part."""
        run = Evaluation(names, self._slots, 0, memory)
        run.steps = steps - self._cost
        try:
            run.charge(0)
            return self._build(run)
        except EvaluationError as error:
            raise error.complete(self.source if type(self.source) is str else "")
        except RecursionError:
            raise _too_deep(str(self.source)[:100]) from None


class Template(_Renderer):
    """A text with {{ expressions }}; made by compile_template."""

    __slots__ = ()


class ValueTemplate(_Renderer):
    """A JSON tree with templates in its texts; made by compile_value. What is static is shared, not copied."""

    __slots__ = ()


@lru_cache(maxsize=limits.CACHED_TEMPLATES)
def compile_template(text: str) -> Template:
    """Compile a text. `{{ "{{" }}` gives two braces. Raises SyntaxProblem with a position in the text."""
    parts = _parts(text)
    return Template(text, [part for part in parts if type(part) is Program], _template(text, parts))


def compile_value(value: JSON) -> ValueTemplate:
    """Compile all texts of a JSON tree but for the keys of its maps. Raises SyntaxProblem."""
    programs: list[Program] = []
    build = _tree(value, programs, 0)
    return ValueTemplate(value, programs, build or (lambda run: value))


def _tree(value: JSON, programs: list[Program], depth: int) -> Callable[[Evaluation], JSON] | None:
    """A closure that builds the value, or None when it is static."""
    if depth > limits.DATA_DEPTH:
        raise too_deep()
    kind = type(value)
    if kind is str:
        return _text(value, programs)
    if kind is list:
        return _list(value, [_tree(item, programs, depth + 1) for item in value])
    if kind is dict:
        return _map(value, {key: _tree(item, programs, depth + 1) for key, item in value.items()})
    return None


def _text(text: str, programs: list[Program]) -> Callable[[Evaluation], JSON] | None:
    if "{{" not in text:
        return None
    template = compile_template(text)
    programs.extend(part for part in _parts(text) if type(part) is Program)
    build = template._build

    def render(run: Evaluation) -> JSON:
        try:
            return build(run)
        except EvaluationError as error:
            raise error.complete(text)

    return render


def _list(items: list, builders: list[Callable[[Evaluation], JSON] | None]) -> Callable[[Evaluation], JSON] | None:
    if not any(builders):
        return None
    pairs = list(zip(items, builders))
    return lambda run: [item if build is None else build(run) for item, build in pairs]


def _map(
    entries: dict, builders: dict[str, Callable[[Evaluation], JSON] | None]
) -> Callable[[Evaluation], JSON] | None:
    moving = [(key, build) for key, build in builders.items() if build is not None]
    if not moving:
        return None

    def build_map(run: Evaluation) -> dict:
        built = entries.copy()  # keeps the order of the keys
        for key, build in moving:
            built[key] = build(run)
        return built

    return build_map


def _parts(text: str) -> list[_Part]:
    """The plain pieces and the programs between them, in order."""
    parts: list[_Part] = []
    last = 0
    while (opening := text.find("{{", last)) >= 0:
        if opening > last:
            parts.append(text[last:opening])
        found = tokens(text, opening + 2, in_braces=True)
        parts.append(Program.build(text, found))
        last = found[-1].end + 2
    if last < len(text):
        parts.append(text[last:])
    return parts


def _template(text: str, parts: list[_Part]) -> Callable[[Evaluation], JSON]:
    programs = [part for part in parts if type(part) is Program]
    if not programs:
        return lambda run: text
    if len(programs) == 1 and all(type(part) is Program or part.isspace() for part in parts):
        return _value_of(programs[0])
    return _joined(parts)


def _value_of(program: Program) -> Callable[[Evaluation], JSON]:
    read, is_path = program.run, program.is_path

    def value(run: Evaluation) -> JSON:
        result = read(run)
        if type(result) is str:
            return result
        return to_json(result, None if is_path else run)

    return value


def _joined(parts: list[_Part]) -> Callable[[Evaluation], str]:
    plain = sum(text_size(part) for part in parts if type(part) is str)
    pieces = [part if type(part) is str else part.run for part in parts]

    def join(run: Evaluation) -> str:
        run.allocate(plain)
        texts = []
        for piece in pieces:
            if type(piece) is not str:
                piece = to_text(piece(run), run)
                run.allocate(text_size(piece))
            texts.append(piece)
        return "".join(texts)

    return join
