"""`make bench`: the engine measured on a Postgres of its own, in turn with what that Postgres can do at all.

Options: --runs N (a round's backlog), --rounds N, --workers N, --peers (what others use, measured in the same rounds),
--many N (so many runs are parked, and then due, for the last rounds; 0 leaves them out). Instead of all that:

--hosts: clusters on hosts of their own (`hosts.py`).
--history: beside ten million steps, parked runs, a backlog, and a snapshot that is held for --minutes N (`history.py`).
--growth: what a step costs as things grow, with plots (`growth.py`).
--pages: pages while the engine runs at full speed, --times N requests each (`pages.py`).

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from builder.postgres import EmbeddedPostgres
from tests.bench import beside, hosts
from tests.bench.figures import Figures, median, shown

os.environ.update(
    DJANGO_SETTINGS_MODULE="builder.settings",
    HOLDFAST_ALLOWED_PRIVATE_HOSTS="127.0.0.1",
    HOLDFAST_STEP_MODULES="tests.bench.steps",
    SECRET_KEY="a key for measurements only, and long enough to be one",
)


class Workers:
    """`manage.py qcluster` as a child process, with `count` worker processes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        told = os.environ | {"HOLDFAST_WORKERS": str(self.count)}
        self.process = subprocess.Popen([sys.executable, "manage.py", "qcluster"], stdin=subprocess.DEVNULL, env=told)

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
    arguments.add_argument("--many", type=int, default=1_000_000)
    arguments.add_argument("--peers", action="store_true")
    arguments.add_argument("--hosts", action="store_true")
    arguments.add_argument("--history", action="store_true")
    arguments.add_argument("--minutes", type=int, default=10)
    arguments.add_argument("--growth", action="store_true")
    arguments.add_argument("--pages", action="store_true")
    arguments.add_argument("--times", type=int, default=100)
    chosen = arguments.parse_args()
    if chosen.hosts:
        with own_folder() as folder:
            return hosts.measure(folder, chosen.rounds, chosen.runs, prepare, Workers)
    if chosen.pages:
        from tests.bench import pages

        with own_folder() as folder:
            return pages.measure(folder, chosen)
    with own_folder() as folder, EmbeddedPostgres(folder / "postgres", folder / "postgres.log") as postgres:
        prepare(postgres, folder, chosen.workers)
        if chosen.history:
            from tests.bench import history

            return history.measure(chosen, postgres, folder, Workers(chosen.workers))
        if chosen.growth:
            from tests.bench import growth

            return growth.measure(chosen, Workers(chosen.workers), Workers)
        measure(chosen, postgres)


@contextmanager
def own_folder() -> Iterator[Path]:
    """For the database, whose user passes through when we are root; a million runs are not left behind."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o711)
        yield Path(folder)


def prepare(postgres: EmbeddedPostgres, folder: Path, workers: int) -> None:
    """Holdfast's tables in that database, and Django in this process."""
    os.environ |= {"HOLDFAST_DATA": str(folder / "data"), "HOLDFAST_WORKERS": str(workers), "DATABASE_URL": postgres.url()}
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    connection.close()


def measure(chosen: argparse.Namespace, postgres: EmbeddedPostgres) -> None:
    from tests.bench import hooks, large, loads

    peers = [peer for peer in beside.PEERS if chosen.peers and not beside.missing(peer)]
    others: beside.Found = {}
    figures: Figures = {}
    workers = Workers(chosen.workers)

    def rounds(kind: str, named: dict[str, Callable[[], dict[str, float]]]) -> None:
        """Each load in turn, `chosen.rounds` times; figures that belong to a kind of rounds carry its name."""
        for number in range(1, chosen.rounds + 1):
            for name, load in named.items():
                print(f"round {number} of {chosen.rounds}: {kind}{name}", file=sys.stderr, flush=True)
                for figure, value in load().items():
                    figures.setdefault(kind + figure, []).append(value)

    def beside_others(peer: str) -> dict[str, float]:
        workers.stop()
        beside.measure(peer, postgres, chosen.runs, others)
        return {}

    some = {"throughput": lambda: loads.throughput(chosen.runs, workers), "latency": lambda: loads.latency(100),
            "timers": lambda: loads.lateness(1000), "idle": lambda: large.idle(20)}  # fmt: skip
    try:
        rounds("", {
            "floor": lambda: loads.floor(postgres.url()),
            **some,
            "sleepers": lambda: loads.sleepers(1000, workers),
            "memory": lambda: loads.memory(1000),
            "loop": lambda: loads.loop(chosen.runs),
            "resume early": lambda: loads.resume(10),
            "resume late": lambda: loads.resume(chosen.runs),
            "lanes": lambda: loads.lanes(100),
            "posts": lambda: hooks.posts(10, workers),
            **{beside.PEERS[peer]: partial(beside_others, peer) for peer in peers},
        })  # fmt: skip
        if chosen.many:
            print(f"making {chosen.many:,} parked runs", file=sys.stderr, flush=True)
            large.park(chosen.many, workers)
            rounds(f"{chosen.many:,} parked: ", some)
            workers.stop()
            print(f"making a backlog of {chosen.many:,} runs", file=sys.stderr, flush=True)
            version = large.backlog(chosen.many)
            rounds(f"backlog of {chosen.many:,}: ", {"throughput": lambda: large.pace(version, 10, workers)})
    finally:
        workers.stop()
    report(figures, chosen, loads.machine())
    if chosen.peers:
        beside.report(others, figures)


UNITS = {"start to end": "ms", "timer": "ms", "processor ms": "ms", "1,000 steps": "s", "resume": "ms", "parallel": "ms"}
"""By how a figure's name begins."""


def report(figures: Figures, chosen: argparse.Namespace, machine: str) -> None:
    print(f"\n{machine}; Python {platform.python_version()}; {chosen.workers} worker processes; "
          f"rounds: {chosen.rounds}, of {chosen.runs:,} runs\n")
    print("| figure | median | range | beside |\n|---|---:|---:|---:|")
    medians = {name: median(values) for name, values in figures.items()}
    for name, values in figures.items():
        plain = name.rpartition(": ")[2]
        unit = next((unit for begins, unit in UNITS.items() if plain.startswith(begins)), "")
        compared = ""
        if name == "three-step runs a second":
            compared = f"{medians[name] / medians['floor: single commits a second']:.2f} per single commit"
        elif plain != name and plain in medians:
            compared = f"{medians[name] / medians[plain]:.2f} of that without"
        print(f"| {name} | {shown(medians[name])} {unit} | {shown(min(values))} – {shown(max(values))} | {compared} |")


if __name__ == "__main__":
    main()
