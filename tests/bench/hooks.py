"""Webhook posts accepted a second, beside a bare Django view that does one insert: one web process each, in turn."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from typing import Any

from django.db import connection

from runtime.models import Team, Trigger, Version, Workflow
from runtime.publish import publish
from tests.bench import loads

CONNECTIONS = 6
"""Fewer than the server has threads, which else tells of each request that waits for one."""
BODY = b'{"id": 7, "email": "priya@example.com", "company": "Halden Robotics"}'


def posts(seconds: float, workers: Any) -> dict[str, float]:
    """The workers are held back meanwhile, and do afterwards what came in."""
    version = hooked()
    workers.stop()
    token = Trigger.objects.get(workflow=version.workflow).token
    with connection.cursor() as cursor:
        cursor.execute("create table if not exists bench_posted (id bigint generated always as identity primary key, body json)")
    accepted = served(["manage.py", "serve"], f"/hooks/{token}/", seconds)
    bare = served(["-m", "tests.bench.bare"], "/", seconds)
    workers.start()
    loads.until_done(version)
    return {"webhook posts accepted a second": accepted, "a bare view's posts a second": bare,
            "posts accepted for each of a bare view": accepted / bare}


def hooked() -> Version:
    workflow = Workflow.objects.create(team=Team.objects.get(name="Bench"), name="Hooked")
    triggers = [{"id": "hook", "type": "webhook", "name": "Hook", "config": {}}]
    steps = [{"id": "set", "type": "set", "config": {"values": {"n": 1}}}]
    return publish(workflow, {"format": 1, "name": "Hooked", "triggers": triggers, "steps": steps})


def served(command: list[str], path: str, seconds: float) -> float:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    told = {"PORT": str(port), "HOLDFAST_HOOKS_PER_MINUTE": "6000000", "PYTHONWARNINGS": "ignore"}  # counted, and never refused
    process = subprocess.Popen([sys.executable, *command], env=os.environ | told)
    try:
        until_it_listens(port, process)
        asyncio.run(load(port, path, 1))  # the first requests import and compile
        return asyncio.run(load(port, path, seconds))
    finally:
        process.terminate()
        process.wait()


def until_it_listens(port: int, process: subprocess.Popen) -> None:
    began = time.monotonic()
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() - began > loads.PATIENCE:
                raise
            time.sleep(0.1)


async def load(port: int, path: str, seconds: float) -> float:
    """Accepted a second, over connections that are kept."""
    ends = time.monotonic() + seconds
    counts = await asyncio.gather(*(one(port, path, ends) for _ in range(CONNECTIONS)))
    return sum(counts) / seconds


async def one(port: int, path: str, ends: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    count = 0
    while time.monotonic() < ends:
        writer.write(head.encode() + BODY)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 202"), answer
        lengths = [line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await reader.readexactly(int(lengths[0].split(b":")[1]))
        count += 1
    writer.close()
    return count
