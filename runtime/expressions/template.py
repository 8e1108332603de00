"""Texts with {{ expressions }} in them, and JSON trees of such texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from . import limits
from .errors import EvaluationError, SyntaxProblem
from .expression import Program, check_patterns, patterns_in, too_deep, too_large
from .fuel import Evaluation, text_size
from .lexer import tokens
from .references import Path, References
from .results import JSON, to_json, to_text

Names = Mapping[str, Any]
Builder = Callable[[Evaluation], JSON]


class _Renderer:
    """What a template and a tree of templates share: one budget for the whole of a rendering."""

    __slots__ = ("source", "is_static", "references", "references_with_default", "programs", "build", "_cost", "_slots")

    def __init__(self, source: Any, programs: list[Program], build: Builder) -> None:
        references = References()
        for program in programs:
            references.include(program.references)
        self.source = source
        self.is_static = not programs  # it reads nothing and always gives the same
        self.references: tuple[Path, ...] = references.paths
        self.references_with_default: frozenset[Path] = references.guarded
        self.programs = programs
        self.build = build
        self._cost = sum(program.cost for program in programs)
        self._slots = max((program.slots for program in programs), default=0)

    def render(self, names: Names, *, steps: int = limits.STEPS, memory: int = limits.MEMORY) -> JSON:
        """The value for these names, as JSON data. Arguments as for Expression.evaluate. Raises EvaluationError."""
        source = self.source if type(self.source) is str else ""
        try:
            return self.build(Evaluation(names, self._slots, steps - self._cost, memory))
        except EvaluationError as error:
            raise error.complete(source)
        except RecursionError:
            raise too_deep(source) from None
        except OverflowError:
            raise too_large(source) from None


class Template(_Renderer):
    """A text with {{ expressions }}; made by compile_template."""

    __slots__ = ()


class ValueTemplate(_Renderer):
    """A JSON tree with templates in its texts; made by compile_value. What is static is shared, not copied."""

    __slots__ = ()


@lru_cache(maxsize=limits.CACHED_TEMPLATES)
def compile_template(text: str) -> Template:
    """Compile a text. `{{ "{{" }}` gives two braces. Raises SyntaxProblem with a position in the text."""
    check_patterns(patterns_in(text) if "{{" in text else 0, text)
    parts = _parts(text)
    programs = [part for part in parts if type(part) is Program]
    if not programs:
        return Template(text, programs, lambda run: text)
    if len(programs) == 1 and all(type(part) is Program or part.isspace() for part in parts):
        return Template(text, programs, _value_of(programs[0]))
    return Template(text, programs, _joined(parts))


def _parts(text: str) -> list[str | Program]:
    """The plain pieces and the programs between them, in order."""
    parts: list[str | Program] = []
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


def _value_of(program: Program) -> Builder:
    read, is_path = program.run, program.is_path

    def value(run: Evaluation) -> JSON:
        result = read(run)
        return result if type(result) is str else to_json(result, None if is_path else run)

    return value


def _joined(parts: list[str | Program]) -> Builder:
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


def compile_value(value: JSON) -> ValueTemplate:
    """Compile all texts of a JSON tree but for the keys of its maps.

    Errors of compiling and of rendering have the text as `source` and the keys that lead to it as `path`.
    Raises SyntaxProblem.
    """
    tree = _Tree()
    build = tree.compile(value, ())
    return ValueTemplate(value, tree.programs, build or (lambda run: value))


class _Tree:
    """Compiles a tree: each method gives a closure that builds the value, or None when it is static."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self.patterns = 0

    def compile(self, value: JSON, path: Path) -> Builder | None:
        if len(path) > limits.DATA_DEPTH:
            raise SyntaxProblem(f"This is nested deeper than {limits.DATA_DEPTH} levels.")
        kind = type(value)
        if kind is str:
            return self.text_builder(value, path)
        if kind is list:
            return self.list_builder(value, path)
        if kind is dict:
            return self.map_builder(value, path)
        return None

    def text_builder(self, text: str, path: Path) -> Builder | None:
        if "{{" not in text:
            return None
        try:
            self.patterns += patterns_in(text)
            check_patterns(self.patterns, text)
            template = compile_template(text)
        except SyntaxProblem as problem:
            problem.path = path
            raise
        self.programs.extend(template.programs)
        build = template.build

        def render(run: Evaluation) -> JSON:
            try:
                return build(run)
            except EvaluationError as error:
                error.path = path
                raise error.complete(text)

        return render

    def list_builder(self, items: list, path: Path) -> Builder | None:
        builders = [self.compile(item, (*path, index)) for index, item in enumerate(items)]
        if not any(builders):
            return None
        pairs = list(zip(items, builders))
        return lambda run: [item if build is None else build(run) for item, build in pairs]

    def map_builder(self, entries: dict, path: Path) -> Builder | None:
        builders = [(key, self.compile(item, (*path, key))) for key, item in entries.items()]
        moving = [(key, build) for key, build in builders if build is not None]
        if not moving:
            return None

        def build_map(run: Evaluation) -> dict:
            built = entries.copy()  # keeps the order of the keys
            for key, build in moving:
                built[key] = build(run)
            return built

        return build_map
