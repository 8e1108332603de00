"""Selections and indexes that hang on each other: a.b.c, a["b"][0], a.?b.c.

A chain is one closure. The common one, names that select plain fields from a name or a variable, reads straight
through the dicts and takes the long way only to say what is wrong. That is safe because only dicts answer to a text in
brackets: a list, a text or a number raises TypeError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import limits, syntax
from .code import Closure, Code, Site, quoted
from .errors import EvaluationError
from .fuel import Evaluation
from .values import ABSENT, KNOWN, Optional, adopt, in_words, lookup_key

_MISSING = object()
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]{0,59}")


@dataclass(frozen=True, slots=True)
class Segment:
    """One link of a chain."""

    code: Code  # gives the key; constant for a field and for a literal index
    is_field: bool
    optional: bool
    owner: str  # the chain before this link as it was written, for messages
    site: Site

    @property
    def is_plain(self) -> bool:
        """Reads a text key of a map, and nothing else."""
        return not self.optional and self.code.is_constant and type(self.code.value) is str


def segments(source: str, node: syntax.Node, build: Callable[[syntax.Node], Code]) -> tuple[syntax.Node, list[Segment]]:
    """The node at the bottom of the chain, and the links from there to the top."""
    found: list[Segment] = []
    while type(node) is syntax.Select or type(node) is syntax.Index:
        if len(found) == limits.CHAIN:
            raise Site.of(source, node).problem(f"This selects over more than {limits.CHAIN} parts. Split it.")
        is_field = type(node) is syntax.Select
        key = Code.constant(node.field) if type(node) is syntax.Select else build(node.index)
        owner = quoted(source[node.operand.start : node.operand.end])
        found.append(Segment(key, is_field, node.optional, owner, Site.of(source, node)))
        node = node.operand
    return node, found[::-1]


def read(base: Closure, links: list[Segment]) -> Closure:
    """A closure for a chain on any base."""
    if all(link.is_plain for link in links):
        return _read_plain(base, links)
    return lambda run: walk(run, base(run), links)


def _read_plain(base: Closure, links: list[Segment]) -> Closure:
    if len(links) == 1:
        (first,) = (link.code.value for link in links)

        def read_one(run: Evaluation) -> Any:
            owner = base(run)
            try:
                value = owner[first]
            except (TypeError, KeyError):
                return walk(run, owner, links)
            return value if type(value) in KNOWN else adopt(value)

        return read_one
    fields = tuple(link.code.value for link in links)

    def read_all(run: Evaluation) -> Any:
        value = owner = base(run)
        try:
            for field in fields:
                value = value[field]
        except (TypeError, KeyError):
            return walk(run, owner, links)
        return value if type(value) in KNOWN else adopt(value)

    return read_all


def read_name(name: str, site: Site) -> Closure:
    def read(run: Evaluation) -> Any:
        try:
            value = run.names[name]
        except KeyError:
            raise unknown_name(run, name, site) from None
        return value if type(value) in KNOWN else adopt(value)

    return read


def read_from_name(name: str, links: list[Segment], site: Site) -> Closure:
    """A chain on one of the evaluation's names: by far the most common expression there is, hence unrolled."""
    base = read_name(name, site)
    if not all(link.is_plain for link in links) or not 1 <= len(links) <= 4:
        return read(base, links)
    first, second, third, fourth = ([link.code.value for link in links] + [None] * 3)[:4]

    def the_long_way(run: Evaluation) -> Any:
        return walk(run, base(run), links)

    def read_1(run: Evaluation) -> Any:
        try:
            value = run.names[name][first]
        except (TypeError, KeyError):
            return the_long_way(run)
        return value if type(value) in KNOWN else adopt(value)

    def read_2(run: Evaluation) -> Any:
        try:
            value = run.names[name][first][second]
        except (TypeError, KeyError):
            return the_long_way(run)
        return value if type(value) in KNOWN else adopt(value)

    def read_3(run: Evaluation) -> Any:
        try:
            value = run.names[name][first][second][third]
        except (TypeError, KeyError):
            return the_long_way(run)
        return value if type(value) in KNOWN else adopt(value)

    def read_4(run: Evaluation) -> Any:
        try:
            value = run.names[name][first][second][third][fourth]
        except (TypeError, KeyError):
            return the_long_way(run)
        return value if type(value) in KNOWN else adopt(value)

    return (read_1, read_2, read_3, read_4)[len(links) - 1]


def has(base: Closure, links: list[Segment]) -> Closure:
    """has(a.b.c): is the last field there? Also false when a part on the way is missing or null."""
    *way, last = links

    def present(run: Evaluation) -> bool:
        value = base(run)
        for link in way:
            value = _absent_when_missing(run, value, link)
            if value is _MISSING:
                return False
        return _has_field(value, last)

    return present


def _absent_when_missing(run: Evaluation, value: Any, link: Segment) -> Any:
    if type(value) is Optional:
        value = value.value  # None when it is absent
    found = _look_up(value, link.code.run(run), link, optional=True)
    return found if found is _MISSING or type(found) in KNOWN else adopt(found)


def _has_field(value: Any, last: Segment) -> bool:
    if type(value) is Optional:
        value = value.value
    if value is None:
        return False
    if type(value) is not dict:
        raise _no_fields(value, last.code.value, last)
    return last.code.value in value


def walk(run: Evaluation, value: Any, links: list[Segment]) -> Any:
    """Follow the links one by one, with every check. An optional link makes what follows optional too."""
    optional = False
    for link in links:
        if type(value) is Optional:
            if not value.present:
                return ABSENT
            value, optional = value.value, True
        key = link.code.run(run)
        found = _look_up(value, key, link, optional or link.optional)
        if found is _MISSING:
            if not (optional or link.optional):
                raise _not_there(value, key, link)
            return ABSENT
        value = found if type(found) in KNOWN else adopt(found)
        optional = optional or link.optional
    return Optional(True, value) if optional and type(value) is not Optional else value


def _look_up(value: Any, key: Any, link: Segment, optional: bool) -> Any:
    kind = type(value)
    if kind is dict:
        stored = lookup_key(key)
        if stored is None:
            if type(key) is float:
                return _MISSING
            raise link.site.error("type", f"{in_words(key).capitalize()} is no key of a map.")
        return value.get(stored, _MISSING)
    if kind is list and not link.is_field:
        index = lookup_key(key)
        if not isinstance(index, int):
            raise link.site.error("type", f"{link.owner} is a list, and its items have numbers: [0] is the first.")
        return value[index] if 0 <= index < len(value) else _MISSING
    if value is None and optional:
        return _MISSING
    raise _no_fields(value, key, link)


def _no_fields(value: Any, key: Any, link: Segment) -> EvaluationError:
    remedy = ""
    if value is None:
        remedy = " Where it may be empty, select with `.?` and end with .orValue(...)."
    elif type(value) is list:
        remedy = " Take one item first, as in [0], or use map()."
    elif type(value) is str and type(key) is int:
        remedy = " For one character, use charAt()."
    what = "field" if type(key) is str else "item"
    return link.site.error("missing", f"{link.owner} is {in_words(value)} and has no {what} {_shown(key)}.{remedy}")


def _not_there(value: Any, key: Any, link: Segment) -> EvaluationError:
    if type(value) is list:
        return link.site.error("missing", f"{link.owner} has no item {_shown(key)}: it has {len(value)}.")
    if type(key) is not str:
        return link.site.error("missing", f"{link.owner} has no key {_shown(key)}.")
    error = link.site.error("missing", f"{link.owner} has no field {_shown(key)}.")
    default = ""
    if _IDENTIFIER.fullmatch(key) and link.owner[1:2].isalpha():
        default = f" Where it may be missing, write {link.owner[1:-1]}.?{key}.orValue(...)."
    error.near = (key, value, default)
    return error


def _shown(key: Any) -> str:
    """A key in a message: short, and never a number that takes long to write."""
    if type(key) is str:
        return quoted(key)
    return str(key) if type(key) is not int or abs(key) < 2**64 else "of that number"


def unknown_name(run: Evaluation, name: str, site: Site) -> EvaluationError:
    error = site.error("missing", f"There is no name `{name}` here.")
    error.near = (name, [*run.names, "true", "false", "null"], "")
    return error
