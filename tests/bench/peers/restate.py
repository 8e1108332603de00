"""Restate: a server with a store of its own, which calls the steps' process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import restate

from tests.bench.peers import PAD, each, late

PACKAGES = ("restate-sdk",)
SETTING = "its own server and store beside Postgres, 4 partitions; 2 service processes"
PROCESSES = 1
SERVER = Path(".bench/node/node_modules/.bin/restate-server")
service = restate.Service("bench")


def step(n: Any) -> dict[str, Any]:
    return {"step": n, "pad": PAD}


@service.handler()
async def three(ctx: restate.Context, given: dict[str, Any]) -> None:
    for name in "abc":
        await ctx.run_typed(name, step, n=given["n"])


async def awaiting() -> None:
    await asyncio.sleep(0.2)


@service.handler()
async def sleep(ctx: restate.Context, given: dict[str, Any]) -> None:
    await ctx.run_typed("a", awaiting)


@service.handler()
async def timer(ctx: restate.Context, given: dict[str, Any]) -> None:
    await ctx.sleep(timedelta(seconds=given["at"] - time.time()))
    late(given["at"])


app = restate.app(services=[service])
client = httpx.Client(timeout=60)


def port(name: str) -> int:
    """A port that was free when it was first asked for; the workers inherit it."""
    if f"PEER_{name}" not in os.environ:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            os.environ[f"PEER_{name}"] = str(found.getsockname()[1])
    return int(os.environ[f"PEER_{name}"])


@contextlib.contextmanager
def served() -> Iterator[None]:
    port("SERVICE")
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-restate-") as folder:
        environment = os.environ | {
            "RESTATE_BASE_DIR": folder, "RESTATE_BIND_ADDRESS": f"127.0.0.1:{port('NODE')}", "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{port('INGRESS')}", "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{port('ADMIN')}", "RESTATE_ADMIN__DISABLE_WEB_UI": "true",
            "RESTATE_DEFAULT_NUM_PARTITIONS": "4", "RESTATE_LOG_FILTER": "error,octocrab=off",
        }  # fmt: skip
        server = subprocess.Popen([SERVER.absolute(), "--no-logo"], env=environment, stdout=2)
        try:
            yield
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def work() -> None:
    from hypercorn.config import Config
    from hypercorn.run import run

    config = Config()
    config.loglevel = "ERROR"
    config.bind, config.workers, config.application_path = [f"127.0.0.1:{port('SERVICE')}"], 2, f"{__name__}:app"
    run(config)


def registered(deadline: float) -> None:
    """Tells the server where the service is, once both are up."""
    while "PEER_REGISTERED" not in os.environ:
        try:
            uri = {"uri": f"http://127.0.0.1:{port('SERVICE')}"}
            client.post(f"http://127.0.0.1:{port('ADMIN')}/deployments", json=uri).raise_for_status()
            os.environ["PEER_REGISTERED"] = "1"
        except httpx.HTTPError:
            if time.time() > deadline:
                raise
            time.sleep(0.2)


def start(kind: str, count: int, at: float = 0) -> None:
    registered(time.time() + 60)
    address = f"http://127.0.0.1:{port('INGRESS')}/bench/{kind}/send"
    each(lambda n: client.post(address, json={"n": n, "at": at}).raise_for_status(), range(count))


def ended(since: float) -> tuple[int, float]:
    sql = f"""select count(*) as n, max(completed_at) as at from sys_invocation
              where status = 'completed' and completed_at > to_timestamp_millis({int(since * 1000)})"""
    answer = client.post(f"http://127.0.0.1:{port('ADMIN')}/query", json={"query": sql}, headers={"Accept": "application/json"})
    row = answer.raise_for_status().json()["rows"][0]
    return row["n"], datetime.fromisoformat(row["at"]).timestamp() if row["n"] else 0.0
