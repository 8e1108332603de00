"""What a million runs cost those beside them: parked ones that wait, and a backlog. Made by SQL in one statement each."""

from __future__ import annotations

import time
from typing import Any

from django.db import connection
from django.db.models import Model

from runtime.models import Dispatch, Run, Wait
from runtime.starts import start
from tests.bench import loads


def copies(run: int, count: int, *models: type[Model], due: bool = False) -> None:
    """That run so many times more, with its rows of these models; they are due a millisecond after each other, from the run's own
    time on, or, with `due`, up to it: else a backlog would grow by a thousand a second, and no faster would it be worked off."""
    copy = f"(copy - {count if due else 0})"
    with connection.cursor() as cursor:
        cursor.execute("select max(id) from run")
        first = cursor.fetchone()[0]
        for model in (Run, *models):
            key = "id" if model is Run else "run_id"
            columns = {field.column for field in model._meta.local_concrete_fields if field.column} - {"id", "run_id", "idempotency_key"}
            made = [f"{name} + make_interval(secs => {copy} / 1000.0)" if name == "due_at" else name for name in columns]
            cursor.execute(
                f"insert into {model._meta.db_table} ({key}, {', '.join(columns)}) select %s + copy, {', '.join(made)} "
                f"from {model._meta.db_table}, generate_series(1, %s) as copy where {key} = %s",
                [first, count, run],
            )
        cursor.execute("select setval(pg_get_serial_sequence('run', 'id'), (select max(id) from run))")
        cursor.execute("vacuum analyze")


def park(count: int, workers: Any) -> None:
    """Runs that wait for a day next month, as a worker left the first of them."""
    version = loads.flow("Parked", {"id": "wait", "type": "delay", "config": {"for": "30d"}})
    workers.stop()
    workers.start()
    run = start(version, trigger_key="api", input={"body": {"email": "a@b.example"}}).run_id
    while not loads.scalar("select count(*) from dispatch where run_id = %s and state = 'waiting'", run):
        time.sleep(0.05)
    workers.stop()
    copies(run, count, Dispatch, Wait)


def idle(seconds: float) -> dict[str, float]:
    """The processor time that workers and database use while nothing is to be done."""
    before = loads.processor_seconds()
    time.sleep(seconds)
    return {"processor seconds a minute when idle": 60 * (loads.processor_seconds() - before) / seconds}


def backlog(count: int) -> int:
    """So many three-step runs that are due; gives their version."""
    version = loads.three_steps()
    run = start(version, trigger_key="api", input={"body": {"n": 1, "email": "a@b.example"}}).run_id
    copies(run, count - 1, Dispatch, due=True)
    return version.pk


def longer(version: int, count: int) -> None:
    """So many runs more in that backlog, while no worker is up."""
    run = loads.scalar("select max(run_id) from dispatch where version_id = %s and state = 'ready'", version)
    copies(run, count, Dispatch, due=True)


def pace(version: int, seconds: float, workers: Any) -> dict[str, float]:
    """How many of the backlog's runs end in a second, once the workers are up."""
    workers.start()
    loads.until_up(workers.count)
    time.sleep(2)
    found = ended_a_second(version, seconds)
    workers.stop()
    return {"three-step runs a second": found}


def ended_a_second(version: int, seconds: float) -> float:
    """Runs of that version that end from now on."""
    began = loads.scalar("select clock_timestamp()")
    time.sleep(seconds)
    ended = loads.scalar("select clock_timestamp()")
    done = loads.scalar("select count(*) from run where version_id = %s and ended_at between %s and %s", version, began, ended)
    return done / (ended - began).total_seconds()
