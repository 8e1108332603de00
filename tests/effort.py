"""What something costs the processor, whatever the processor: a bound in seconds of a fixed pace holds on machines of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

TURNS, NOMINAL = 200_000, 0.010
"""At the fixed pace a loop of so many additions takes so many seconds."""


def seconds(act: Callable[[], Any], tries: int = 1) -> float:
    """Of processor time at the fixed pace, the least of so many tries. The pace of this machine is measured beside each, for it
    is not the same from one second to the next where others work too."""
    return min(_took(act) * NOMINAL / _took(_turn) for _ in range(tries))


def _took(act: Callable[[], Any]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def _turn() -> int:
    turns = 0
    for turn in range(TURNS):
        turns += turn
    return turns
