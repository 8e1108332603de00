"""Procrastinate: a queue of jobs; a run is three of them, each of which makes the next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import datetime, timezone

from procrastinate import App, PsycopgConnector

from tests.bench.peers import URL, ended_by, late

PACKAGES = ("procrastinate",)
SETTING = "2 processes, 100 jobs at a time and 20 connections each, notifications and a poll each 20 ms; three chained jobs"
PROCESSES = 2
app = App(connector=PsycopgConnector(conninfo=URL, min_size=4, max_size=20))


@app.task(name="three")
async def three(n: int, left: int, at: float) -> None:
    if left:
        await app.tasks["three"].defer_async(n=n, left=left - 1, at=at)


@app.task(name="sleep")
async def sleep(n: int, left: int, at: float) -> None:
    await asyncio.sleep(0.2)


@app.task(name="timer")
async def timer(n: int, left: int, at: float) -> None:
    late(at)


@contextlib.contextmanager
def served() -> Iterator[None]:
    with app.open():
        app.schema_manager.apply_schema()
        yield


def work() -> None:
    app.run_worker(concurrency=100, fetch_job_polling_interval=0.02)


def start(kind: str, count: int, at: float = 0) -> None:
    when = {"schedule_at": datetime.fromtimestamp(at, timezone.utc)} if at else {}
    left = 2 if kind == "three" else 0
    app.configure_task(kind, **when).batch_defer(*({"n": n, "left": left, "at": at} for n in range(count)))


def ended(since: float) -> tuple[int, float]:
    ends = """select at from procrastinate_events e join procrastinate_jobs j on j.id = e.job_id
              where e.type = 'succeeded' and at > to_timestamp(%(since)s) and (j.args->>'left')::int = 0"""
    return ended_by(ends, since)
