"""What is printed: a line while it runs, and the report at the end."""

from __future__ import annotations

import bisect
import sys
from collections import Counter, defaultdict
from datetime import datetime, timedelta

from django.db import connection

from tests.chaos.faults import Faults
from tests.chaos.history import Event
from tests.chaos.oracle import Verdict
from tests.chaos.people import AT_ONCE, People

LEAST_SUCCEEDED = 0.9
SHOWN = 40


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def progress(elapsed: float, people: People, faults: Faults, open_runs: int) -> None:
    done = faults.done
    say(
        f"{elapsed:5.0f} s  {len(people.runs):4} runs, {open_runs:2} open   kills {done['kills']:3}   "
        f"database restarts {done['database restarts']}   {trouble(people, faults)}"
    )


def trouble(people: People, faults: Faults) -> str:
    wrong = people.wrong + faults.wrong
    return f"WRONG: {wrong[-1]}" if wrong else ""


def recovery(events: list[Event], deaths: list[tuple[datetime, int]]) -> list[float]:
    """Seconds from the death of a worker until somebody else held, or ended, each run that it had held."""
    by_run: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        if event.kind == "dispatch":
            by_run[event.run_id].append(event)
    workers = _workers()
    taken: list[float] = []
    for at, pid in deaths:
        worker_id = _alive_at(workers.get(pid, []), at)
        for moves in by_run.values():
            held = bisect.bisect_right(moves, at, key=lambda move: move.at) - 1
            if held < 0 or moves[held].now != "claimed" or moves[held].more["worker"] != worker_id:
                continue
            after = next((move for move in moves[held + 1 :] if move.now in ("claimed", None)), None)
            if after is not None:
                taken.append((after.at - at).total_seconds())
    return sorted(taken)


def _workers() -> dict[int, list[tuple[datetime, int]]]:
    found: dict[int, list[tuple[datetime, int]]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute("select pid, started_at, id from worker order by id")
        for pid, started_at, worker_id in cursor.fetchall():
            found[pid].append((started_at, worker_id))
    return found


def _alive_at(rows: list[tuple[datetime, int]], at: datetime) -> int | None:
    """Process ids are used again: the last that had begun by then."""
    return next((worker_id for started, worker_id in reversed(rows) if started <= at + timedelta(seconds=1)), None)


def percentile(values: list[float], share: float) -> str:
    return f"{values[min(len(values) - 1, int(share * len(values)))]:.1f} s" if values else "–"


def judged(verdict: Verdict, kills: int, wanted: int) -> list[str]:
    """Every breach, with those of the whole."""
    breaches = verdict.breaches()
    programs, succeeded = verdict.figures["programs"], verdict.figures["succeeded"]
    if succeeded < LEAST_SUCCEEDED * programs:
        breaches.append(f"succeeded: {succeeded} of {programs} programs, at least {LEAST_SUCCEEDED:.0%} must")
    figures = verdict.figures
    allowed = figures["ambiguous"] + figures["interrupted"] + AT_ONCE * figures["receiver deaths"]
    if figures["uncertain"] > allowed:
        breaches.append(f"uncertain: {figures['uncertain']} questions, {allowed} calls that ended ambiguously")
    if kills < wanted:
        breaches.append(f"kills: {kills} of {wanted}: the faults were not all done")
    return breaches


def table(verdict: Verdict, people: People, faults: Faults, times: list[float], minutes: float) -> str:
    figures, done = verdict.figures, faults.done
    lines: list[tuple[str, object]] = [
        ("seed", faults.seed),
        ("minutes of faults", f"{minutes:.1f}"),
        ("programs", figures["programs"]),
        ("runs", figures["runs"]),
        ("steps", figures["steps"]),
        ("calls that reached the receiver", figures["calls"]),
        ("succeeded", f"{figures['succeeded']} programs"),
        ("cancelled", f"{figures['cancelled']} runs"),
        ("kills", f"{done['kills']} worker processes, some of them with {done['clusters killed']} whole clusters"),
        ("restarts", f"{done['database restarts']} of Postgres, {done['deploys']} deploys"),
        ("other faults", _others(done)),
        ("people", _others(people.done)),
        ("lost", len(verdict.lost)),
        ("duplicated", len(verdict.duplicated)),
        ("stuck", len(verdict.stuck)),
        ("uncertain", f"{figures['uncertain']}, of them without a cause: {len(verdict.uncertain)} "
                      f"(ambiguous for the receiver: {figures['ambiguous']}; interrupted: {figures['interrupted']})"),
        ("quarantined for a while", figures["quarantined"]),
        ("illegal transitions", len(verdict.illegal)),
        ("otherwise wrong", len(verdict.wrong)),
        ("recovery time", f"p50 {percentile(times, 0.5)}, p99 {percentile(times, 0.99)}, "
                          f"of {len(times)} runs held at a death"),
    ]  # fmt: skip
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in lines)


def _others(done: Counter) -> str:
    apart = ("kills", "clusters killed", "database restarts", "deploys")
    return ", ".join(f"{name} {count}" for name, count in sorted(done.items()) if name not in apart)
