"""A server as a process of its own: started and stopped by `with`, steered through its control addresses."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]


class ServerProcess:
    """`python -m MODULE --port 0 ARGUMENTS`, ready when the `with` block begins.

    The server ends when its standard input does, so none outlives a test process that was killed.
    """

    module = ""

    def __init__(self, *arguments: str):
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, again on the same port when it ran before."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", self.module, "--port", str(self.port), *self._arguments],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        line = self._process.stdout.readline()
        if not line.startswith("port "):
            raise RuntimeError(f"{self.module} did not start: {line!r}")
        self.port = int(line.split()[1])

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def wait_dead(self, seconds: float = 10) -> None:
        """Until the process has ended by itself."""
        self._process.wait(seconds)
        self.stop()

    def control(self, **settings: Any) -> None:
        """Change how it behaves; each server's module lists its settings."""
        self.ask("POST", "/_control", settings)

    def release(self) -> None:
        """Let go of everything that it holds."""
        self.ask("POST", "/_release")

    def requests(self) -> list[dict[str, Any]]:
        """What it was asked: `{"method", "path", "headers", "body"}`, in order. Header names are lower-case."""
        return self.ask("GET", "/_requests")

    def wait_requests(self, count: int, seconds: float = 20) -> list[dict[str, Any]]:
        """The requests, once there are so many."""
        ends = time.monotonic() + seconds
        while len(found := self.requests()) < count:
            if time.monotonic() > ends:
                raise TimeoutError(f"{len(found)} of {count} requests came within {seconds} s.")
            time.sleep(0.02)
        return found

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")
