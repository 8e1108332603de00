"""`make bench ARGS=--pages`: the pages that people look at while a backlog is worked off at full speed, beside the same while
nothing is to be done, on a Holdfast as `make up` starts it.

`--runs` finished runs are there at first; `--many` is the backlog; `--times` requests are made for each page.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.runs import Figure, at95, measured

SETTINGS = {"HOLDFAST_WEB_PROCESSES": "2", "HOLDFAST_LEASE_SECONDS": "30", "HOLDFAST_STEP_MODULES": "tests.bench.steps"}
Looked = dict[Figure, list[float]]
"""Milliseconds of each request."""


def measure(folder: Path, chosen: argparse.Namespace) -> None:
    from tests.e2e.stack import Holdfast

    with Holdfast(folder, **SETTINGS, HOLDFAST_WORKERS=str(chosen.workers)) as holdfast:
        os.environ |= {"HOLDFAST_DATA": str(folder)}
        del os.environ["SECRET_KEY"]  # that Holdfast made one of its own, with which sessions are signed
        import django

        django.setup()
        from runtime import pausing
        from runtime.claiming import PAUSE_SECONDS
        from tests.bench import large, loads, patterns

        version = loads.three_steps()
        first = loads.begin(version, chosen.runs)
        loads.until_done(version, first)
        ended = loads.scalar("select max(id) from run")
        figures, cookie = figures_of(version.workflow_id, ended), patterns.cookie(administrator())
        say("an idle engine")
        idle = look(holdfast, figures, cookie, chosen.times)
        say(f"making a backlog of {chosen.many:,} runs")
        pausing.pause(user=None, why="Measured.")
        time.sleep(2 * PAUSE_SECONDS)  # until all workers know, or one would take the run that the others are copies of
        backlog = large.backlog(chosen.many)
        pausing.resume()
        time.sleep(5)  # until all are at full speed
        alone = large.ended_a_second(backlog, 10)
        began, before = time.monotonic(), left(backlog)
        say(f"{alone:,.0f} runs a second")
        busy = look(holdfast, figures, cookie, chosen.times)
        beside = (before - left(backlog)) / (time.monotonic() - began)
        if not left(backlog):
            raise SystemExit("The backlog was worked off before the pages were seen: give more with --many.")
        speed = f"{alone:,.0f} three-step runs a second without the pages, {beside:,.0f} with them"
        report(idle, busy, chosen, f"{loads.machine()}; {speed}")


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def left(version: int) -> int:
    from tests.bench import loads

    return loads.scalar("select count(*) from dispatch where version_id = %s", version)


def administrator() -> Any:
    from django.contrib.auth import get_user_model

    from tests.e2e.stack import ADMIN

    return get_user_model().objects.get(username=ADMIN)


def figures_of(workflow: int, ended: int) -> list[Figure]:
    """The pages; `ended` is the number of a finished run."""
    some = [f"/runs/{run}/" for run in range(ended - 20, ended + 1)]
    pages = {
        "run list": ["/runs/"],
        "run list, a flow": [f"/runs/?flow={workflow}"],
        "run list, what goes on": ["/runs/?state=running"],
        "a run": some,
        "a run, on the canvas": [f"{address}?view=canvas" for address in some],
        "canvas of a flow": [f"/flows/{workflow}/"],
        "canvas of a flow of 100 steps": [f"/flows/{large_flow()}/"],
        "operations": ["/operations/"],
    }
    return [Figure(name, "administrator", addresses) for name, addresses in pages.items()]


def large_flow() -> int:
    from runtime.models import Team, Workflow
    from runtime.publish import publish
    from tests.bench.flows import flow_of

    workflow = Workflow.objects.create(team=Team.objects.get(name="Bench"), name="A hundred steps")
    return publish(workflow, flow_of(100)).workflow_id


def look(holdfast: Any, figures: list[Figure], cookie: str, times: int) -> Looked:
    found = {}
    for figure in figures:
        say(figure.name)
        found[figure], _ = measured(holdfast.url, cookie, figure, times)
    return found


def report(idle: Looked, busy: Looked, chosen: argparse.Namespace, told: str) -> None:
    print(f"\n{told}; {chosen.workers} worker processes, 2 web processes; {chosen.times} requests each\n")
    print("| page | idle p50 ms | p95 | full speed p50 ms | p95 | p95, times idle |\n|---|---:|---:|---:|---:|---:|")
    for figure, took in idle.items():
        then = busy[figure]
        print(f"| {figure.name} | {statistics.median(took):.0f} | {at95(took):.0f} | {statistics.median(then):.0f} | "
              f"{at95(then):.0f} | {at95(then) / at95(took):.1f} |")  # fmt: skip
