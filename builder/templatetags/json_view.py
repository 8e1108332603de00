"""`{{ output|json_view }}`: JSON as numbered, coloured lines that are safe to show, whatever the data holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django import template
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from runtime.tokens import without_signatures

register = template.Library()

LONGEST_STRING = 80
LEAST_FOLDED = 20
"""Folding less than this saves no line."""
LONGEST_OPEN_CONTAINER = 40
DEEPEST_OPEN = 4
DEEPEST = 64
MOST_LINES = 3_000

# Characters that reorder or hide text: shown as escapes, so that a value cannot look like another one.
DISGUISES = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


@register.filter
def json_view(value: Any) -> SafeString:
    """An `<ol>` for inside `.json`; long strings and long or deep containers are folded behind a button.

    `value` is anything that JSON can hold, also dates and decimals. At most 3,000 lines; says how many are left out. Who sees a
    run may not answer in its callbacks' place, so here as in the other forms their addresses are not whole.
    """
    shown = "".join(islice(_numbered(_Walk(), without_signatures(value)), MOST_LINES))
    if (more := _count(value) - MOST_LINES) > 0:
        shown += f'<li><span class="muted">{more:,} more lines</span></li>'
    return mark_safe(f"<ol>{shown}</ol>")  # noqa: S308 - every value passed through escape()


@register.filter
def json_text(value: Any) -> str:
    """The same JSON as plain text, for copying."""
    return json.dumps(without_signatures(value), indent=2, ensure_ascii=False, cls=DjangoJSONEncoder)


def _count(value: Any, depth: int = 0) -> int:
    """How many lines it has: to make them takes several times as long."""
    if not isinstance(value, dict | list | tuple) or not value or depth >= DEEPEST:
        return 1
    return 2 + sum(_count(item, depth + 1) for item in (value.values() if isinstance(value, dict) else value))


class _Walk:
    """Where the walk stands: the number of the folded container it is in, if any, and how many there were."""

    def __init__(self) -> None:
        self.folds = 0
        self.inside: int | None = None


def _numbered(walk: _Walk, value: Any) -> Iterator[str]:
    for fold, line in _lines(walk, value, depth=0, prefix="", suffix=""):
        hidden = f' data-fold="{fold}" hidden' if fold else ""
        yield f"<li{hidden}><span>{line}</span></li>"


def _lines(walk: _Walk, value: Any, *, depth: int, prefix: str, suffix: str) -> Iterator[tuple[int | None, str]]:
    indent = "  " * depth
    if not isinstance(value, dict | list | tuple):
        yield walk.inside, f"{indent}{prefix}{_scalar(value)}{suffix}"
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if not value or depth >= DEEPEST:
        inside = "" if not value else "…"
        yield walk.inside, f"{indent}{prefix}{opening}{inside}{closing}{suffix}"
        return
    folded = walk.inside is None and depth > 0 and (depth >= DEEPEST_OPEN or len(value) > LONGEST_OPEN_CONTAINER)
    if folded:
        walk.folds += 1
        yield None, f"{indent}{prefix}{opening}{_fold_button(walk.folds, value)}"
        walk.inside = walk.folds
    else:
        yield walk.inside, f"{indent}{prefix}{opening}"
    yield from _items(walk, value, depth + 1)
    if folded:
        walk.inside = None
    yield walk.inside, f"{indent}{closing}{suffix}"


def _items(walk: _Walk, value: Any, depth: int) -> Iterator[tuple[int | None, str]]:
    last = len(value) - 1
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    for position, (key, item) in enumerate(pairs):
        prefix = "" if key is None else f'<span class="k">{_text(str(key))}</span>: '
        yield from _lines(walk, item, depth=depth, prefix=prefix, suffix="" if position == last else ",")


def _scalar(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return f'<span class="b">{json.dumps(value)}</span>'
    if isinstance(value, int | float):
        return f'<span class="d">{escape(json.dumps(value))}</span>'
    if not isinstance(value, str):
        value = json.loads(json.dumps(value, cls=DjangoJSONEncoder))
        return _scalar(value) if isinstance(value, str | int | float) else f'<span class="s">{_text(str(value))}</span>'
    if len(value) < LONGEST_STRING + LEAST_FOLDED:
        return f'<span class="s">{_text(value)}</span>'
    head, rest = _text(value[:LONGEST_STRING])[: -len("&quot;")], _text(value[LONGEST_STRING:])[len("&quot;") :]
    hidden = len(value) - LONGEST_STRING
    return (
        f'<span class="s">{head}</span>'
        f'<button class="fold" type="button" aria-expanded="false" aria-label="Show {hidden:,} more characters">'
        f'+{hidden:,}</button><span class="s" hidden>{rest[: -len("&quot;")]}</span><span class="s">&quot;</span>'
    )


def _fold_button(number: int, value: Any) -> str:
    noun = "key" if isinstance(value, dict) else "item"
    words = f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}"
    return (
        f'<button class="fold" type="button" aria-expanded="false" data-unfold="{number}" '
        f'aria-label="Show {words}">{words}</button>'
    )


def _text(value: str) -> str:
    """A string as JSON writes it, quotes included, escaped for HTML."""
    quoted = json.dumps(value, ensure_ascii=False)
    return escape(DISGUISES.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted))
