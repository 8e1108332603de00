"""`make bench-ui ARGS="--runs 1000000"`: the pages of an operator beside a million runs and ten million steps, on a Holdfast of
its own. Prints a Markdown table of server times, and what the plans of all statements read.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
from django.utils.module_loading import import_string

STEPS = 10_000
SETTINGS = {"HOLDFAST_WEB_PROCESSES": "2", "HOLDFAST_METRICS_TOKEN": "measured"}
FIRST, FILTERED, RUN = 100.0, 300.0, 500.0
"""Milliseconds: what the first page of the list, a filter, and the page of a run of 10,000 steps may take (p95)."""

QUESTIONS = {
    "where is everything": "builder.operations.everywhere",
    "what succeeded": "builder.operations.succeeded",
    "what is stuck": "builder.operations.stuck",
    "what fails": "builder.operations.failing",
    "what costs": "builder.operations.costs",
    "what waits": "builder.operations.waiting",
    "schedules": "builder.operations.schedules",
    "the last day by hours": "builder.runlist._last_day",
    "how many answers are owed": "builder.context._count_pending",
}


@dataclass(frozen=True)
class Figure:
    """`name` is its own. Addresses that are asked for in turn, by whom; `target` in milliseconds, 0 for what is only watched."""

    name: str
    who: str
    addresses: list[str]
    target: float = 0.0
    part: bool = False
    """Only what changes, as an open page asks for it."""

    def __hash__(self) -> int:
        return hash(self.name)


def main(folder: Path, count: int, times: int) -> None:
    from tests.e2e.stack import Holdfast
    from tests.servers.crm import Crm

    with Crm(ledger=folder / "ledger.db", keys="ignore") as crm, Holdfast(folder, **SETTINGS) as holdfast:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "builder.settings", "HOLDFAST_DATA": str(folder)}
        import django

        django.setup()
        from tests.bench import loads, patterns, plans

        before, began = os.getloadavg()[0], time.monotonic()
        made = patterns.make(crm, count, STEPS, say)
        say("statistics are gathered")
        rows, size = patterns.settle()
        seeded, scanned = time.monotonic() - began, plans.scans()
        took, spent = look(holdfast, made, times)
        print(f"\n{loads.machine()}; load {before:.1f} before and {os.getloadavg()[0]:.1f} after; {rows['run']:,} runs, "
              f"{rows['step_result']:,} steps, {size:.1f} GiB, made in {seeded / 60:.0f} minutes; {times} requests each\n")  # fmt: skip
        report(took, spent)
        print("\nRead as a whole meanwhile, by pages and idle workers:",
              {table: number - scanned[table] for table, number in plans.scans().items()})  # fmt: skip
        say("plans")
        plans.report(made, list(figures_of(made)))


def look(holdfast: Any, made: Any, times: int) -> tuple[dict[Figure, list[float]], dict[Figure, float]]:
    """Figure -> milliseconds of each request; figure -> milliseconds of processor that web server and database used for one."""
    from tests.bench import patterns

    took, spent = {}, {}
    cookies = {who: patterns.cookie(user) for who, user in made.people.items()}
    for figure in figures_of(made):
        say(figure.name)
        before = processor(holdfast.process.pid)
        took[figure], asked_for = measured(holdfast.url, cookies[figure.who], figure, times)
        spent[figure] = (processor(holdfast.process.pid) - before) / asked_for
    for who, user in made.people.items():
        say(f"questions of {who}")
        for name, ask in QUESTIONS.items():
            took[Figure(f"question: {name}, {who}", who, [])] = asked(ask, user, times)
    return took, spent


def processor(pid: int) -> float:
    """Milliseconds of processor that web server and database have used so far. On a machine that does much else this is what
    to compare."""
    total = 0.0
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.name() == "postgres" or "serve" in process.cmdline():
                total += sum(process.cpu_times()[:4])  # with those of its children that have ended
    return 1000 * total


def say(words: str) -> None:
    print(words, flush=True)


def measured(url: str, cookie: str, figure: Figure, times: int) -> tuple[list[float], int]:
    """Milliseconds from each request to the end of its answer, over loopback, without the first ones, which fill caches; and
    how many were made with these."""
    headers = {"Cookie": cookie, "Authorization": f"Bearer {SETTINGS['HOLDFAST_METRICS_TOKEN']}"} | ({"HX-Request": "true"} if figure.part else {})
    took = []
    with closing(HTTPConnection(url.removeprefix("http://"), timeout=120)) as server:
        addresses = list(dict.fromkeys(figure.addresses))
        first = min(3, len(addresses))
        for number, address in enumerate(itertools.islice(itertools.cycle(addresses), times + first)):
            began = time.perf_counter()
            server.request("GET", address, headers=headers)
            answer = server.getresponse()
            answer.read()
            if number >= first:
                took.append(1000 * (time.perf_counter() - began))
            assert answer.status == 200, (answer.status, address)
    return took, times + first


def asked(question: str, user: Any, times: int) -> list[float]:
    """Milliseconds of a function of the builder, called here."""
    ask = import_string(question)
    ask(user)
    took = []
    for _ in range(min(times, 20)):
        began = time.perf_counter()
        ask(user)
        took.append(1000 * (time.perf_counter() - began))
    return took


def report(took: dict[Figure, list[float]], spent: dict[Figure, float]) -> None:
    print("| page | p50 ms | p95 ms | target | processor ms |\n|---|---:|---:|---:|---:|")
    for figure, values in took.items():
        p95 = at95(values)
        told = f"{figure.target:.0f}{' **missed**' if figure.target and p95 > figure.target else ''}" if figure.target else ""
        used = f"{spent[figure]:.0f}" if figure in spent else ""
        print(f"| {figure.name} | {statistics.median(values):.0f} | {p95:.0f} | {told} | {used} |")


def at95(values: list[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def figures_of(made: Any) -> Iterator[Figure]:
    """Everything that is measured. `made` is a `patterns.Made`."""
    some = _spaced(made.first, made.last)
    yield Figure("beside: /readyz", "administrator", ["/readyz"])

    def runs(name: str, *queries: str, who: str = "administrator", target: float = FILTERED, part: bool = False) -> Figure:
        return Figure(f"runs: {name}", who, [f"/runs/?{query}" for query in queries], target, part)

    yield runs("first page", "", target=FIRST)
    yield runs("first page, an operator of two teams in three", "", who="operator", target=FIRST)
    yield runs("first page, a team whose few runs are old", "", who="newcomer", target=FIRST)
    yield runs("first page, live", "", target=FIRST, part=True)
    yield runs("second page", *(f"before={run}" for run in some(40)), target=FIRST)
    yield runs("second page, a team whose few runs are old", f"before={made.last - 100}", who="newcomer", target=FIRST)
    for state in ("running", "waiting", "attention", "failed", "succeeded", "cancelled"):
        yield runs(f"state {state}", f"state={state}")
        yield runs(f"state {state}, operator", f"state={state}", who="operator")
    yield runs("state failed, a team whose few runs are old", "state=failed", who="newcomer")
    yield runs("a flow", *(f"flow={flow}" for flow in made.flows))
    yield runs("a flow and failed", *(f"flow={flow}&state=failed" for flow in made.flows))
    yield runs("a flow and succeeded", *(f"flow={flow}&state=succeeded" for flow in made.flows))
    yield runs("a flow whose few runs are old", f"flow={made.rare_flow}")
    yield runs("a version that few runs are of", f"flow={made.flows[0]}&version=1")
    yield runs("key", *(f"key=order-{run}" for run in some(40)))
    yield runs("search field", *(f"q=buyer{run}@example.com" for run in some(40)))
    yield runs("search field, its beginning", *(f"q=buyer{run}" for run in some(20)))
    yield runs("number", *(f"q={run}" for run in some(40)))
    yield runs("words of a title", "q=Halden", "q=robotics")
    yield runs("words that stand nowhere", "q=nowhere+to+be+found", "q=zzz")
    yield runs("error", *(f"error={kind}" for kind in made.kinds))
    yield runs("error, operator", *(f"error={kind}" for kind in made.kinds), who="operator")
    yield runs("error that nothing has", f"error={'0' * 16}")
    for since in ("1h", "24h", "7d", "30d"):
        yield runs(f"time {since}", f"since={since}")
    yield runs("cost", "dearer=1", "dearer=4", "dearer=999")
    yield runs("duration", "longer=60", "longer=86400", "longer=9999999")
    yield runs("trigger", "trigger=manual", "trigger=api", "trigger=nobody")
    several = f"flow={made.flows[0]}&state=failed&since=30d&trigger=manual"
    yield runs("several", f"{several}&longer=60", f"flow={made.flows[-1]}&dearer=1&since=7d")
    yield runs("several, operator", several, "since=7d&dearer=1", who="operator")
    yield runs("a day half a year ago", *_days())
    yield runs("a trigger half a year ago", *(f"{day}&trigger=manual" for day in _days()))
    yield runs("words of a title half a year ago", *(f"{day}&q=nowhere" for day in _days()), who="operator")
    kinds = [f"/operations/waits/?kind={kind}" for kind in ("approval", "timer", "person")]
    for who in made.people:
        yield Figure(f"operations, {who}", who, ["/operations/"])
        yield Figure(f"waits, {who}", who, ["/operations/waits/", *kinds])
    yield Figure("approvals", "operator", ["/approvals/"])
    yield Figure("flows", "operator", ["/"])
    mails = [f"/operations/mail/?state={state}" for state in ("queued", "sent", "failed")]
    for who in made.people:
        yield Figure(f"sent mail, {who}", who, ["/operations/mail/", *mails])
    yield Figure("go to a run", "operator", [f"/search/?q={words}" for words in (*some(10), "halden", "nobody")], part=True)
    yield Figure("a run", "operator", [f"/runs/{run}/" for run in made.seen])
    ended, failed, going = (made.large[name] for name in ("ended", "failed", "going on"))
    large = {name: [f"/runs/{run}/"] for name, run in made.large.items()} | {
        "another page of iterations": [f"/runs/{ended}/?from=each:{n}" for n in range(0, 3000, 100)],
        "one iteration": [f"/runs/{failed}/?open=each[{n}]" for n in range(0, 3000, 100)],
        "on the canvas": [f"/runs/{failed}/?view=canvas"],
        "live": [f"/runs/{going}/live/"],
    }
    for name, addresses in large.items():
        yield Figure(f"a run of {STEPS:,} steps, {name}", "administrator", addresses, RUN, part=name == "live")
    admin = {
        "runs": ["run/", "run/?p=2"],
        "runs by state": [f"run/?state={state}" for state in ("failed", "succeeded", "attention")],
        "a run with its steps": [f"run/{run}/change/" for run in (*made.seen, ended)],
        "waits": ["wait/", "wait/?p=2", "wait/?state=open", "wait/?kind=person"],
        "waits that were cancelled": ["wait/?state=cancelled"],
        "waits of a run": [f"wait/?q={run}" for run in some(20)],
        "mails": ["outboxmessage/", "outboxmessage/?state=failed"],
        "audit entries": ["auditentry/"],
    }
    for name, addresses in admin.items():
        yield Figure(f"admin: {name}", "administrator", [f"/admin/runtime/{address}" for address in addresses], FILTERED)
    yield Figure("/metrics", "administrator", ["/metrics"])


def _days() -> list[str]:
    """Spans of a day, about half a year ago."""
    today = date.today()
    return [f"from={today - timedelta(days=n)}&until={today - timedelta(days=n - 1)}" for n in range(160, 200)]


def _spaced(first: int, last: int) -> Callable[[int], list[int]]:
    """So many numbers of runs, from all ages."""
    return lambda number: [first + (last - first) * (2 * n + 1) // (2 * number) for n in range(number)]
