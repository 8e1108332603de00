"""Orders of the same things, compared."""

from __future__ import annotations

from collections.abc import Sequence


def longest_common(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The longest common subsequence of two orders, each without repeats: what needs not move when one becomes the
    other.

    The longest rising run of places, by patience sorting: n log n, for flows of thousands of steps.
    """
    place = {item: index for index, item in enumerate(right)}
    piles: list[str] = []
    came_from: dict[str, str | None] = {}
    for item in left:
        if item not in place:
            continue
        low = _pile(piles, place, place[item])
        came_from[item] = piles[low - 1] if low else None
        piles[low : low + 1] = [item]
    result: list[str] = []
    current = piles[-1] if piles else None
    while current is not None:
        result.append(current)
        current = came_from[current]
    return result[::-1]


def _pile(piles: list[str], place: dict[str, int], value: int) -> int:
    low, high = 0, len(piles)
    while low < high:
        middle = (low + high) // 2
        if place[piles[middle]] < value:
            low = middle + 1
        else:
            high = middle
    return low
