"""One peer, measured: `python -m tests.bench.peers NAME RUNS` prints what it found as JSON; `NAME work` is a worker of it.

A figure that fails is left out, and the reason goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench.peers import database

PATIENCE = 180.0


class Workers:
    """Worker processes, each the leader of a group of its own, so that all it forks stops and goes on with it."""

    def __init__(self, name: str, count: int) -> None:
        command = [sys.executable, "-m", "tests.bench.peers", name, "work"]
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, process_group=0) for _ in range(count)
        ]

    def send(self, number: signal.Signals) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    def end(self) -> None:
        self.send(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            for process in self.processes:
                process.wait(5)
        self.send(signal.SIGKILL)
        for process in self.processes:
            process.wait()


def until(peer: Any, since: float, count: int, pause: float = 0.02) -> float:
    """Waits until so many runs have ended since then; when the last did."""
    deadline = time.time() + PATIENCE
    while (found := peer.ended(since))[0] < count:
        if time.time() > deadline:
            raise TimeoutError(f"{found[0]} of {count} runs ended within {PATIENCE:g} s")
        time.sleep(pause)
    return found[1]


def latency(peer: Any) -> dict[str, float]:
    spans = []
    for _ in range(100):
        since = time.time()
        peer.start("three", 1)
        started = time.time()
        spans.append(1000 * (until(peer, since, 1) - started))
        time.sleep(0.02)
    return percentiles("start to end", spans)


def lateness(peer: Any) -> dict[str, float]:
    file = Path(os.environ["PEER_LATENESS"])
    file.write_text("")
    since, at = time.time(), time.time() + 15
    peer.start("timer", 1000, at)
    until(peer, since, 1000, pause=0.1)
    return percentiles("timer to next step", [1000 * float(one) for one in file.read_text().split()])


def sleepers(peer: Any) -> dict[str, float]:
    since = time.time()
    peer.start("sleep", 1000)
    return {"1,000 steps awaiting 200 ms": until(peer, since, 1000) - since}


def throughput(peer: Any, workers: Workers, count: int) -> dict[str, float]:
    """A backlog that is made while the workers are held; from their going on to its end."""
    since = time.time()
    workers.send(signal.SIGSTOP)
    try:
        peer.start("three", count)
        database().execute("vacuum analyze")
    finally:
        began = time.time()
        workers.send(signal.SIGCONT)
    return {"three-step runs a second": count / (until(peer, since, count) - began)}


def percentiles(name: str, values: list[float]) -> dict[str, float]:
    values.sort()
    return {f"{name} p50": values[len(values) // 2], f"{name} p99": values[int(len(values) * 0.99)]}


def main(name: str, runs: int) -> None:
    peer = import_module(f"tests.bench.peers.{name}")
    figures: dict[str, float] = {}

    def tried(load: Any, *given: Any) -> None:
        try:
            figures.update(load(peer, *given))
        except Exception:
            print(f"{name}: {load.__name__} is left out:", file=sys.stderr)
            traceback.print_exc()

    with peer.served():
        workers = Workers(name, peer.PROCESSES)
        try:
            since = time.time()
            peer.start("three", 20)
            until(peer, since, 20)
            tried(latency)
            tried(sleepers)
            tried(lateness)
            tried(throughput, workers, runs)
        finally:
            workers.end()
    told = ", ".join(f"{package} {version(package)}" for package in peer.PACKAGES)
    print(json.dumps({"name": told, "setting": peer.SETTING, "figures": figures}))


if __name__ == "__main__":
    if sys.argv[2] == "work":
        import_module(f"tests.bench.peers.{sys.argv[1]}").work()
    else:
        main(sys.argv[1], int(sys.argv[2]))
