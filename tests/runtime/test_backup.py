"""A database that is dumped, lost and restored: runs that waited go on, and what had ended does not run again."""

from __future__ import annotations

import subprocess

import psycopg
import pytest
from django.db import connection, connections

from runtime import approvals
from runtime.models import Approval
from tests.runtime.engine import eventually


@pytest.fixture
def dumped(postgres, tmp_path):
    """Dumps the test database, drops it, and restores it under the same name, as the README tells operators to."""
    name = connection.settings_dict["NAME"]
    tools, url = postgres.programs, postgres.url(name)

    def lose_and_restore(*parts: list[str]) -> None:
        file = tmp_path / "holdfast.dump"
        _run(tools / "pg_dump", "--format=custom", f"--file={file}", url)
        connections["default"].close()
        with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as admin:
            admin.execute(f'drop database "{name}" with (force)')
            admin.execute(f'create database "{name}" owner holdfast')
        for part in parts or [[]]:
            _run(tools / "pg_restore", "--exit-on-error", *part, f"--dbname={url}", str(file))

    return lose_and_restore


def _run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("parts", [[], [["--schema-only"], ["--data-only", "--single-transaction"]]], ids=["whole", "data into tables"])
def test_runs_go_on_from_a_restored_dump(engine, dumped, parts):
    steps = [
        {"id": "before", "type": "probe"},
        {"id": "both", "type": "parallel", "branches": [
            {"id": "a", "steps": [{"id": "ask", "type": "approval", "config": {"approvers": ["dana@example.com"], "subject": "Go on?"}}]},
            {"id": "b", "steps": [{"id": "wait", "type": "delay", "config": {"for": "3d"}}, {"id": "after", "type": "probe"}]}]},
        {"id": "last", "type": "probe"},
    ]  # fmt: skip
    ended = engine.start(engine.publish([{"id": "only", "type": "probe"}]))
    waiting = engine.start(engine.publish(steps))
    worker = engine.worker()
    engine.ends(ended)
    engine.parked(waiting)
    assert worker.stop() == 0

    dumped(*parts)

    engine.worker()
    approval = Approval.objects.get(run_id=waiting)
    assert approvals.decide(approval, "approve", recipient=approval.recipients.get()).state == "decided"
    eventually(lambda: engine.results(waiting).get("both/a/ask"))
    engine.sql("update wait set due_at = holdfast_now() where run_id = %s and kind = 'timer'", waiting)
    engine.sql("update dispatch set due_at = holdfast_now(), state = 'ready' where run_id = %s and token is null", waiting)
    engine.ends(waiting)
    calls = [(line["run"], line["path"]) for line in engine.ledger()]
    assert sorted(calls) == [(ended, "only"), (waiting, "before"), (waiting, "both/b/after"), (waiting, "last")]
