"""`make bench ARGS=--growth`: what a step costs against the length of its run, the size of its definition, the number of
stored runs, the number of worker processes, and the size of its output. Prints tables; draws them into `plots/` (`plot.py`, in the environment
`.bench`).

`--runs` sets how many steps each point is measured on (three for each run), `--many` how many stored runs there are at the end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runtime.models import Attempt, LogLine, RunSearch, StepResult, Version
from tests.bench import loads
from tests.bench.beside import PYTHON
from tests.bench.figures import median, shown

PLOTS = Path(__file__).parent / "plots"
LENGTHS = (10, 100, 1000, 10_000)
SIZES = (10, 20, 50, 100, 200, 500)
WORKERS = (1, 2, 4)
PAYLOADS = (100, 1000, 10_000, 100_000, 200_000, 400_000, 1_000_000)
"""Bytes; above 256 KiB an output is a row of `blob`."""
MOST_BYTES = 300_000_000
"""That all outputs of a point may take."""
AT_ONCE = 10
"""Runs that go on together at least: one alone waits for its commits."""
Points = dict[str, dict[int, list[dict[str, float]]]]
"""What grows -> how large it was -> of each round, milliseconds a step by the clock, and of processor."""


def measure(chosen: argparse.Namespace, workers: Any, workers_of: type) -> None:
    """`workers_of(n)` makes a cluster of n worker processes; `workers` is that of the other figures."""
    points: Points = {}
    steps = 3 * chosen.runs
    for number in range(1, chosen.rounds + 1):
        for what, size, found in once(steps, workers, workers_of):
            say(f"round {number} of {chosen.rounds}: {what}: {size:,}: {found['processor']:.3f} ms of processor a step")
            points.setdefault(what, {}).setdefault(size, []).append(found)
    for size, rounds in stored(chosen, workers):
        points.setdefault("stored runs", {})[size] = rounds
    report(points, loads.machine(), chosen)
    draw(points, loads.machine())


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def once(steps: int, workers: Any, workers_of: type) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Each point once: what grows, how large it is, and what a step costs."""
    for length in LENGTHS:
        items = {"items": list(range(length))}
        yield "steps of a run", length, cost(looped(), length, runs_of(length, steps), workers, **items)
    for size in SIZES:
        yield "steps of a definition", size, cost(in_a_row(size), size, runs_of(size, steps), workers)
    for count in WORKERS:
        yield "worker processes", count, cost(in_a_row(3), 3, steps // 3, workers_of(count))
    for size in PAYLOADS:
        runs = max(AT_ONCE, min(steps, MOST_BYTES // size) // 3)
        yield "bytes of an output", size, cost(in_a_row(3, pad=size), 3, runs, workers)


def runs_of(length: int, steps: int) -> int:
    return max(AT_ONCE, steps // length)


def looped() -> Version:
    """Iterations of one step, five at a time."""
    config = {"items": "trigger.body.items", "concurrency": 5}
    return loads.flow("Growing", {"id": "each", "type": "loop", "config": config, "steps": [loads.step("one")]})


def in_a_row(size: int, **config: Any) -> Version:
    """So many steps, each of which reads of the one before."""
    first = loads.step("step_0", config={"value": "{{ trigger.body.n }}", **config})
    return loads.flow("Growing", first, *(
        loads.step(f"step_{n}", config={"value": f"{{{{ steps.step_{n - 1}.output.step }}}}", **config}) for n in range(1, size)
    ))  # fmt: skip


def cost(version: Version, length: int, runs: int, workers: Any, **body: Any) -> dict[str, float]:
    """Milliseconds that a step takes, of `runs` runs of `length` steps."""
    try:
        seconds, spent = loads.worked_off(version, loads.begin(version, runs, **body), workers)
    finally:
        workers.stop()
    done = loads.scalar("select count(*) from run where version_id = %s and state = 'succeeded'", version.pk)
    assert done == runs, f"{runs - done} of {runs} runs did not succeed"
    return {"clock": 1000 * seconds / (runs * length), "processor": 1000 * spent / (runs * length)}


def stored(chosen: argparse.Namespace, workers: Any) -> Iterator[tuple[int, list[dict[str, float]]]]:
    """With what is there from the other points first, then with ten times as many finished runs, until there are `--many`."""
    from tests.bench import large

    size = loads.scalar("select count(*) from run")
    while True:
        rounds = [cost(in_a_row(3), 3, chosen.runs, workers) for _ in range(chosen.rounds)]
        say(f"stored runs: {size:,}: {median([one['processor'] for one in rounds]):.3f} ms of processor a step")
        yield size, rounds
        if size >= chosen.many:
            return
        wanted = min(chosen.many, 10 ** len(str(size)))
        pattern = loads.scalar("select max(id) from run where state = 'succeeded'")
        large.copies(pattern, wanted - loads.scalar("select count(*) from run"), StepResult, Attempt, LogLine, RunSearch)
        size = wanted


def report(points: Points, machine: str, chosen: argparse.Namespace) -> None:
    print(f"\n{machine}; {chosen.workers} worker processes; rounds: {chosen.rounds}, of {3 * chosen.runs:,} steps\n")
    print("| | | ms a step, of processor | range | ms a step, by the clock |\n|---|---:|---:|---:|---:|")
    for what, sizes in points.items():
        for size, rounds in sizes.items():
            spent, took = ([one[name] for one in rounds] for name in ("processor", "clock"))
            middle, least, most = (shown(of(spent)) for of in (median, min, max))
            print(f"| {what} | {size:,} | {middle} | {least} – {most} | {shown(median(took))} |")


def draw(points: Points, machine: str) -> None:
    """The figures as JSON beside the plots, which another Python draws."""
    PLOTS.mkdir(exist_ok=True)
    figures = PLOTS / "growth.json"
    figures.write_text(json.dumps({"machine": machine, "points": points}, indent=1) + "\n")
    if not PYTHON.exists():
        return say(f"No plots are drawn: {PYTHON} is not there; `make bench-packages` installs it.")
    subprocess.run([str(PYTHON), "tests/bench/plot.py", str(figures)], check=True)
