"""Flows, runs and real worker processes for tests of the engine.

    version = engine.publish([{"id": "call", "type": "probe"}])
    run = engine.start(version)
    worker = engine.worker(failpoint="journal.inside:3")
    engine.ends(run, "succeeded")

Workers are forked from a process that has imported everything (`zygote.py`), so one is there within a few hundredths of
a second. Whatever a test waits for is a condition (`eventually`), never a length of time.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from django.db import connection

from runtime import approvals, waits
from runtime.models import Attempt, Dispatch, LogLine, Run, StepResult, Team, Version, Wait, Workflow
from runtime.publish import publish
from runtime.starts import start

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0
T = TypeVar("T")
WAITING_FOR_A_LOCK = "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
SETTINGS = {
    "HOLDFAST_LEASE_SECONDS": 6.0,
    "HOLDFAST_POLL_SECONDS": 0.2,
    "HOLDFAST_GRACE_SECONDS": 2.0,
    "HOLDFAST_CONCURRENCY": 100,
    "HOLDFAST_ALLOWED_PRIVATE_HOSTS": ["127.0.0.1"],
}


def eventually(condition: Callable[[], T], seconds: float = PATIENCE, what: str | Callable[[], str] = "") -> T:
    """The first value that is true. After so many seconds an AssertionError that tells `what`."""
    ends = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > ends:
            raise AssertionError(
                f"not within {seconds} s: {what() if callable(what) else what or condition}; last: {value!r}"
            )
        time.sleep(0.05)


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Do all of it at the same instant, each over a connection of its own. Gives what each returned or raised."""
    barrier = threading.Barrier(len(acts))

    def act(one: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(PATIENCE)
            return one()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return [done.result() for done in [pool.submit(act, one) for one in acts]]


class Zygote:
    """Of the code in a folder: this one, or another make of it."""

    def __init__(self, root: Path = ROOT) -> None:
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        path = os.pathsep.join(str(root) if one == str(ROOT) else one for one in paths)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.zygote"],
            cwd=root,
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class WorkerProcess:
    def __init__(self, zygote: Zygote, pid: int, log: Path):
        self._zygote, self.pid, self.log = zygote, pid, log

    def status(self) -> int | None:
        """None while it runs; else its exit code, negative for a signal."""
        return self._zygote.ask(do="status", pid=self.pid)["status"]

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.ended()

    def stop(self, seconds: float = PATIENCE) -> int:
        """SIGTERM. Returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.ended(seconds)

    def ended(self, seconds: float = PATIENCE) -> int:
        """Wait for its end. Returns its status."""
        eventually(lambda: self.status() is not None, seconds, lambda: f"the end of a worker; its log:\n{self.tail()}")
        return self.status()

    def signal(self, number: int) -> None:
        if self.status() is None:
            os.kill(self.pid, number)

    def tail(self) -> str:
        return self.log.read_text()[-4000:]


class Engine:
    def __init__(self, zygote: Zygote, folder: Path):
        self.zygote, self.folder = zygote, folder
        self.workers: list[WorkerProcess] = []
        self._numbers = itertools.count(1)

    # Flows and runs

    def publish(self, steps: list[dict[str, Any]], *, workflow: Workflow | None = None, **more: Any) -> Version:
        if workflow is None:
            team, _ = Team.objects.get_or_create(name="Engine")
            workflow = Workflow.objects.create(team=team, name=f"Flow {next(self._numbers)}")
        return publish(workflow, {"format": 1, "name": workflow.name, "steps": steps, **more})

    def start(self, version: Version, body: Any = None, **more: Any) -> int:
        return start(version, trigger_key="api", input={"body": body}, **more).run_id

    # Workers

    def worker(
        self, failpoint: str = "", env: dict[str, str] | None = None, sockets: str = "", zygote: Zygote | None = None,
        **settings: Any,
    ) -> WorkerProcess:
        """A running worker process. Settings by name, without HOLDFAST_: `engine.worker(lease_seconds=1)`. It finds the
        database in the folder `sockets`, when given, and is of the code that `zygote` holds."""
        log = self.folder / f"worker{next(self._numbers)}.log"
        log.touch()
        chosen = SETTINGS | {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}
        zygote = zygote or self.zygote
        made = zygote.ask(
            do="spawn",
            log=str(log),
            settings=chosen,
            cluster="tests",
            sockets=sockets,
            env={"HOLDFAST_TEST_FOLDER": str(self.folder), "HOLDFAST_FAILPOINT": failpoint, **(env or {})},
        )
        self.workers.append(WorkerProcess(zygote, made["pid"], log))
        return self.workers[-1]

    def kill_all(self) -> None:
        for worker in self.workers:
            worker.signal(signal.SIGCONT)
            worker.signal(signal.SIGKILL)
        for worker in self.workers:
            worker.ended()
        self.workers.clear()

    def leases_end(self) -> None:
        """The leases of dead workers run out now, after what they had asked of the database. For when none lives."""
        self.last_words()
        self.sql("update dispatch set leased_until = clock_timestamp() where token is not null")

    def dies(self, worker: WorkerProcess) -> None:
        """Wait for a worker's death at its failpoint, and let its leases run out."""
        assert worker.ended() == -9, worker.tail()
        self.leases_end()

    def last_words(self) -> None:
        """Wait until the database has done what dead workers had asked of it."""
        theirs = (
            "select pid, application_name, state, wait_event, age(clock_timestamp(), state_change)::text, left(query, 200)"
            " from pg_stat_activity where application_name like 'holdfast%' and datname = current_database()"
        )
        eventually(lambda: not self.sql(theirs), what=lambda: f"the end of dead workers' sessions: {self.sql(theirs)}")

    # The outside of `probe`

    def ledger(self, run: int | None = None) -> list[dict[str, Any]]:
        """The effects, in order: `{"run", "path", "take", "n", "key", "operation", "note"}`."""
        file = self.folder / "ledger"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if run in (None, line["run"])]

    def release(self, name: str) -> None:
        """Let go of the calls that hold on to this name."""
        (self.folder / name).touch()

    def drive(self, clock: Any, runs: list[int], until: Callable[[], Any]) -> None:
        """Do what the runs wait for, until a condition is true: move the clock, call back, approve."""
        waiting = Wait.objects.filter(run_id__in=runs, state="open")

        def turn() -> bool:
            for wait in waiting.filter(kind="callback"):
                waits.signal(wait.run_id, wait.path, {"note": "called"}, "once")
            for wait in waiting.filter(kind="approval").select_related("approval"):
                approvals.decide(wait.approval, "approve", recipient=wait.approval.recipients.first())
            if due := waiting.filter(kind="timer").order_by("due_at").values_list("due_at", flat=True).first():
                if (left := (due - clock.now()).total_seconds()) > 0:
                    clock.advance(seconds=left)
            return bool(until())

        eventually(
            turn, 2 * PATIENCE, what=lambda: "\n".join(self.told(run) for run in runs if self.state(run) == "open")
        )

    # What became of it

    def state(self, run: int) -> str:
        return Run.objects.values_list("state", flat=True).get(pk=run)

    def ends(self, run: int, state: str = "succeeded", seconds: float = PATIENCE) -> Run:
        """Wait until the run has ended, and demand how."""
        try:
            eventually(lambda: self.state(run) in ("succeeded", "failed", "cancelled"), seconds)
        except AssertionError:
            raise AssertionError(f"run {run} does not end:\n{self.told(run)}") from None
        row = Run.objects.get(pk=run)
        assert row.state == state, self.told(run)
        assert not Dispatch.objects.filter(run_id=run).exists()
        return row

    def parked(self, run: int) -> Dispatch:
        """Wait until nobody holds the run and it waits for something."""
        return eventually(
            lambda: Dispatch.objects.filter(run_id=run, state="waiting").first(), what=lambda: self.told(run)
        )

    def wait(self, run: int, path: str, kind: str = "", state: str = "open") -> Wait:
        """Wait until there is a wait at the path."""
        found = Wait.objects.filter(run_id=run, path=path, state=state)
        return eventually(
            lambda: (found.filter(kind=kind) if kind else found).order_by("-pk").first(), what=lambda: self.told(run)
        )

    def results(self, run: int) -> dict[str, tuple[str, Any]]:
        """Path -> (state, output or the error's message) of the results that stand."""
        rows = StepResult.objects.filter(run_id=run, superseded=False)
        return {row.path: (row.state, row.output if row.error is None else row.error["message"]) for row in rows}

    def output(self, run: int, path: str) -> Any:
        return StepResult.objects.get(run_id=run, path=path, superseded=False).output

    def attempts(self, run: int, path: str | None = None) -> list[Attempt]:
        rows = Attempt.objects.filter(run_id=run)
        return list((rows.filter(path=path) if path else rows).order_by("path", "take", "n"))

    def log(self, run: int) -> list[str]:
        return list(LogLine.objects.filter(run_id=run).order_by("id").values_list("text", flat=True))

    def sql(self, query: str, *parameters: Any) -> list[tuple]:
        with connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def told(self, run: int) -> str:
        """All that is known of a run, for the words of a failed assertion."""
        parts = [f"run: {Run.objects.filter(pk=run).values().first()}"]
        for model in (Dispatch, StepResult, Attempt, Wait):
            parts += [f"{model.__name__}: {row}" for row in model.objects.filter(run_id=run).values()[:30]]
        parts += [f"log: {line}" for line in self.log(run)[-20:]]
        parts += [f"--- worker {worker.pid} ({worker.status()}):\n{worker.tail()}" for worker in self.workers]
        return "\n".join(parts)
