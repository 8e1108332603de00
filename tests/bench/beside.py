"""`make bench PEERS=1`: what a user could take instead, on the same Postgres, in turn with Holdfast, and the table of both."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import psycopg

from builder.postgres import EmbeddedPostgres
from tests.bench.figures import Figures, median, shown

PYTHON = Path(".bench/python/bin/python")
PEERS = {"restate": "Restate", "absurd": "Absurd", "dbos": "DBOS", "pgqueuer": "pgqueuer", "procrastinate": "Procrastinate",
         "django_q2": "django-q2 alone"}  # fmt: skip
MOST_RUNS = 2000
"""A backlog that the slowest of them works off in half a minute."""
PATIENCE = 900.0
COLUMNS = {
    "three-step runs/s": ("three-step runs a second",),
    "start to end p50 / p99": ("start to end p50", "start to end p99"),
    "timer to next step p50 / p99": ("timer to next step p50", "timer to next step p99"),
    "1,000 steps × 200 ms": ("1,000 steps awaiting 200 ms",),
}
UNITS = {"start to end p50 / p99": " ms", "timer to next step p50 / p99": " ms", "1,000 steps × 200 ms": " s"}
Found = dict[str, dict[str, Any]]
"""Peer -> name with version, setting, and the rounds' values of each figure."""


def missing(peer: str) -> str:
    """Why the peer cannot be measured here; empty when it can."""
    if not PYTHON.exists():
        return f"{PYTHON} is not there: `make bench PEERS=1` installs it"
    if peer == "restate" and not Path(".bench/node/node_modules/.bin/restate-server").exists():
        return "its server comes by npm, which is not installed" if not shutil.which("npm") else "npm could not install its server"
    return ""


def measure(peer: str, postgres: EmbeddedPostgres, runs: int, found: Found) -> None:
    """One round of one peer, in a database of its own that goes with it."""
    database = f"peer_{peer}"
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        connection.execute(f"create database {database} owner holdfast")
    url = f"postgresql://holdfast@/{database}?host={postgres.sockets}"
    environment = os.environ | {"PEER_DATABASE": url, "PEER_LATENESS": str(postgres.link.parent / "lateness")}
    command = [str(PYTHON), "-m", "tests.bench.peers", peer, str(min(runs, MOST_RUNS))]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        answer = json.loads(process.communicate(timeout=PATIENCE)[0].splitlines()[-1])
        held = found.setdefault(peer, {**answer, "figures": {}})
        for name, value in answer["figures"].items():
            held["figures"].setdefault(name, []).append(value)
    except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
        print(f"{PEERS[peer]} gave no figures in this round: {error}", file=sys.stderr)
    finally:
        end(process)
        with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
            connection.execute(f"drop database {database} with (force)")


def end(process: subprocess.Popen[str]) -> None:
    """The peer and whatever it started, in case that it did not come to its own end."""
    if process.poll() is not None:
        return
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for one in family:
        one.kill()


def report(found: Found, holdfast: Figures) -> None:
    """Medians of the rounds with their range, and how many times Holdfast is better; "–" where there is none."""
    print("\n| | " + " | ".join(COLUMNS) + " | Holdfast is better |\n|---|" + "---:|" * (len(COLUMNS) + 1))
    print(f"| Holdfast | {cells(holdfast)} | |")
    for peer, name in PEERS.items():
        if reason := missing(peer):
            print(f"| {name} | {' | '.join('–' * len(COLUMNS))} | left out: {reason} |")
        elif peer in found:
            figures = found[peer]["figures"]
            print(f"| {name} ({found[peer]['name']}) | {cells(figures)} | {better(holdfast, figures)} |")
    print()
    for peer in found:
        print(f"- {PEERS[peer]}: {found[peer]['setting']}.")


def cells(figures: Figures) -> str:
    found = []
    for column, names in COLUMNS.items():
        of_each = [figures[name] for name in names if name in figures]
        middle = " / ".join(shown(median(values)) for values in of_each)
        width = "; ".join(f"{shown(min(values))} – {shown(max(values))}" for values in of_each if len(values) > 1)
        found.append((middle + UNITS.get(column, "") + f" ({width})" * bool(width)) if of_each else "–")
    return " | ".join(found)


def better(holdfast: Figures, peer: Figures) -> str:
    """The ratios of the medians, in the order of the columns; of the p99s where a column has two."""
    ratios = []
    for names in COLUMNS.values():
        if names[-1] not in peer or names[-1] not in holdfast:
            ratios.append("–")
            continue
        ours, theirs = median(holdfast[names[-1]]), median(peer[names[-1]])
        ratios.append(f"{ours / theirs if 'a second' in names[-1] else theirs / ours:.1f}×")
    return ", ".join(ratios)
