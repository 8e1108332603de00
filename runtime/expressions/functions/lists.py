"""Lists and maps."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from .. import operators
from ..errors import EvaluationError
from ..fuel import Evaluation
from ..values import NUMBERS, Duration, Timestamp, in_words, key_value
from .registry import function


@function("size", list)
@function("list.size", list)
@function("size", dict)
@function("map.size", dict)
def size(run: Evaluation, value: list | dict) -> int:
    return len(value)


@function("list.sum", list)
def total(run: Evaluation, items: list) -> Any:
    """Of numbers (0 for none) or durations."""
    run.charge(len(items))
    result: Any = items[0] if items else 0
    if items and type(result) not in NUMBERS and type(result) is not Duration:
        raise EvaluationError("type", f"sum() needs a list of numbers, and this one holds {in_words(result)}.")
    for item in items[1:]:
        result = operators.arithmetic(run, "+", result, item)
    return result


@function("list.average", list)
def average(run: Evaluation, items: list) -> float:
    """Of numbers."""
    total_of = total(run, _some(items, "average"))
    if type(total_of) is Duration:
        raise EvaluationError("type", "average() needs a list of numbers, and this one holds a length of time.")
    return float(total_of) / len(items)


@function("list.min", list)
def smallest(run: Evaluation, items: list) -> Any:
    return extreme(run, items, "<", "min")


@function("list.max", list)
def largest(run: Evaluation, items: list) -> Any:
    return extreme(run, items, ">", "max")


def extreme(run: Evaluation, items: list, relation: str, name: str) -> Any:
    """The first item that no other one beats by `relation`."""
    result = _some(items, name)[0]
    run.charge(len(items))
    for item in items:
        if operators.ordered(run, relation, item, result):
            result = item
    return result


@function("list.first", list)
def first(run: Evaluation, items: list) -> Any:
    return _some(items, "first")[0]


@function("list.last", list)
def last(run: Evaluation, items: list) -> Any:
    return _some(items, "last")[-1]


def _some(items: list, name: str) -> list:
    if not items:
        raise EvaluationError("missing", f"{name}() of an empty list. Check `size(list) > 0` first.")
    return items


@function("list.slice", list, int, int)
def cut(run: Evaluation, items: list, start: int, end: int) -> list:
    if not 0 <= start <= end <= len(items):
        raise EvaluationError("value", f"The range from {start} to {end} is not inside the list of {len(items)} items.")
    run.allocate(16 + 8 * (end - start))
    return items[start:end]


@function("list.reverse", list)
def reverse(run: Evaluation, items: list) -> list:
    run.allocate(16 + 8 * len(items))
    return items[::-1]


@function("list.sort", list)
def sort(run: Evaluation, items: list) -> list:
    """Smallest first; all items must compare with each other. Equal ones keep their order."""
    return [items[place] for place in order(run, items)]


def order(run: Evaluation, keys: list) -> list[int]:
    """The places of the keys, of the smallest first."""
    rounds, places = len(keys).bit_length(), range(len(keys))
    run.allocate(16 + 8 * len(keys))
    kinds = {type(key) for key in keys}
    if len(kinds) == 1 and kinds <= {int, str, Timestamp, Duration}:
        run.charge(len(keys) // 4 * rounds)
        if kinds == {str}:
            run.charge(sum(map(len, keys)) // 256 * rounds)
        return sorted(places, key=keys.__getitem__)
    run.charge(len(keys) * rounds)

    def compare(a: int, b: int) -> int:
        if operators.ordered(run, "<", keys[a], keys[b]):
            return -1
        return 1 if operators.ordered(run, ">", keys[a], keys[b]) else 0

    return sorted(places, key=cmp_to_key(compare))


@function("list.distinct", list)
def distinct(run: Evaluation, items: list) -> list:
    """Without the items that equal an earlier one."""
    run.charge(len(items))
    run.allocate(16 + 24 * len(items))
    texts: set[str] = set()
    numbers: set[int | float] = set()
    others: list = []
    return [item for item in items if _is_new(run, item, texts, numbers, others)]


def _is_new(run: Evaluation, item: Any, texts: set, numbers: set, others: list) -> bool:
    kind = type(item)
    if kind is float and item != item:  # NaN equals nothing, but a set would find the same object
        return True
    if kind is not str and kind not in NUMBERS:
        if operators.contained(run, item, others):
            return False
        others.append(item)
        return True
    seen = texts if kind is str else numbers
    if item in seen:
        return False
    seen.add(item)
    return True


@function("list.flatten", list)
@function("list.flatten", list, int)
def flatten(run: Evaluation, items: list, depth: int = 1) -> list:
    """Lists inside the list are replaced by their items, `depth` levels deep."""
    if depth < 0:
        raise EvaluationError("value", "flatten() needs a depth of 0 or more.")
    for _ in range(min(depth, 64)):
        if not any(type(item) is list for item in items):
            break
        flat: list = []
        for item in items:
            inner = item if type(item) is list else [item]
            run.charge(1 + len(inner) // 8)
            run.allocate(8 * len(inner))
            flat.extend(inner)
        items = flat
    return items


@function("range", int)
def numbers(run: Evaluation, count: int) -> list[int]:
    """0, 1, 2 ... count - 1."""
    if count < 0:
        raise EvaluationError("value", "range() needs a number of 0 or more.")
    run.charge(count)
    run.allocate(16 + 8 * count)
    return list(range(count))


@function("map.keys", dict)
def keys(run: Evaluation, entries: dict) -> list:
    run.allocate(16 + 8 * len(entries))
    return [key_value(key) for key in entries]


@function("map.values", dict)
def values(run: Evaluation, entries: dict) -> list:
    run.allocate(16 + 8 * len(entries))
    return list(entries.values())


@function("map.merge", dict, dict)
def merge(run: Evaluation, entries: dict, others: dict) -> dict:
    """One map with the entries of both; where both have a key, the second's."""
    run.charge((len(entries) + len(others)) // 8)
    run.allocate(64 + 96 * (len(entries) + len(others)))
    return {**entries, **others}
