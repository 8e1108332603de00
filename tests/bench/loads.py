"""The loads, and what each of them measures. Every figure is a property of one run on this machine, at this hour."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import psutil
import psycopg
from django.db import connection

from runtime.doorbell import ring_after_commit
from runtime.models import Team, Version, Workflow
from runtime.publish import publish
from runtime.starts import start, start_many

PATIENCE = 300.0


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "noop", **more}


def flow(name: str, *steps: dict[str, Any]) -> Version:
    team, _ = Team.objects.get_or_create(name="Bench")
    workflow = Workflow.objects.create(team=team, name=name)
    return publish(workflow, {"format": 1, "name": name, "steps": list(steps)})


def three_steps() -> Version:
    """Three outside no-op steps; the second and the third read the one before."""
    return flow(
        "Three steps",
        step("a", config={"value": "{{ trigger.body.n }}"}),
        step("b", config={"value": "{{ steps.a.output.step }}"}),
        step("c", config={"value": "{{ steps.b.output.step }}"}),
    )


def begin(version: Version, count: int, **body: Any) -> int:
    """Start `count` runs through `start_many`, two thousand at a time. Gives the first one's number."""
    made: list[int] = []
    for first in range(0, count, 2000):
        items = [({"body": {"n": n, "email": "a@b.example"} | body}, f"{version.pk}-{n}") for n in range(first, min(count, first + 2000))]
        made += start_many(version, items, trigger_key="api")
    return min(made)


def until_up(count: int) -> None:
    """Wait until so many worker processes have beaten once."""
    began = time.monotonic()
    while scalar("select count(*) from worker where ended_at is null and beat_at > started_at") < count:
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"{count} worker processes were not up within {PATIENCE:g} s")
        time.sleep(0.05)


def until(what: str, sql: str, *parameters: Any, seconds: float = PATIENCE) -> None:
    """Wait until a query gives true; `what` says in an error what did not come."""
    began = time.monotonic()
    while not scalar(sql, *parameters):
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)


def until_done(version: Version, first: int = 0) -> float:
    """Seconds until no run of the version is unfinished. With the number of its first, a million earlier ones are not looked at."""
    began = time.monotonic()
    while scalar("select exists (select from dispatch where run_id >= %s and version_id = %s)", first, version.pk):
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"{version} did not end within {PATIENCE:g} s")
        time.sleep(0.02)
    return time.monotonic() - began


def scalar(sql: str, *parameters: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()[0]


def percentiles(sql: str, *parameters: Any) -> tuple[float, float]:
    """p50 and p99, in milliseconds, of a query that gives intervals as `gap`."""
    both = "select percentile_disc(array[0.5, 0.99]) within group (order by gap) from (" + sql + ") gaps"
    p50, p99 = scalar(both, *parameters)
    return p50.total_seconds() * 1000, p99.total_seconds() * 1000


def throughput(count: int, process: Any) -> dict[str, float]:
    """Three-step runs a second from a backlog, and the processor time that a run costs workers and database. The backlog
    becomes due when the workers are up: their start is not measured."""
    version, stored = three_steps(), stored_bytes()
    process.stop()
    seconds, spent = worked_off(version, begin(version, count), process)
    assert scalar("select count(*) from run where version_id = %s and state = 'succeeded'", version.pk) == count
    return {"three-step runs a second": count / seconds, "processor ms a run": 1000 * spent / count,
            "bytes stored a step": (stored_bytes() - stored) / (3 * count)}


def worked_off(version: Version, first: int, process: Any) -> tuple[float, float]:
    """The runs of that version from number `first` on, which were made while no worker was up: seconds until the last has ended, and
    seconds of processor."""
    with connection.cursor() as cursor:
        cursor.execute("update dispatch set due_at = holdfast_now() + interval '1 day' where run_id >= %s", [first])
        cursor.execute("vacuum analyze")
    process.start()
    until_up(process.count)
    before = processor_seconds()
    with connection.cursor() as cursor:
        cursor.execute("update dispatch set due_at = holdfast_now() where run_id >= %s", [first])
    began_at = scalar("select holdfast_now()")
    ring_after_commit()
    until_done(version, first)
    spent = processor_seconds() - before
    return (scalar("select max(ended_at) from run where version_id = %s", version.pk) - began_at).total_seconds(), spent


def stored_bytes() -> int:
    """What the rows that a run leaves behind take, with their indexes."""
    tables = "'run', 'step_result', 'attempt', 'log_line', 'run_search'"
    return scalar(f"select sum(pg_total_relation_size(name))::float8 from unnest(array[{tables}]) as name")


def latency(count: int) -> dict[str, float]:
    """From insert to end, one run at a time on an idle system."""
    version = three_steps()
    for n in range(count):
        until_done(version, start(version, trigger_key="api", input={"body": {"n": n}}).run_id)
        time.sleep(0.02)
    p50, p99 = percentiles("select ended_at - created_at as gap from run where version_id = %s", version.pk)
    return {"start to end p50": p50, "start to end p99": p99}


def lateness(count: int) -> dict[str, float]:
    """How late 1,000 timers of one instant wake their runs, and until each run's next step is reached."""
    wait = {"id": "wait", "type": "delay", "config": {"until": "{{ trigger.body.at }}"}}
    version = flow("Timers", wait, step("next", config={"tells_time": True}))
    at = scalar("select (holdfast_now() + interval '6 seconds')::text")
    made = start_many(version, [({"body": {"at": at.replace(" ", "T")}}, None) for _ in range(count)], trigger_key="api")
    until_done(version, min(made))
    p50, p99 = percentiles(
        "select resolved_at - due_at as gap from wait w join run r on r.id = w.run_id where r.version_id = %s", version.pk
    )
    next50, next99 = percentiles(
        """select to_timestamp((s.output->>'at')::float8) - w.due_at as gap from wait w
           join run r on r.id = w.run_id join step_result s on s.run_id = r.id and s.path = 'next'
           where r.version_id = %s""", version.pk,
    )  # fmt: skip
    return {"timer lateness p50": p50, "timer lateness p99": p99,
            "timer to next step p50": next50, "timer to next step p99": next99}


def sleepers(count: int, process: Any) -> dict[str, float]:
    """Runs whose only step awaits 200 ms, all at once."""
    version = flow("Sleepers", step("a", config={"seconds": 0.2}))
    start_many(version, [({"body": {}}, None) for _ in range(count)], trigger_key="api")
    return {"1,000 steps awaiting 200 ms": until_done(version)}


def memory(count: int) -> dict[str, float]:
    """What the largest worker process holds while so many steps await an answer."""
    version = flow("In flight", step("a", config={"seconds": 10}))
    start_many(version, [({"body": {}}, None) for _ in range(count)], trigger_key="api")
    began = time.monotonic()
    begun = "select count(*) from attempt a join run r on r.id = a.run_id where r.version_id = %s"
    while scalar(begun, version.pk) < count and time.monotonic() - began < PATIENCE:
        time.sleep(0.05)
    with connection.cursor() as cursor:
        cursor.execute("select pid from worker where ended_at is null")
        largest = max(psutil.Process(pid).memory_info().rss for (pid,) in cursor.fetchall() if psutil.pid_exists(pid))
    until_done(version)
    return {"MiB a worker, 1,000 steps in flight": largest / 2**20}


def lanes(count: int) -> dict[str, float]:
    """A parallel of so many lanes with one step each, one run at a time."""
    branches = [{"id": f"lane_{n}", "label": f"Lane {n}", "steps": [step(f"step_{n}")]} for n in range(count)]
    version = flow("Lanes", {"id": "all", "type": "parallel", "branches": branches})
    for _ in range(20):
        start(version, trigger_key="api", input={"body": {}})
        until_done(version)
    p50, _ = percentiles("select ended_at - created_at as gap from run where version_id = %s", version.pk)
    return {f"parallel of {count} lanes p50": p50}


def resume(count: int) -> dict[str, float]:
    """From one wait's end to the next wait of the same run, which stands in the last of so many iterations."""
    waits = [{"id": f"wait_{n}", "type": "delay", "config": {"for": "1s"}} for n in range(6)]
    last = {"id": "last", "type": "condition", "branches": [
        {"id": "yes", "label": "Yes", "when": f"loop.index == {count - 1}", "steps": waits},
        {"id": "no", "label": "No", "steps": []},
    ]}  # fmt: skip
    items = {"items": "trigger.body.items", "concurrency": 5}
    version = flow("Resume", {"id": "each", "type": "loop", "config": items, "steps": [step("one"), last]})
    start(version, trigger_key="api", input={"body": {"items": list(range(count))}})
    until_done(version)
    p50, _ = percentiles(
        """select later.created_at - earlier.resolved_at as gap from wait earlier join wait later using (run_id)
           join run r on r.id = run_id where r.version_id = %s and later.id =
           (select min(id) from wait where run_id = earlier.run_id and id > earlier.id)""", version.pk,
    )  # fmt: skip
    return {f"resume at iteration {count:,}": p50}


def loop(count: int) -> dict[str, float]:
    """One run whose loop has many iterations of one outside step, five at a time."""
    items = "trigger.body.items"
    version = flow("Loop", {"id": "each", "type": "loop", "config": {"items": items, "concurrency": 5}, "steps": [step("one")]})
    start(version, trigger_key="api", input={"body": {"items": list(range(count))}})
    return {"loop iterations a second": count / until_done(version)}


def floor(url: str) -> dict[str, float]:
    """What the database itself does here and now: rows by `unnest` from Python, and single-row commits."""
    with psycopg.connect(url, autocommit=True) as floor:
        floor.execute("create temporary table f (id bigint, body jsonb, at timestamptz)")
        ids, bodies = list(range(1000)), [json.dumps({"n": n, "pad": "x" * 60}) for n in range(1000)]
        began = time.monotonic()
        for _ in range(40):
            floor.execute(
                "insert into f select *, clock_timestamp() from unnest(%s::bigint[], %s::jsonb[])", [ids, bodies]
            )
        rows = 40_000 / (time.monotonic() - began)
        floor.execute("create table if not exists bench_commit (n int)")
        began = time.monotonic()
        for n in range(500):
            floor.execute("insert into bench_commit values (%s)", [n])
        commits = 500 / (time.monotonic() - began)
        floor.execute("drop table bench_commit")
    return {"floor: rows a second": rows, "floor: single commits a second": commits}


def processor_seconds() -> float:
    """Used so far by this process's children and theirs: workers and database."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def machine() -> str:
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown processor")
    return f"{psutil.cpu_count()} × {model}, {psutil.virtual_memory().total / 2**30:.0f} GiB"
