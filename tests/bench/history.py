"""`make bench ARGS=--history`: the loads beside ten million finished steps, a million parked runs, a backlog of a million, and
while a snapshot is held open elsewhere, each beside the empty database of the same run.

`--many` is the number of runs of each of the three, `--minutes` how long the snapshot is held; 0 leaves it out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from builder.postgres import EmbeddedPostgres
from tests.bench import large, loads
from tests.bench.figures import Figures, median, shown

PACE = 10.0
"""Seconds for which a backlog's pace is looked at."""
ALONE = 150_000
"""Runs of a backlog in an empty database: more than anybody works off meanwhile."""
WITHIN = 60.0
"""A held snapshot is looked at minute by minute."""
PER_SECOND = "three-step runs a second"
EMPTY = "empty"


def measure(chosen: argparse.Namespace, postgres: EmbeddedPostgres, folder: Path, workers: Any) -> None:
    """Prints the figures of each stage beside those of the empty database, then the minutes of the snapshot."""
    stages: dict[str, Figures] = {}

    def rounds(stage: str, named: dict[str, Callable[[], dict[str, float]]]) -> None:
        for number in range(1, chosen.rounds + 1):
            for name, load in named.items():
                say(f"round {number} of {chosen.rounds}: {stage}: {name}")
                for figure, value in load().items():
                    say(f"{figure}: {shown(value)}")
                    stages.setdefault(stage, {}).setdefault(figure, []).append(value)

    def usual() -> dict[str, Callable[[], dict[str, float]]]:
        return {"throughput": lambda: loads.throughput(chosen.runs, workers), "latency": lambda: loads.latency(100),
                "timers": lambda: loads.lateness(1000)}  # fmt: skip

    try:
        rounds(EMPTY, {"a backlog's pace": lambda: from_empty(ALONE, workers), **usual()})
        filled = fill(folder, chosen.many)
        rounds(filled, usual())
        say(f"making {chosen.many:,} parked runs")
        large.park(chosen.many, workers)
        rounds(f"… and {chosen.many:,} parked runs", usual())
        workers.stop()
        say(f"making a backlog of {chosen.many:,} runs")
        version = large.backlog(chosen.many)
        rounds(f"… and a backlog of {chosen.many:,} runs", {"pace": lambda: of_backlog(version, workers)})
        told = held_long(postgres.url(), version, chosen.minutes, stages, workers) if chosen.minutes else {}
    finally:
        workers.stop()
    report(stages, loads.machine(), chosen)
    if told:
        report_snapshot(told)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def from_empty(count: int, workers: Any) -> dict[str, float]:
    """The pace of a backlog of so many in a database in which there is nothing else, which is empty again afterwards."""
    workers.stop()
    found = of_backlog(large.backlog(count), workers)
    with connection.cursor() as cursor:
        cursor.execute("alter table run disable trigger run_needed")
        cursor.execute("truncate run, dispatch, step_result, attempt, log_line, run_search cascade")
        cursor.execute("alter table run enable trigger run_needed")
    workers.start()
    loads.until_up(workers.count)
    return found


def of_backlog(version: int, workers: Any) -> dict[str, float]:
    found = large.pace(version, PACE, workers)[PER_SECOND]
    still_there(version)
    return {f"{PER_SECOND}, of a backlog": found}


def still_there(version: int) -> None:
    """A pace is none when the backlog was over before the time was."""
    if not loads.scalar("select exists (select from dispatch where version_id = %s)", version):
        raise SystemExit("The backlog was worked off before the time was over: give more with --many.")


def fill(folder: Path, count: int) -> str:
    """So many runs of a year (`seed.py`); what of them is due is worked off. Gives what there is now, in words."""
    from django.contrib.auth import get_user_model

    from runtime import pausing
    from tests.bench import patterns
    from tests.e2e.stack import ADMIN
    from tests.servers.crm import Crm

    get_user_model().objects.create_superuser(ADMIN)
    with Crm(ledger=folder / "ledger.db", keys="ignore") as crm:
        patterns.make(crm, count, 300, say)
        pausing.resume()
        rows, size = patterns.settle()
        due = "state = 'ready' or leased_until < clock_timestamp() + interval '1 day'"
        loads.until("what is due of the filled runs is worked off", f"select not exists (select from dispatch where {due})")
    return f"{rows['run']:,} runs, {rows['step_result']:,} steps ({size:.1f} GiB)"


@contextmanager
def held(url: str) -> Iterator[None]:
    """A transaction whose snapshot stays open meanwhile, as a long report's or a forgotten session's does."""
    with closing(psycopg.connect(url)) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select count(*) from worker")
        yield
        other.rollback()


def held_long(url: str, version: int, minutes: int, stages: dict[str, Figures], workers: Any) -> dict[str, float]:
    """What `snapshot` gives, of a backlog that is long enough for it."""
    more = int(1.1 * WITHIN * (minutes + 2) * median(stages[EMPTY][f"{PER_SECOND}, of a backlog"]))
    say(f"making it longer by {more:,} runs")
    large.longer(version, more)
    return snapshot(url, version, minutes, workers)


def snapshot(url: str, version: int, minutes: int, workers: Any) -> dict[str, float]:
    """Runs that end in a second: in the minute before, in each minute in which the snapshot is held, and in the minute after."""
    workers.start()
    loads.until_up(workers.count)
    time.sleep(PACE)  # until all are at full speed
    found = {"before": large.ended_a_second(version, WITHIN)}
    with held(url):
        for minute in range(1, minutes + 1):
            found[f"minute {minute}"] = large.ended_a_second(version, WITHIN)
            say(f"a snapshot is held: minute {minute}: {shown(found[f'minute {minute}'])} runs a second")
    found["after"] = large.ended_a_second(version, WITHIN)
    workers.stop()
    still_there(version)
    return found


def report(stages: dict[str, Figures], machine: str, chosen: argparse.Namespace) -> None:
    print(f"\n{machine}; {chosen.workers} worker processes; rounds: {chosen.rounds}, of {chosen.runs:,} runs\n")
    print("| figure | beside | median | range | as good as the empty one |\n|---|---|---:|---:|---:|")
    for stage, figures in stages.items():
        for name, values in figures.items():
            if name == "bytes stored a step":
                continue
            ratio = "" if stage == EMPTY else f"{as_good(name, median(values), median(stages[EMPTY][name])):.2f}"
            middle, least, most = (shown(of(values)) for of in (median, min, max))
            print(f"| {name} | {stage} | {middle} | {least} – {most} | {ratio} |")


def as_good(name: str, now: float, empty: float) -> float:
    """Below 1 is worse: a rate as a part of the empty database's, a time the other way round."""
    return now / empty if name.startswith(PER_SECOND) else empty / now


def report_snapshot(told: dict[str, float]) -> None:
    """`told` is what `snapshot` gives."""
    during = [value for name, value in told.items() if name.startswith("minute")]
    print(f"\nA snapshot held for {len(during)} minutes: {sum(during) / len(during) / told['before']:.2f} of the throughput without, "
          f"{during[-1] / told['before']:.2f} in the last minute.\n")  # fmt: skip
    print("| a snapshot is held | three-step runs a second | of that before |\n|---|---:|---:|")
    for name, value in told.items():
        print(f"| {name} | {shown(value)} | {value / told['before']:.2f} |")
