"""One line for each stage of a start: its name at once, what came of it and how long it took when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDTH = 22


@contextmanager
def stage(name: str) -> Iterator[Callable[[str], None]]:
    """Yields a function that takes the outcome, in a few words."""
    outcome = ["done"]
    started = time.monotonic()
    print(f"  {name + ' ':.<{WIDTH}} ", end="", flush=True)
    try:
        yield lambda words: outcome.__setitem__(0, words)
    except BaseException:
        print("stopped", flush=True)
        raise
    seconds = time.monotonic() - started
    print(outcome[0] + (f" ({seconds:.1f} s)" if seconds >= 0.1 else ""), flush=True)
