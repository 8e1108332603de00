"""Two people's changes of one definition that may both stand: they touch different parts, neither changes what the other does, and
neither speaks of a step that the other has made, removed or renamed.

A part is a step with the place that it stands in and without what stands inside it, a trigger, a note, one setting of the flow, or
who follows whom in a sequence. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from runtime.definition import walk

from .diff import own_of, sequences
from .editing import EditError, apply

Part = tuple[str, ...]
Touched = dict[Part, tuple[str | None, str | None]]
"""What each part that differs was and is, as JSON, in which 1 is not true and the order of keys counts; None where it is not there."""
NAMED = ("step", "triggers", "notes")
BEGINNING, END = "", ""
"""In the place of a neighbour's id."""


class _Twice(Exception):
    """Two parts go by one name, as in a file that somebody wrote: which of them an operation means cannot be told."""


def both_stand(since: Sequence[dict[str, Any]], operation: dict[str, Any], own: Collection[int] = ()) -> bool:
    """Whether an operation that was made on the first of these revisions, and on those after it at the places `own`, does to the
    last what it did there, beside all that others did since. Raises EditError when it cannot be applied to what it was made on.

    Each revision counts, and not only the last: an id may have gone, and be another step's now."""
    seen, now = since[max(own, default=0)], since[-1]
    after = apply(seen, operation).definition
    try:
        mine, there = _touched(seen, after), _touched(now, apply(now, operation).definition)
        theirs = [_touched(before, then) for at, (before, then) in enumerate(pairwise(since), 1) if at not in own]
    except (EditError, _Twice):
        return False
    if mine != there or any(_whole(mine) & _whole(one) for one in theirs):
        return False
    return not any(_speaks(one, mine) or _speaks(mine, one) for one in theirs)


def _touched(before: dict[str, Any], after: dict[str, Any]) -> Touched:
    old, new = _parts(before), _parts(after)
    return {part: (old.get(part), new.get(part)) for part in old.keys() | new.keys() if old.get(part) != new.get(part)}


def _whole(touched: Touched) -> set[Part]:
    """The parts, of which a step's type and place are none of their own."""
    return {part[-2:] if part[0] in ("type", "home") else part for part in touched}


def _speaks(one: Touched, other: Touched) -> bool:
    """Whether what one of them wrote names what the other has made or removed, which a new name does both of."""
    names = {part[1] for part, (was, now) in other.items() if part[0] in NAMED and (was is None or now is None)}
    texts = [now for part, (_, now) in one.items() if part[0] != "after" and now]
    word = r"(?:(?<![\w-])|(?<=\\[nrtbf])){}(?![\w-])"  # also after a line's end, which is a letter in JSON
    return any(re.search(word.format(re.escape(name)), text) for name in names for text in texts)


def _parts(definition: dict[str, Any]) -> dict[Part, str]:
    """By their names; what a part is called and of which type stands apart, so that only what it says is searched for names."""
    found = [(part, json.dumps(value)) for part, value in _named(definition)]
    parts = dict(found)
    if len(parts) < len(found):
        raise _Twice
    return parts


def _named(definition: dict[str, Any]) -> Iterator[tuple[Part, Any]]:
    for key, value in definition.items():
        if key not in ("steps", "triggers", "notes"):
            yield ("flow", key), value
    for kind in ("triggers", "notes"):
        for one in definition.get(kind) or []:
            yield from _apart((kind, one["id"]), one)
    home: dict[str, list[str]] = {"": []}
    for (parent, lane), steps in sequences(definition):
        home |= dict.fromkeys(steps, [*home.get(parent, []), f"{parent}/{lane}"])
        yield from _order(("after", parent, lane), steps)
    for step in walk(definition.get("steps") or []):
        yield ("home", "step", step["id"]), home[step["id"]]
        yield from _apart(("step", step["id"]), own_of(step))


def _apart(part: Part, own: dict[str, Any]) -> Iterator[tuple[Part, Any]]:
    yield ("type", *part), own.get("type")
    yield part, {key: value for key, value in own.items() if key not in ("id", "type")}


def _order(part: Part, ids: Iterable[str]) -> Iterator[tuple[Part, Any]]:
    ids = list(ids)
    for one, then in zip([BEGINNING, *ids], [*ids, END], strict=True):
        yield (*part, one), then
