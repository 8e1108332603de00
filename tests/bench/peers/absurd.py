"""Absurd: durable tasks as functions of Postgres. Its command's package brings the tables."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from absurd_sdk import Absurd, AsyncAbsurd
from absurdctl import BUNDLED_SCHEMA_SQL

from tests.bench.peers import PAD, URL, database, ended_by, late

PACKAGES = ("absurd-sdk",)
SETTING = "2 processes, 4 connections each with 125 tasks at a time, poll 10 ms"
PROCESSES = 2


@contextlib.contextmanager
def served() -> Iterator[None]:
    database().execute(BUNDLED_SCHEMA_SQL)
    database().execute("select absurd.create_queue('bench')")
    yield


async def three(params: Any, ctx: Any) -> None:
    async def step() -> dict[str, Any]:
        return {"step": params, "pad": PAD}

    for name in "abc":
        await ctx.step(name, step)


async def sleep(params: Any, ctx: Any) -> None:
    async def step() -> None:
        await asyncio.sleep(0.2)

    await ctx.step("a", step)


async def timer(at: float, ctx: Any) -> None:
    await ctx.sleep_until("timer", at)
    late(at)


def work() -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*(one().start_worker(concurrency=125, poll_interval=0.01) for _ in range(4)))

    def one() -> AsyncAbsurd:
        app = AsyncAbsurd(URL, queue_name="bench")
        for task in (three, sleep, timer):
            app.register_task(task.__name__)(task)
        return app

    asyncio.run(all_of_them())


def start(kind: str, count: int, at: float = 0) -> None:
    app = Absurd(database(), queue_name="bench")
    with database().transaction():
        for n in range(count):
            app.spawn(kind, at or n, queue="bench")


def ended(since: float) -> tuple[int, float]:
    return ended_by("select completed_at from absurd.r_bench where completed_at > to_timestamp(%(since)s)", since)
