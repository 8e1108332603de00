"""Holdfast as `make up` starts it, on a folder and a port of its own: the database, the web server and the workers are
real processes, told apart from the test by nothing but loopback.

    with Holdfast(folder, EMAIL_URL=smtp.url) as holdfast:
        page.goto(holdfast.url)
        holdfast.kill_workers()
        holdfast.advance(days=2)
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil
import psycopg

ROOT = Path(__file__).resolve().parents[2]
ADMIN, PASSWORD = "ines", "a long password for the test"
READY_SECONDS = 120  # on a machine that does much else; nothing waits that long when it works
T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str, seconds: float = 180) -> T:
    """The first value that is true. AssertionError after so many seconds."""
    ends = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < ends, f"not within {seconds} s: {what}"
        time.sleep(0.05)
    return value


class Holdfast:
    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.log = folder / "up.log"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.env = {
            "PATH": os.environ["PATH"],
            "PORT": str(port),
            "HOLDFAST_DATA": str(folder),
            "HOLDFAST_ADMIN": ADMIN,
            "HOLDFAST_ADMIN_PASSWORD": PASSWORD,
            "HOLDFAST_ADMIN_EMAIL": "ines@example.com",
            "HOLDFAST_WORKERS": "2",
            "HOLDFAST_WEB_PROCESSES": "1",
            "HOLDFAST_LEASE_SECONDS": "2",
            "HOLDFAST_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
            **variables,
        }
        self.moved = timedelta()

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"], cwd=ROOT, env=self.env, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            eventually(self._ready, "Holdfast is ready", READY_SECONDS)
        except BaseException:
            self.__exit__()
            raise AssertionError(f"Holdfast did not start:\n{self.said()}") from None
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            for process in [self.process, *psutil.Process(self.process.pid).children(recursive=True)]:
                process.kill()

    def _ready(self) -> bool:
        assert self.process.poll() is None, "it ended"
        return "Started in" in self.said()

    def said(self) -> str:
        """What its processes have printed."""
        return self.log.read_text(errors="replace")

    def sql(self, query: str, *parameters: Any) -> list[tuple]:
        with psycopg.connect((self.folder / "database_url").read_text(), autocommit=True) as connection:
            cursor = connection.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    def kill_workers(self) -> list[int]:
        """SIGKILL to every worker process that beats. Gives their pids; others come in their place by themselves."""
        pids = [pid for (pid,) in self.sql("select pid from worker where ended_at is null") if psutil.pid_exists(pid)]
        assert pids, "no worker runs"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return pids

    def advance(self, **how_far: float) -> None:
        """Move business time, at once and for every process: `advance(days=2)`."""
        self.moved += timedelta(**how_far)
        microseconds = self.moved // timedelta(microseconds=1)
        self.sql(
            f"""create or replace function holdfast_now() returns timestamptz language sql volatile parallel safe
                as $$ select clock_timestamp() + interval '{microseconds} microseconds' $$"""
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
