"""`make bench`: the engine measured on a Postgres of its own, in turn with what that Postgres can do at all.

Options: --runs N (a round's backlog), --rounds N, --workers N, --peers (what others use, measured in the same rounds).
Prints a Markdown table: medians of the rounds, and the range where rounds differ.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from builder.postgres import EmbeddedPostgres
from tests.bench import beside
from tests.bench.figures import Figures, median, shown

os.environ.update(
    DJANGO_SETTINGS_MODULE="builder.settings",
    HOLDFAST_STEP_MODULES="tests.bench.steps",
    SECRET_KEY="a key for measurements only, and long enough to be one",
)


class Workers:
    """`manage.py qcluster` as a child process, with `count` worker processes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, "manage.py", "qcluster"], stdin=subprocess.DEVNULL)

    def stop(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)
        self.process = None


def main() -> None:
    arguments = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    arguments.add_argument("--runs", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--peers", action="store_true")
    chosen = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    os.environ |= {"HOLDFAST_DATA": str(folder / "data"), "HOLDFAST_WORKERS": str(chosen.workers)}

    with EmbeddedPostgres(folder / "postgres", folder / "postgres.log") as postgres:
        os.environ["DATABASE_URL"] = postgres.url()
        measure(chosen, postgres)


def measure(chosen: argparse.Namespace, postgres: EmbeddedPostgres) -> None:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    from tests.bench import loads

    peers = [peer for peer in beside.PEERS if chosen.peers and not beside.missing(peer)]
    others: beside.Found = {}
    call_command("migrate", verbosity=0)
    connection.close()
    figures: Figures = {}
    workers = Workers(chosen.workers)
    try:
        for number in range(1, chosen.rounds + 1):
            for name, load in {
                "floor": lambda: loads.floor(postgres.url()),
                "throughput": lambda: loads.throughput(chosen.runs, workers),
                "latency": lambda: loads.latency(100),
                "timers": lambda: loads.lateness(1000),
                "sleepers": lambda: loads.sleepers(1000, workers),
                "loop": lambda: loads.loop(2000),
            }.items():
                print(f"round {number} of {chosen.rounds}: {name}", file=sys.stderr, flush=True)
                for figure, value in load().items():
                    figures.setdefault(figure, []).append(value)
            workers.stop()
            for peer in peers:
                print(f"round {number} of {chosen.rounds}: {beside.PEERS[peer]}", file=sys.stderr, flush=True)
                beside.measure(peer, postgres, chosen.runs, others)
    finally:
        workers.stop()
    report(figures, chosen, loads.machine())
    if chosen.peers:
        beside.report(others, figures)


UNITS = {"start to end p50": "ms", "start to end p99": "ms", "timer lateness p50": "ms", "timer lateness p99": "ms",
         "timer to next step p50": "ms", "timer to next step p99": "ms", "processor ms a run": "ms",
         "1,000 steps awaiting 200 ms": "s"}


def report(figures: Figures, chosen: argparse.Namespace, machine: str) -> None:
    print(f"\n{machine}; Python {platform.python_version()}; {chosen.workers} worker processes; "
          f"rounds: {chosen.rounds}, of {chosen.runs:,} runs\n")
    print("| figure | median | range | beside the floor |\n|---|---:|---:|---:|")
    medians = {name: median(values) for name, values in figures.items()}
    for name, values in figures.items():
        unit = UNITS.get(name, "")
        beside = ""
        if name == "three-step runs a second":
            beside = f"{medians[name] / medians['floor: single commits a second']:.2f} per single commit"
        print(f"| {name} | {shown(medians[name])} {unit} | {shown(min(values))} – {shown(max(values))} | {beside} |")


if __name__ == "__main__":
    main()
