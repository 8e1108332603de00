"""pgqueuer: a queue of jobs; a run is three of them, each of which makes the next."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries

from tests.bench.peers import PAD, URL, ended_by, late

PACKAGES = ("pgqueuer",)
SETTING = "2 processes, batches of 100 jobs, all tables logged, uvloop; three chained jobs"
PROCESSES = 2
runner = asyncio.Runner()


@contextlib.contextmanager
def served() -> Iterator[None]:
    runner.run(queries().install())
    yield


@cache
def queries() -> Queries:
    return Queries(AsyncpgDriver(runner.run(asyncpg.connect(URL))))


async def worker() -> None:
    pool = await asyncpg.create_pool(URL, min_size=4, max_size=10)
    queue = PgQueuer(AsyncpgPoolDriver(pool))

    def step(name: str, following: str) -> None:
        @queue.entrypoint(name)
        async def one(job: Any) -> None:
            await queue.qm.queries.enqueue(following, job.payload)

    step("three", "second")
    step("second", "third")

    @queue.entrypoint("third")
    async def third(job: Any) -> None:
        pass

    @queue.entrypoint("sleep")
    async def sleep(job: Any) -> None:
        await asyncio.sleep(0.2)

    @queue.entrypoint("timer")
    async def timer(job: Any) -> None:
        late(json.loads(job.payload)["at"])

    await queue.run(batch_size=100, dequeue_timeout=timedelta(seconds=1))


def work() -> None:
    uvloop.run(worker())


def start(kind: str, count: int, at: float = 0) -> None:
    after = timedelta(seconds=at - time.time()) if at else None
    payloads = [json.dumps({"step": n, "at": at, "pad": PAD}).encode() for n in range(count)]
    runner.run(queries().enqueue([kind] * count, payloads, [0] * count, [after] * count))


def ended(since: float) -> tuple[int, float]:
    ends = """select created from pgqueuer_log where status = 'successful' and created > to_timestamp(%(since)s)
              and entrypoint in ('third', 'sleep', 'timer')"""
    return ended_by(ends, since)
