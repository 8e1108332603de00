"""What a user could take instead of Holdfast, each in a small module of its own, all with the same names in them:

    PACKAGES            whose versions are told
    SETTING             how it is set up, for the table's reader
    PROCESSES           worker processes
    served()            a context in which its tables, or its own server, are there
    work()              a worker process; never returns
    start(kind, count, at)  starts runs that are durable when it returns. Kinds: "three" steps, a "sleep" of 200 ms in a step,
                        and a "timer" that waits until `at` and then calls `late(at)`
    ended(since)        how many runs have ended since then, and when the last did (seconds since 1970)

They see nothing of Holdfast but the database that the variable PEER_DATABASE names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import psycopg

URL = os.environ.get("PEER_DATABASE", "")
PAD = "x" * 60
"""What each step's result carries, as Holdfast's does in its own measurement."""


def late(at: float) -> None:
    """Called by the code after a timer: how late it is goes to the file that the measuring process reads."""
    with open(os.environ["PEER_LATENESS"], "a") as file:
        file.write(f"{time.time() - at}\n")


@cache
def database() -> psycopg.Connection:
    return psycopg.connect(URL, autocommit=True)


def ended_by(sql: str, since: float) -> tuple[int, float]:
    """The answer of `ended` from a query for the ends (timestamps) after %(since)s."""
    query = f"select count(*), coalesce(extract(epoch from max(at)), 0)::float8 from ({sql}) ends(at)"
    return database().execute(query, {"since": since}).fetchone()


def each(action: Callable[[int], Any], numbers: Iterable[int]) -> None:
    """Where a peer has no start of many: from eight threads."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(action, numbers))
