"""DBOS: durable functions as a library."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from dbos import DBOS, DBOSClient

from tests.bench.peers import PAD, URL, each, ended_by, late

PACKAGES = ("dbos",)
SETTING = "2 processes, coroutines, a queue polled each 10 ms, 20 connections each"
PROCESSES = 2
ADDRESS = URL.replace("postgresql:", "postgresql+psycopg:")


@DBOS.step()
async def step(n: Any) -> dict[str, Any]:
    return {"step": n, "pad": PAD}


@DBOS.workflow()
async def three(n: int, at: float) -> None:
    for _ in "abc":
        await step(n)


@DBOS.step()
async def awaiting() -> None:
    await asyncio.sleep(0.2)


@DBOS.workflow()
async def sleep(n: int, at: float) -> None:
    await awaiting()


@DBOS.workflow()
async def timer(n: int, at: float) -> None:
    await DBOS.sleep_async(at - time.time())
    late(at)


def launched() -> None:
    DBOS(config={"name": "bench", "system_database_url": ADDRESS, "executor_id": str(os.getpid()), "log_level": "ERROR",
                 "sys_db_pool_size": 20})
    DBOS.launch()
    DBOS.register_queue("bench", polling_interval_sec=0.01)


@contextlib.contextmanager
def served() -> Iterator[None]:
    launched()
    DBOS.destroy()
    yield


def work() -> None:
    launched()
    threading.Event().wait()


@cache
def client() -> DBOSClient:
    return DBOSClient(system_database_url=ADDRESS)


def start(kind: str, count: int, at: float = 0) -> None:
    each(lambda n: client().enqueue({"queue_name": "bench", "workflow_name": kind}, n, at), range(count))


def ended(since: float) -> tuple[int, float]:
    ends = "select to_timestamp(completed_at / 1000.0) from dbos.workflow_status where completed_at > %(since)s * 1000"
    return ended_by(ends, since)
